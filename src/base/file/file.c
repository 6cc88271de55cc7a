/* file.c - reads whole files with their size checked, and replaces files
 * atomically: a temporary name beside the target, fsync, rename. Where an error
 * has a remedy (disk full, too many open files), the message names it. */
#include "base/file/file.h"

#include "base/assert.h"
#include "base/file/file_priv.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t)64 << 10)

static _Thread_local long fail_countdown = -1; /* -1: off */
static _Thread_local int fail_error;
static _Thread_local bool fail_hit;

bool pl_file_fault(void)
{
    if (fail_countdown < 0 || fail_countdown-- > 0)
        return false;
    fail_hit = true;
    errno = fail_error;
    return true;
}

/* What the user can do about it, or "". */
static const char *hint(int error, bool writing)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return "; free some space or choose another folder";
    case EROFS:
        return "; choose another folder";
    case EACCES:
    case EPERM:
        return writing ? "; make the folder writable or choose another"
                       : "; make it readable for this user";
    case EMFILE:
    case ENFILE:
        return "; raise the limit of open files (ulimit -n)";
    default:
        return "";
    }
}

pl_status pl_file_fail_errno(const char *verb, const char *path, bool writing)
{
    int error = errno;
    pl_status status = PL_IO;
    if (error == ENOMEM)
        status = PL_NOMEM;
    else if (error == ENOENT && !writing)
        status = PL_NOTFOUND;
    return PL_FAIL(status, "%s %s: %s%s", verb, path, strerror(error),
                   hint(error, writing));
}

pl_status pl_file_open_to_read(int *out, const char *path, struct stat *info)
{
    int file;
    int result;
    /* Without O_NONBLOCK a FIFO would block until it has a writer. */
    PL_SYSTEM_CALL(file,
                   open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (file < 0)
        return pl_file_fail_errno("open", path, false);
    PL_SYSTEM_CALL(result, fstat(file, info));
    if (result == 0 && S_ISREG(info->st_mode)) {
        *out = file;
        return PL_OK;
    }
    if (result == 0)
        errno = EISDIR;
    pl_status status = result == 0 && !S_ISDIR(info->st_mode)
                           ? PL_FAIL(PL_IO, "open %s: not a regular file", path)
                           : pl_file_fail_errno("open", path, false);
    close(file);
    return status;
}

/* Read all of `file` into *text, which grows; *used counts the bytes. */
static pl_status read_all(int file, char **text, size_t *used, size_t most,
                          const char *path)
{
    size_t room = 0;
    for (;;) {
        if (*used == room) {
            room = room == 0 ? BUFFER_BYTES : room * 2;
            PL_TRY(PL_RESIZE(*text, room + 1));
        }
        ssize_t got;
        PL_SYSTEM_CALL(got, read(file, *text + *used, room - *used));
        if (got < 0)
            return pl_file_fail_errno("read", path, false);
        if (got == 0)
            return PL_OK;
        *used += (size_t)got;
        if (*used > most)
            return PL_FAIL(PL_FORMAT, "%s: longer than %zu bytes", path, most);
    }
}

pl_status pl_file_read_text(char **out, const char *path, size_t most)
{
    int file = -1;
    struct stat info;
    PL_TRY(pl_file_open_to_read(&file, path, &info));

    char *text = NULL;
    size_t used = 0;
    pl_status status = read_all(file, &text, &used, most, path);
    close(file);
    if (status == PL_OK && memchr(text, '\0', used) != NULL)
        status = PL_FAIL(PL_FORMAT, "%s: not text: holds a NUL byte", path);
    if (status != PL_OK) {
        pl_mem_free(text);
        return status;
    }
    text[used] = '\0';
    *out = text;
    return PL_OK;
}

pl_status pl_file_read_end(const char *path, char *text, size_t room,
                           size_t *bytes, int64_t *first)
{
    int file = -1;
    struct stat info;
    PL_TRY(pl_file_open_to_read(&file, path, &info));
    size_t size = (size_t)info.st_size;
    off_t from = (off_t)(size > room - 1 ? size - (room - 1) : 0);
    ssize_t got;
    PL_SYSTEM_CALL(got, pread(file, text, room - 1, from));
    pl_status status =
        got < 0 ? pl_file_fail_errno("read", path, false) : PL_OK;
    close(file);
    text[got > 0 ? got : 0] = '\0';
    *bytes = got > 0 ? (size_t)got : 0;
    *first = from;
    return status;
}

struct pl_file_writer {
    char *path;
    char *temporary; /* the name while it is written */
    int file;        /* -1: closed */
    bool in_place;   /* written directly, without a temporary file */
    bool failed;     /* a put failed; must not be committed */
    size_t used;     /* bytes in the buffer, not yet written */
    uint8_t buffer[BUFFER_BYTES];
};

/* Create and open a temporary file beside the writer's path.  A name left
 * behind by a dead process with the same pid is skipped. */
static pl_status open_temporary(pl_file_writer *writer)
{
    static atomic_uint next;
    const char *name = pl_file_last_name(writer->path);
    do {
        pl_mem_free(writer->temporary);
        writer->temporary = NULL;
        PL_TRY(pl_mem_format(&writer->temporary, "%.*s.%s.%ld-%u.tmp",
                             (int)(name - writer->path), writer->path, name,
                             (long)getpid(), atomic_fetch_add(&next, 1)));
        PL_SYSTEM_CALL(writer->file,
                       open(writer->temporary,
                            O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    } while (writer->file < 0 && errno == EEXIST);
    return writer->file < 0 ? pl_file_fail_errno("create", writer->path, true)
                            : PL_OK;
}

pl_status pl_file_writer_new(pl_file_writer **out, const char *path)
{
    pl_status status;
    pl_file_writer *writer;
    PL_TRY(PL_NEW(writer, 1));
    writer->file = -1;
    PL_TRY_OUT(status, pl_mem_copy_text(&writer->path, path));
    PL_TRY_OUT(status, open_temporary(writer));
    *out = writer;
    writer = NULL; /* now the caller's */
out:
    pl_file_writer_free(writer);
    return status;
}

/* Give the new file the owner and mode of the one it replaces; without the
 * right to change the owner, only the mode. */
static pl_status keep_mode(const pl_file_writer *writer,
                           const pl_output *output)
{
    int result;
    if (!output->exists)
        return PL_OK;
    PL_SYSTEM_CALL(result, fchown(writer->file, output->owner, output->group));
    if (result < 0 && errno != EPERM)
        return pl_file_fail_errno("set the owner of", writer->path, true);
    /* Without the owner, no set-user-ID or set-group-ID bit. */
    mode_t mode = result < 0 ? output->mode & 0777 : output->mode;
    PL_SYSTEM_CALL(result, fchmod(writer->file, mode));
    return result < 0
               ? pl_file_fail_errno("set the mode of", writer->path, true)
               : PL_OK;
}

pl_status pl_file_writer_new_output(pl_file_writer **out, const char *path)
{
    pl_status status;
    pl_file_writer *writer = NULL;
    pl_output output;
    PL_TRY(pl_output_init(&output, path));
    PL_TRY_OUT(status, PL_NEW(writer, 1));
    writer->file = output.file;
    writer->in_place = output.file >= 0;
    output.file = -1; /* now the writer's */
    writer->path = output.path;
    output.path = NULL;
    if (!writer->in_place) {
        PL_TRY_OUT(status, open_temporary(writer));
        PL_TRY_OUT(status, keep_mode(writer, &output));
    }
    *out = writer;
    writer = NULL; /* now the caller's */
    status = PL_OK;
out:
    pl_file_writer_free(writer);
    pl_output_close(&output);
    return status;
}

static pl_status write_all(pl_file_writer *writer, const uint8_t *data,
                           size_t bytes)
{
    while (bytes > 0) {
        ssize_t put;
        PL_SYSTEM_CALL(put, write(writer->file, data, bytes));
        if (put < 0) {
            writer->failed = true;
            return pl_file_fail_errno("write", writer->path, true);
        }
        data += put;
        bytes -= (size_t)put;
    }
    return PL_OK;
}

static pl_status write_buffer(pl_file_writer *writer)
{
    size_t used = writer->used;
    writer->used = 0;
    return write_all(writer, writer->buffer, used);
}

pl_status pl_file_writer_put(pl_file_writer *writer, const void *data,
                             size_t bytes)
{
    if (bytes > BUFFER_BYTES - writer->used)
        PL_TRY(write_buffer(writer));
    if (bytes > BUFFER_BYTES)
        return write_all(writer, data, bytes);
    if (bytes > 0)
        memcpy(writer->buffer + writer->used, data, bytes);
    writer->used += bytes;
    return PL_OK;
}

/* Close the file; an error that close reports (NFS, quotas) is a failure. */
static pl_status close_written(pl_file_writer *writer)
{
    int result = close(writer->file);
    writer->file = -1; /* Linux: closed even after EINTR */
    if (pl_file_fault())
        result = -1;
    if (result < 0 && errno != EINTR)
        return pl_file_fail_errno("close", writer->path, true);
    return PL_OK;
}

pl_status pl_file_writer_commit(pl_file_writer *writer)
{
    PL_ASSERT(writer->file >= 0 && !writer->failed);
    PL_TRY(write_buffer(writer));
    int result;
    PL_SYSTEM_CALL(result, fsync(writer->file));
    if (result < 0 && writer->in_place && (errno == EINVAL || errno == EROFS))
        result = 0; /* a pipe or device that cannot be flushed */
    if (result < 0)
        return pl_file_fail_errno("flush", writer->path, true);
    PL_TRY(close_written(writer));
    if (writer->in_place)
        return PL_OK;
    PL_SYSTEM_CALL(result, rename(writer->temporary, writer->path));
    if (result < 0)
        return pl_file_fail_errno("rename to", writer->path, true);
    pl_mem_free(writer->temporary); /* it was renamed */
    writer->temporary = NULL;
    return pl_file_flush_folder_of(writer->path);
}

void pl_file_writer_free(pl_file_writer *writer)
{
    if (writer == NULL)
        return;
    if (writer->file >= 0)
        close(writer->file);
    if (writer->temporary != NULL)
        unlink(writer->temporary); /* best effort: nothing reads dot names */
    pl_mem_free(writer->temporary);
    pl_mem_free(writer->path);
    pl_mem_free(writer);
}

pl_status pl_file_replace(const char *path, const void *data, size_t bytes)
{
    pl_status status;
    pl_file_writer *writer = NULL;
    PL_TRY_OUT(status, pl_file_writer_new(&writer, path));
    PL_TRY_OUT(status, pl_file_writer_put(writer, data, bytes));
    PL_TRY_OUT(status, pl_file_writer_commit(writer));
out:
    pl_file_writer_free(writer);
    return status;
}

pl_status pl_file_output(const char *path, const void *data, size_t bytes)
{
    pl_status status;
    pl_file_writer *writer = NULL;
    PL_TRY_OUT(status, pl_file_writer_new_output(&writer, path));
    PL_TRY_OUT(status, pl_file_writer_put(writer, data, bytes));
    PL_TRY_OUT(status, pl_file_writer_commit(writer));
out:
    pl_file_writer_free(writer);
    return status;
}

bool pl_file_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

void pl_file_fail_at(long nth, int error)
{
    fail_countdown = nth;
    fail_error = error;
    fail_hit = false;
}

bool pl_file_fail_off(void)
{
    fail_countdown = -1;
    return fail_hit;
}
