/* output.c - resolves the name that a user gave an output file.
 *
 * Decides between three ways to write it: a descriptor of this process
 * (/dev/stdout, /dev/fd/N) is shared, which keeps earlier output; a special
 * file (device, FIFO) is opened and written to directly; a regular or missing
 * file is replaced at the end of the chain of symbolic links, which keeps the
 * links. */
#include "base/file/file_priv.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINKS_MAX      40 /* the kernel's limit */
#define READER_WAIT_MS 60000
#define READER_POLL_MS 20

/* The folder part of `path`, "." when it has none; the caller frees *out. */
static pl_status folder_of(char **out, const char *path)
{
    int length = (int)(pl_file_last_name(path) - path);
    return length == 0 ? pl_mem_copy_text(out, ".")
                       : pl_mem_format(out, "%.*s", length, path);
}

/* N when the path is /proc/self/fd/N under any name, otherwise -1. */
static pl_status own_descriptor(const char *path, int *out)
{
    char *folder, real[PATH_MAX], own[64], *end;
    *out = -1;
    PL_TRY(folder_of(&folder, path));
    bool found = realpath(folder, real) != NULL;
    pl_mem_free(folder);
    snprintf(own, sizeof own, "/proc/%ld/fd", (long)getpid());
    if (!found || strcmp(real, own) != 0)
        return PL_OK;
    const char *name = pl_file_last_name(path);
    long number = strtol(name, &end, 10);
    if (end != name && *end == '\0' && number >= 0 && number <= INT_MAX)
        *out = (int)number;
    return PL_OK;
}

/* Replace *path, a link, by its target. */
static pl_status follow(char **path)
{
    char target[PATH_MAX], *next;
    ssize_t length;
    PL_SYSTEM_CALL(length, readlink(*path, target, sizeof target - 1));
    if (length < 0)
        return pl_file_fail_errno("follow the link", *path, true);
    target[length] = '\0';
    if (target[0] == '/')
        PL_TRY(pl_mem_copy_text(&next, target));
    else
        PL_TRY(pl_mem_format(&next, "%.*s%s",
                             (int)(pl_file_last_name(*path) - *path), *path,
                             target));
    pl_mem_free(*path);
    *path = next;
    return PL_OK;
}

/* *exists is false, with `info` unchanged, when nothing has this name. */
static pl_status look(const char *path, struct stat *info, bool *exists)
{
    int result;
    PL_SYSTEM_CALL(result, lstat(path, info));
    *exists = result == 0;
    if (result == 0 || errno == ENOENT)
        return PL_OK;
    return pl_file_fail_errno("create", path, true);
}

/* Follow links until the path is something else or does not exist.  The links
 * of /proc/self/fd are not followed: their file may have been removed, and the
 * descriptor has an offset in it. */
static pl_status resolve(pl_output *output, struct stat *info, bool *exists)
{
    for (int links = 0; links < LINKS_MAX; links++) {
        int descriptor;
        PL_TRY(own_descriptor(output->path, &descriptor));
        if (descriptor >= 0) {
            PL_SYSTEM_CALL(output->file, fcntl(descriptor, F_DUPFD_CLOEXEC, 3));
            return output->file < 0
                       ? pl_file_fail_errno("open", output->path, true)
                       : PL_OK;
        }
        PL_TRY(look(output->path, info, exists));
        if (!*exists || !S_ISLNK(info->st_mode))
            return PL_OK;
        PL_TRY(follow(&output->path));
    }
    errno = ELOOP;
    return pl_file_fail_errno("follow the link", output->path, true);
}

/* A FIFO that no process reads cannot be opened yet. */
static pl_status open_special(pl_output *output, const struct stat *info)
{
    int flags = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), READER_WAIT_MS);
    for (;;) {
        PL_SYSTEM_CALL(output->file, open(output->path, flags));
        if (output->file >= 0 || errno != ENXIO || !S_ISFIFO(info->st_mode))
            break;
        if (pl_deadline_passed(deadline))
            return PL_FAIL(PL_TIMEOUT,
                           "write %s: no process opened this FIFO for reading "
                           "within %d s; start the reader first",
                           output->path, READER_WAIT_MS / 1000);
        poll(NULL, 0, READER_POLL_MS);
    }
    if (output->file < 0)
        return pl_file_fail_errno("open", output->path, true);
    int result;
    PL_SYSTEM_CALL(result, fcntl(output->file, F_SETFL, O_WRONLY));
    return result < 0 ? pl_file_fail_errno("open", output->path, true) : PL_OK;
}

static pl_status check_kind(const char *path, const struct stat *info)
{
    if (S_ISDIR(info->st_mode))
        return PL_FAIL(PL_IO, "%s is a folder; name a file in it", path);
    if (S_ISSOCK(info->st_mode))
        return PL_FAIL(PL_IO,
                       "%s is a socket, which cannot be written to as a file; "
                       "name a file, FIFO or device",
                       path);
    return PL_OK;
}

/* The folder of the file must exist. */
static pl_status check_folder(const char *path)
{
    char *folder;
    struct stat info;
    PL_TRY(folder_of(&folder, path));
    int result;
    PL_SYSTEM_CALL(result, stat(folder, &info));
    pl_status status = PL_OK;
    if (result < 0 && errno == ENOENT)
        status = PL_FAIL(PL_IO,
                         "create %s: there is no folder %s; make it first, or "
                         "name another file",
                         path, folder);
    else if (result < 0)
        status = pl_file_fail_errno("create", path, true);
    pl_mem_free(folder);
    return status;
}

static pl_status open_place(pl_output *output)
{
    struct stat info = { 0 };
    bool exists = false;
    PL_TRY(resolve(output, &info, &exists));
    if (output->file >= 0)
        return PL_OK;
    if (!exists)
        return check_folder(output->path);
    PL_TRY(check_kind(output->path, &info));
    if (!S_ISREG(info.st_mode))
        return open_special(output, &info);
    output->exists = true;
    output->owner = info.st_uid;
    output->group = info.st_gid;
    output->mode = info.st_mode & 07777;
    return PL_OK;
}

pl_status pl_output_init(pl_output *output, const char *path)
{
    *output = (pl_output) { .file = -1 };
    if (path[0] == '\0')
        return PL_FAIL(PL_USAGE, "the output file has an empty name");
    PL_TRY(pl_mem_copy_text(&output->path, path));
    pl_status status = open_place(output);
    if (status == PL_OK)
        return PL_OK;
    bool linked = strcmp(output->path, path) != 0;
    pl_output_close(output);
    return linked ? pl_context(status, "%s is a link", path) : status;
}

void pl_output_close(pl_output *output)
{
    if (output->file >= 0)
        close(output->file);
    pl_mem_free(output->path);
    *output = (pl_output) { .file = -1 };
}

pl_status pl_file_stream(int *out, const char *path)
{
    pl_output output;
    PL_TRY(pl_output_init(&output, path));
    PL_ASSERT(output.file >= 0 || output.path != NULL);
    if (output.file < 0)
        PL_SYSTEM_CALL(output.file,
                       open(output.path,
                            O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_CLOEXEC,
                            0666));
    pl_status status = output.file < 0
                           ? pl_file_fail_errno("create", output.path, true)
                           : PL_OK;
    *out = output.file;
    output.file = -1; /* now the caller's */
    pl_output_close(&output);
    return status;
}
