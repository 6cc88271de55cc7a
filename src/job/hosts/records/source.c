/* Sends the records of a run folder: decides the order, and what is new.
 *
 * I1  of a file that grows, a byte is sent once, in order
 * I2  of a file that is written whole, all messages are from one version of it
 * I3  a checkpoint's manifest is sent when all its other files were */
#include "job/hosts/records/source.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "job/hosts/records/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EVERY_MS 500

/* The state of a file, or of a checkpoint's folder. */
typedef struct known {
    char *path; /* below the run folder */
    pl_record_kind kind;
    struct stat sent_as; /* whole: the version that was sent; st_ino 0: none */
    int64_t sent;        /* grows, lines: bytes; whole: of the version */
    bool folder;         /* a checkpoint */
    bool seen;           /* in the last scan */
} known;

struct pl_record_source {
    pl_record_source_opts opts;
    char *run;
    known *list;
    size_t count, room, at; /* `at`: the next to check */
    int64_t looked_ns;      /* 0: never */
    int file;               /* of the whole file being sent; -1: none */
    struct stat version;    /* ... and its version */
    char bytes[PL_RECORD_CHUNK];
    char text[PL_BASE64_TEXT(PL_RECORD_CHUNK)];
};

pl_status pl_record_source_new(pl_record_source **out,
                               const pl_record_source_opts *opts)
{
    pl_record_source *source;
    PL_TRY(PL_NEW(source, 1));
    source->opts = *opts;
    source->file = -1;
    if (source->opts.every_ms == 0)
        source->opts.every_ms = EVERY_MS;
    pl_status status = pl_mem_copy_text(&source->run, opts->run);
    if (status == PL_OK)
        *out = source;
    else
        pl_record_source_free(source);
    return status;
}

void pl_record_source_free(pl_record_source *source)
{
    if (source == NULL)
        return;
    if (source->file >= 0)
        close(source->file);
    for (size_t i = 0; i < source->count; i++)
        pl_mem_free(source->list[i].path);
    pl_mem_free(source->list);
    pl_mem_free(source->run);
    pl_mem_free(source);
}

/* --- scanning --------------------------------------------------------- */

static known *find(pl_record_source *source, const char *path)
{
    for (size_t i = 0; i < source->count; i++)
        if (strcmp(source->list[i].path, path) == 0)
            return &source->list[i];
    return NULL;
}

static pl_status add(pl_record_source *source, const char *path, bool folder)
{
    known *old = find(source, path);
    if (old != NULL) {
        old->seen = true;
        return PL_OK;
    }
    if (source->count == PL_RECORD_FILES_MOST)
        return PL_OK;
    PL_TRY(PL_GROW(source->list, source->count, source->room));
    known *new = &source->list[source->count];
    *new = (known) { .kind = pl_record_kind_of(path),
                     .folder = folder,
                     .seen = true };
    PL_TRY(pl_mem_copy_text(&new->path, path));
    source->count++;
    return PL_OK;
}

static pl_status add_record(pl_record_source *source, const char *path)
{
    return pl_record_kind_of(path) != PL_RECORD_NONE ? add(source, path, false)
                                                     : PL_OK;
}

/* The names in a folder of the run; none if it does not exist. */
static pl_status list_folder(const pl_record_source *source, const char *folder,
                             char ***names, size_t *count)
{
    char *path;
    *names = NULL;
    *count = 0;
    PL_TRY(pl_file_join(&path, source->run, folder));
    pl_status status =
        pl_file_exists(path) ? pl_file_list(names, count, path) : PL_OK;
    pl_mem_free(path);
    /* It may be removed while it is read. */
    return status == PL_NOMEM ? status : PL_OK;
}

static pl_status look_into(pl_record_source *source, const char *folder,
                           int depth);

static pl_status add_child(pl_record_source *source, const char *folder,
                           const char *name, int depth)
{
    char *path;
    PL_TRY(pl_file_join(&path, folder, name));
    pl_status status = depth == 1       ? add_record(source, path)
                       : name[0] != '.' ? look_into(source, path, depth - 1)
                                        : PL_OK;
    pl_mem_free(path);
    return status;
}

static pl_status look_into(pl_record_source *source, const char *folder,
                           int depth)
{
    char **names;
    size_t count;
    PL_TRY(list_folder(source, folder, &names, &count));
    pl_status status = PL_OK;
    for (size_t i = 0; status == PL_OK && i < count; i++)
        status = add_child(source, folder, names[i], depth);
    pl_mem_free(names);
    return status;
}

static bool is_complete(const pl_record_source *source, const char *checkpoint)
{
    char *path;
    if (pl_mem_format(&path, "%s/%s/%s", source->run, checkpoint,
                      PL_RECORD_MANIFEST) != PL_OK)
        return false;
    bool there = pl_file_exists(path);
    pl_mem_free(path);
    return there;
}

/* The files of a complete checkpoint but its manifest, the manifest, and the
 * folder, which shows when it is removed. */
static pl_status look_at_checkpoint(pl_record_source *source, const char *path)
{
    char **names, *manifest;
    size_t count;
    PL_TRY(list_folder(source, path, &names, &count));
    pl_status status = PL_OK;
    for (size_t i = 0; status == PL_OK && i < count; i++)
        if (strcmp(names[i], PL_RECORD_MANIFEST) != 0)
            status = add_child(source, path, names[i], 1);
    pl_mem_free(names);
    PL_TRY(status);
    PL_TRY(pl_file_join(&manifest, path, PL_RECORD_MANIFEST));
    status = add_record(source, manifest);
    pl_mem_free(manifest);
    PL_TRY(status);
    return add(source, path, true);
}

static pl_status look_at_checkpoints(pl_record_source *source)
{
    char **names;
    size_t count;
    bool newest = true;
    PL_TRY(list_folder(source, PL_RECORD_CHECKPOINTS, &names, &count));
    pl_status status = PL_OK;
    for (size_t i = count; status == PL_OK && i-- > 0;) { /* by rising step */
        char *path;
        status = pl_file_join(&path, PL_RECORD_CHECKPOINTS, names[i]);
        if (status != PL_OK)
            break;
        if (pl_record_is_checkpoint(path) && is_complete(source, path) &&
            (newest || !source->opts.resume)) {
            status = look_at_checkpoint(source, path);
            newest = false;
        }
        pl_mem_free(path);
    }
    pl_mem_free(names);
    return status;
}

static pl_status look(pl_record_source *source)
{
    for (size_t i = 0; i < source->count; i++)
        source->list[i].seen = false;
    if (source->opts.resume) {
        PL_TRY(look_at_checkpoints(source));
        PL_TRY(look_into(source, "resources", 1));
        return add_record(source, "run.json");
    }
    for (const char *const *name = pl_record_files; *name != NULL; name++)
        PL_TRY(add_record(source, *name));
    for (const pl_record_folder *f = pl_record_folders; f->name != NULL; f++)
        if (strcmp(f->name, PL_RECORD_CHECKPOINTS) != 0)
            PL_TRY(look_into(source, f->name, f->depth));
    return look_at_checkpoints(source);
}

/* --- sending ---------------------------------------------------------- */

static pl_status send_chunk(pl_record_source *source, const known *file,
                            size_t bytes, bool last)
{
    pl_base64_encode(source->text, source->bytes, bytes);
    return source->opts.send(source->opts.context,
                             &(pl_control_message) {
                                 .kind = PL_CONTROL_RECORD,
                                 .text = file->path,
                                 .offset = file->sent,
                                 .data = source->text,
                                 .last = last,
                             });
}

/* -1: missing, or not a regular file. */
static int open_file(const pl_record_source *source, const known *file,
                     struct stat *info)
{
    char *path;
    if (pl_file_join(&path, source->run, file->path) != PL_OK)
        return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    pl_mem_free(path);
    if (fd >= 0 && (fstat(fd, info) != 0 || !S_ISREG(info->st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

static size_t read_at(int fd, char *bytes, int64_t offset)
{
    ssize_t got;
    do
        got = pread(fd, bytes, PL_RECORD_CHUNK, offset);
    while (got < 0 && errno == EINTR);
    return got > 0 ? (size_t)got : 0;
}

/* Up to the last newline; a chunk without one is sent whole, and the reader of
 * the file skips it. */
static size_t whole_lines(const char *bytes, size_t count)
{
    const char *end = memrchr(bytes, '\n', count);
    return end != NULL                ? (size_t)(end - bytes) + 1
           : count == PL_RECORD_CHUNK ? count
                                      : 0;
}

static pl_status send_grown(pl_record_source *source, known *file, bool *sent)
{
    struct stat info;
    int fd = open_file(source, file, &info);
    if (fd < 0)
        return PL_OK;
    size_t bytes =
        info.st_size > file->sent ? read_at(fd, source->bytes, file->sent) : 0;
    close(fd);
    if (file->kind == PL_RECORD_LINES)
        bytes = whole_lines(source->bytes, bytes);
    if (bytes == 0)
        return PL_OK;
    PL_TRY(send_chunk(source, file, bytes, false));
    file->sent += (int64_t)bytes;
    *sent = true;
    return PL_OK;
}

static bool is_version(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Send the next chunk of the open file; true: it was the last. */
static pl_status send_next(pl_record_source *source, known *file, bool *last)
{
    size_t bytes = read_at(source->file, source->bytes, file->sent);
    *last =
        bytes == 0 || file->sent + (int64_t)bytes >= source->version.st_size;
    PL_TRY(send_chunk(source, file, bytes, *last));
    file->sent += (int64_t)bytes;
    return PL_OK;
}

static pl_status send_whole(pl_record_source *source, known *file, bool *sent)
{
    bool last;
    if (source->file < 0) {
        source->file = open_file(source, file, &source->version);
        if (source->file < 0)
            return PL_OK;
        if (is_version(&source->version, &file->sent_as)) {
            close(source->file);
            source->file = -1;
            return PL_OK;
        }
        file->sent = 0;
    }
    PL_TRY(send_next(source, file, &last));
    *sent = true;
    if (!last)
        return PL_OK;
    close(source->file);
    source->file = -1;
    file->sent_as = source->version;
    return PL_OK;
}

/* Report a removed checkpoint, and forget its files. */
static pl_status send_gone(pl_record_source *source, known *file, bool *sent)
{
    if (file->seen)
        return PL_OK;
    *sent = true;
    return source->opts.send(source->opts.context,
                             &(pl_control_message) {
                                 .kind = PL_CONTROL_RECORD,
                                 .text = file->path,
                                 .data = "",
                                 .gone = true,
                             });
}

static void forget(pl_record_source *source, size_t i)
{
    pl_mem_free(source->list[i].path);
    memmove(&source->list[i], &source->list[i + 1],
            (source->count - i - 1) * sizeof *source->list);
    source->count--;
}

/* Send the next chunk of a file, if there is anything new. */
static pl_status send_of(pl_record_source *source, known *file, bool *sent)
{
    if (file->folder)
        return send_gone(source, file, sent);
    if (!file->seen && source->file < 0)
        return PL_OK;
    return file->kind == PL_RECORD_WHOLE ? send_whole(source, file, sent)
                                         : send_grown(source, file, sent);
}

/* Continue the round; `at` stays on a file until it is sent. */
static pl_status send_round(pl_record_source *source, bool *sent)
{
    while (!*sent && source->at < source->count) {
        known *file = &source->list[source->at];
        PL_TRY(send_of(source, file, sent));
        if (!file->seen && source->file < 0)
            forget(source, source->at);
        else if (!*sent)
            source->at++;
    }
    return PL_OK;
}

pl_status pl_record_source_skip(pl_record_source *source)
{
    PL_TRY(look(source));
    for (size_t i = 0; i < source->count; i++) {
        known *file = &source->list[i];
        int fd = file->folder ? -1 : open_file(source, file, &file->sent_as);
        if (fd < 0)
            continue;
        file->sent = file->sent_as.st_size;
        close(fd);
    }
    return PL_OK;
}

pl_status pl_record_source_step(pl_record_source *source, bool look_now,
                                bool *sent)
{
    int64_t now_ns = pl_clock_now_ns(pl_clock_real());
    *sent = false;
    PL_TRY(send_round(source, sent));
    bool due = source->looked_ns == 0 || look_now ||
               now_ns - source->looked_ns >= source->opts.every_ms * 1000000;
    if (*sent || !due)
        return PL_OK;
    PL_TRY(look(source));
    source->looked_ns = now_ns;
    source->at = 0;
    return send_round(source, sent);
}
