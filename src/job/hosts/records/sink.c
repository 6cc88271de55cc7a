/* Takes the records of one host: decides where in the run folder they go, and
 * rejects what is not a record. */
#include "job/hosts/records/sink.h"

#include "base/file/file.h"
#include "base/mem.h"
#include "base/record/timeline.h"
#include "base/text/base64.h"
#include "job/hosts/records/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_MOST 1000 /* files of one name to try */

/* A file that grows. */
typedef struct grown {
    char *path; /* the host's name for it */
    char *name; /* the file here */
    int64_t bytes;
} grown;

struct pl_record_sink {
    char *run;
    grown *list;
    size_t count, room;
    pl_file_writer *writer; /* of the whole file being received; or NULL */
    char *path;             /* ... the host's name for it */
    int64_t bytes;          /* ... received */
    char data[PL_RECORD_CHUNK];
};

pl_status pl_record_sink_new(pl_record_sink **out, const char *run)
{
    pl_record_sink *sink;
    PL_TRY(PL_NEW(sink, 1));
    pl_status status = pl_mem_copy_text(&sink->run, run);
    if (status == PL_OK)
        *out = sink;
    else
        pl_record_sink_free(sink);
    return status;
}

static void drop_whole(pl_record_sink *sink)
{
    pl_file_writer_free(sink->writer);
    sink->writer = NULL;
    pl_mem_free(sink->path);
    sink->path = NULL;
    sink->bytes = 0;
}

void pl_record_sink_free(pl_record_sink *sink)
{
    if (sink == NULL)
        return;
    drop_whole(sink);
    for (size_t i = 0; i < sink->count; i++) {
        pl_mem_free(sink->list[i].path);
        pl_mem_free(sink->list[i].name);
    }
    pl_mem_free(sink->list);
    pl_mem_free(sink->run);
    pl_mem_free(sink);
}

/* --- places ----------------------------------------------------------- */

/* Make the folder that contains a file of the run. */
static pl_status make_parent(const char *file)
{
    char *folder;
    int bytes = (int)(strrchr(file, '/') - file);
    PL_TRY(pl_mem_format(&folder, "%.*s", bytes, file));
    pl_status status =
        pl_file_exists(folder) ? PL_OK : pl_file_make_folder(folder);
    pl_mem_free(folder);
    return status;
}

static pl_status make_place(const pl_record_sink *sink, const char *path,
                            char **out)
{
    char *file;
    PL_TRY(pl_file_join(&file, sink->run, path));
    pl_status status = make_parent(file);
    if (status == PL_OK)
        *out = file;
    else
        pl_mem_free(file);
    return status;
}

/* The n-th name of a file: "node.csv", "node-2.csv". */
static pl_status number_name(const char *file, int n, char **out)
{
    static const char table[] = ".csv";
    size_t bytes = strlen(file), tail = sizeof table - 1;
    bool is_table = bytes > tail && strcmp(file + bytes - tail, table) == 0;
    if (n == 1)
        return pl_mem_copy_text(out, file);
    return pl_mem_format(out, "%.*s-%d%s",
                         (int)(is_table ? bytes - tail : bytes), file, n,
                         is_table ? table : "");
}

/* Make the file under the first free one of its names. */
static pl_status make_file(const char *file, char **out)
{
    for (int n = 1; n <= NAMES_MOST; n++) {
        PL_TRY(number_name(file, n, out));
        int fd = open(*out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        int why = errno;
        if (fd >= 0) {
            close(fd);
            return PL_OK;
        }
        pl_mem_free(*out);
        *out = NULL;
        if (why != EEXIST)
            return PL_FAIL(PL_IO, "make %s: %s", file, strerror(why));
    }
    return PL_FAIL(PL_IO, "make %s: there are %d of that name", file,
                   NAMES_MOST);
}

/* --- files that grow -------------------------------------------------- */

static grown *find_grown(const pl_record_sink *sink, const char *path)
{
    for (size_t i = 0; i < sink->count; i++)
        if (strcmp(sink->list[i].path, path) == 0)
            return &sink->list[i];
    return NULL;
}

/* The host continues a file that it got from here. */
static pl_status go_on(const char *file, int64_t offset, char **out)
{
    struct stat info;
    if (lstat(file, &info) != 0 || !S_ISREG(info.st_mode) ||
        info.st_size != offset)
        return PL_FAIL(PL_PEER, "%s: received byte %lld, which is not the next",
                       file, (long long)offset);
    return pl_mem_copy_text(out, file);
}

static pl_status fill_grown(const pl_record_sink *sink,
                            const pl_control_message *message, grown *file)
{
    char *place;
    PL_TRY(pl_mem_copy_text(&file->path, message->text));
    PL_TRY(make_place(sink, message->text, &place));
    pl_status status = pl_record_kind_of(message->text) == PL_RECORD_LINES
                           ? pl_mem_copy_text(&file->name, place)
                       : message->offset > 0
                           ? go_on(place, message->offset, &file->name)
                           : make_file(place, &file->name);
    pl_mem_free(place);
    file->bytes = message->offset;
    return status;
}

static pl_status add_grown(pl_record_sink *sink,
                           const pl_control_message *message, grown **out)
{
    if (sink->count == PL_RECORD_FILES_MOST)
        return PL_FAIL(PL_PEER, "more than %d records", PL_RECORD_FILES_MOST);
    PL_TRY(PL_GROW(sink->list, sink->count, sink->room));
    grown *file = &sink->list[sink->count];
    *file = (grown) { 0 };
    pl_status status = fill_grown(sink, message, file);
    if (status != PL_OK) {
        pl_mem_free(file->path);
        pl_mem_free(file->name);
        return status;
    }
    sink->count++;
    *out = file;
    return PL_OK;
}

static pl_status append(const grown *file, const char *data, size_t bytes)
{
    int fd = open(file->name, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return PL_FAIL(PL_IO, "open %s: %s", file->name, strerror(errno));
    pl_status status = PL_OK;
    while (bytes > 0 && status == PL_OK) {
        ssize_t wrote = write(fd, data, bytes);
        if (wrote < 0 && errno != EINTR)
            status =
                PL_FAIL(PL_IO, "write %s: %s", file->name, strerror(errno));
        data += wrote > 0 ? wrote : 0;
        bytes -= wrote > 0 ? (size_t)wrote : 0;
    }
    close(fd);
    return status;
}

static pl_status take_grown(pl_record_sink *sink,
                            const pl_control_message *message, size_t bytes)
{
    grown *file = find_grown(sink, message->text);
    if (file == NULL)
        PL_TRY(add_grown(sink, message, &file));
    if (message->offset != file->bytes)
        return PL_FAIL(PL_PEER, "%s: received byte %lld, expected %lld",
                       message->text, (long long)message->offset,
                       (long long)file->bytes);
    PL_TRY(pl_record_kind_of(message->text) == PL_RECORD_LINES
               ? pl_timeline_append(sink->run, sink->data, bytes)
               : append(file, sink->data, bytes));
    file->bytes += (int64_t)bytes;
    return PL_OK;
}

/* --- whole files ------------------------------------------------------ */

static pl_status begin_whole(pl_record_sink *sink, const char *path)
{
    char *place;
    drop_whole(sink);
    PL_TRY(make_place(sink, path, &place));
    pl_status status = pl_file_writer_new(&sink->writer, place);
    pl_mem_free(place);
    return status == PL_OK ? pl_mem_copy_text(&sink->path, path) : status;
}

static pl_status take_whole(pl_record_sink *sink,
                            const pl_control_message *message, size_t bytes)
{
    if (message->offset == 0)
        PL_TRY(begin_whole(sink, message->text));
    if (sink->writer == NULL || sink->path == NULL ||
        strcmp(sink->path, message->text) != 0 ||
        message->offset != sink->bytes)
        return PL_FAIL(PL_PEER, "%s: received byte %lld, which is not the next",
                       message->text, (long long)message->offset);
    PL_TRY(pl_file_writer_put(sink->writer, sink->data, bytes));
    sink->bytes += (int64_t)bytes;
    if (!message->last)
        return PL_OK;
    pl_status status = pl_file_writer_commit(sink->writer);
    drop_whole(sink);
    return status;
}

/* The manifest goes first: half a checkpoint must not look complete. */
static pl_status remove_checkpoint(const pl_record_sink *sink, const char *path)
{
    char *folder, *manifest = NULL;
    PL_TRY(pl_file_join(&folder, sink->run, path));
    pl_status status = pl_file_join(&manifest, folder, PL_RECORD_MANIFEST);
    if (status == PL_OK)
        status = pl_file_remove_all(manifest);
    if (status == PL_OK)
        status = pl_file_remove_all(folder);
    pl_mem_free(manifest);
    pl_mem_free(folder);
    return status;
}

pl_status pl_record_sink_take(pl_record_sink *sink,
                              const pl_control_message *message)
{
    size_t bytes;
    if (message->gone && pl_record_is_checkpoint(message->text))
        return remove_checkpoint(sink, message->text);
    pl_record_kind kind = pl_record_kind_of(message->text);
    if (kind == PL_RECORD_NONE || message->gone)
        return PL_FAIL(PL_PEER, "a file that is not a record of a run");
    PL_TRY(
        pl_base64_decode(sink->data, sizeof sink->data, &bytes, message->data));
    return kind == PL_RECORD_WHOLE ? take_whole(sink, message, bytes)
                                   : take_grown(sink, message, bytes);
}
