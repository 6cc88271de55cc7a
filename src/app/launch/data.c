/* data.c - sends the files of --data to the hosts: decides which files a source
 * has, and skips files that a host already has with the same checksum.  A file
 * appears under its name complete or not at all. */
#include "app/launch/launch.h"
#include "base/file/file.h"
#include "base/file/map.h"
#include "base/hash/sha256.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/quote.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define SCRIPT                                                                 \
    "if [ -f \"$p\" ] && "                                                     \
    "[ \"$(sha256sum < \"$p\" | cut -c1-64)\" = \"$s\" ]; then "               \
    "echo same; exit 0; fi; "                                                  \
    "mkdir -p \"$(dirname \"$p\")\" && cat > \"$p.$$\" && "                    \
    "if [ \"$(sha256sum < \"$p.$$\" | cut -c1-64)\" = \"$s\" ]; then "         \
    "mv \"$p.$$\" \"$p\" && echo sent; else "                                  \
    "rm -f \"$p.$$\"; echo it arrived damaged >&2; exit 1; fi"

#define LEAST_MS     120000
#define BYTES_PER_MS 1000 /* of the slowest link */

typedef struct sending {
    const pl_launch_hosts *hosts;
    const atomic_bool *interrupt;
    char **answers; /* [hosts] */
    size_t files, sent;
} sending;

static pl_status make_script(const char *path, const pl_map *map, char **out)
{
    uint8_t digest[PL_SHA256_BYTES];
    char text[PL_SHA256_TEXT];
    pl_sha256 sha;
    pl_buffer script = { 0 };
    pl_sha256_init(&sha);
    if (map->bytes > 0)
        pl_sha256_update(&sha, map->data, map->bytes);
    pl_sha256_final(&sha, digest);
    PL_TRY(pl_map_check(map));
    pl_buffer_text(&script, "p=");
    pl_quote_shell(&script, path);
    pl_buffer_format(&script, "; s=%s; " SCRIPT, pl_sha256_text(digest, text));
    pl_status status = pl_buffer_status(&script);
    if (status == PL_OK)
        status = pl_mem_copy_text(out, script.data);
    pl_buffer_close(&script);
    return status;
}

static bool has_control(const char *path)
{
    for (; *path != '\0'; path++)
        if ((unsigned char)*path < ' ' || *path == 0x7f)
            return true;
    return false;
}

static pl_status send_to_all(sending *s, const char *path, const pl_map *map)
{
    const pl_launch_hosts *hosts = s->hosts;
    char *script;
    PL_TRY(make_script(path, map, &script));
    pl_status status = pl_launch_send(
        &(pl_launch_file) { .path = path,
                            .name = path,
                            .script = script,
                            .ms = LEAST_MS +
                                  (int64_t)(map->bytes / BYTES_PER_MS) },
        &hosts->list, &hosts->reach, s->answers, s->interrupt);
    for (int32_t h = 0; h < hosts->list.count; h++) {
        s->sent += s->answers[h] != NULL && strcmp(s->answers[h], "sent") == 0;
        pl_mem_free(s->answers[h]);
        s->answers[h] = NULL;
    }
    s->files++;
    pl_mem_free(script);
    return status;
}

/* Flags name the path on this host, so the copy gets the same path. */
static pl_status send_file(sending *s, const char *path)
{
    char folder[PATH_MAX], *whole = NULL;
    pl_map map;
    if (has_control(path))
        return PL_FAIL(PL_USAGE, "--copy: a file name with control characters "
                                 "cannot be passed on");
    if (path[0] != '/' && getcwd(folder, sizeof folder) == NULL)
        return PL_FAIL(PL_IO, "the working folder: %s", strerror(errno));
    PL_TRY(path[0] == '/' ? pl_mem_copy_text(&whole, path)
                          : pl_file_join(&whole, folder, path));
    pl_status status = pl_map_init(&map, whole);
    if (status == PL_OK) {
        status = send_to_all(s, whole, &map);
        pl_map_close(&map);
    }
    pl_mem_free(whole);
    return status;
}

/* The files of a data set in a folder have fixed names. */
static pl_status send_folder(sending *s, const char *folder)
{
    char **names, *path;
    size_t count;
    PL_TRY(pl_file_list(&names, &count, folder));
    pl_status status = PL_OK;
    for (size_t i = 0; i < count && status == PL_OK; i++) {
        if (strstr(names[i], "-ubyte") == NULL)
            continue;
        status = pl_file_join(&path, folder, names[i]);
        if (status != PL_OK)
            break;
        status = send_file(s, path);
        pl_mem_free(path);
    }
    pl_mem_free(names);
    return status;
}

static pl_status send_pattern(sending *s, const char *pattern)
{
    glob_t found;
    if (pl_file_exists(pattern))
        return send_file(s, pattern);
    int code = glob(pattern, 0, NULL, &found);
    if (code != 0)
        return PL_FAIL(code == GLOB_NOSPACE ? PL_NOMEM : PL_NOTFOUND,
                       "--copy: no file %s", pattern);
    pl_status status = PL_OK;
    for (size_t i = 0; i < found.gl_pathc && status == PL_OK; i++)
        status = send_file(s, found.gl_pathv[i]);
    globfree(&found);
    return status;
}

/* A source without a colon is generated. */
static pl_status send_source(sending *s, const char *source)
{
    const char *colon = source != NULL ? strchr(source, ':') : NULL;
    if (colon == NULL)
        return PL_OK;
    if (strncmp(source, "mnist:", 6) == 0 || strncmp(source, "idx:", 4) == 0)
        return send_folder(s, colon + 1);
    return send_pattern(s, colon + 1);
}

pl_status pl_launch_data(const pl_launch_hosts *hosts,
                         const char *const *sources, size_t count,
                         const atomic_bool *interrupt)
{
    sending s = { .hosts = hosts, .interrupt = interrupt };
    pl_status status = PL_OK;
    PL_TRY(PL_NEW(s.answers, (size_t)hosts->list.count));
    for (size_t i = 0; i < count && status == PL_OK; i++)
        status = send_source(&s, sources[i]);
    if (status == PL_OK && s.files > 0)
        pl_log(PL_LOG_INFO, "data: %zu files, %zu copies sent to %d hosts",
               s.files, s.sent, hosts->list.count);
    pl_mem_free(s.answers);
    return status;
}
