/* writer.c - finds the format that a target names, and writes the format's
 * bytes to the file, compressed when the file's name says so. */
#include "data/sparse/formats/writer.h"

#include "base/buffer.h"
#include "base/mem.h"
#include "data/sparse/formats/format.h"

#include <string.h>

/* "libsvm:FILE | tfrecord:FILE": the formats that can be written, or only those
 * whose files can be compressed. */
static void put_names(pl_buffer *names, bool compressed)
{
    for (const pl_sparse_format *const *f = pl_sparse_formats(); *f != NULL;
         f++)
        if ((*f)->writer != NULL && !(compressed && (*f)->writer->mapped))
            pl_buffer_format(names, "%s%s:FILE", names->bytes > 0 ? " | " : "",
                             (*f)->name);
}

static pl_status refuse(const char *target, const pl_sparse_format *format,
                        const char *path)
{
    pl_buffer names = { 0 };
    put_names(&names, format != NULL);
    pl_status status = pl_buffer_status(&names);
    if (status == PL_OK && format == NULL)
        status = PL_FAIL(PL_USAGE, "'%s' cannot be written, expected %s",
                         target, names.data);
    else if (status == PL_OK)
        status = PL_FAIL(PL_USAGE,
                         "%s: a %s file is read in place and is not "
                         "compressed; leave off the %s, or write %s",
                         target, format->name, strrchr(path, '.'), names.data);
    pl_buffer_close(&names);
    return status;
}

/* The writer of FORMAT:FILE, and where FILE begins. */
static pl_status find_format(const char *target,
                             const pl_sparse_writer_ops **out,
                             const char **path)
{
    const char *colon = strchr(target, ':');
    size_t length = colon != NULL ? (size_t)(colon - target) : 0;
    const pl_sparse_format *format = NULL;
    for (const pl_sparse_format *const *f = pl_sparse_formats(); *f != NULL;
         f++)
        if ((*f)->writer != NULL && strlen((*f)->name) == length &&
            memcmp((*f)->name, target, length) == 0)
            format = *f;
    if (colon == NULL || format == NULL || colon[1] == '\0')
        return refuse(target, NULL, NULL);
    *path = colon + 1;
    if (format->writer->mapped && pl_packing_of_name(*path) != PL_PACKING_NONE)
        return refuse(target, format, *path);
    *out = format->writer;
    return PL_OK;
}

pl_status pl_sparse_writer_check(const char *target)
{
    const pl_sparse_writer_ops *ops;
    const char *path;
    return find_format(target, &ops, &path);
}

pl_status pl_sparse_writer_new(pl_sparse_writer **out, const char *target,
                               const pl_source_opts *opts)
{
    const pl_sparse_writer_ops *ops;
    const char *path;
    PL_TRY(find_format(target, &ops, &path));
    pl_sparse_writer *writer = pl_mem_alloc(1, ops->bytes);
    PL_TRY(pl_mem_check(writer, 1, ops->bytes));
    writer->ops = ops;
    writer->opts = opts;
    pl_status status = pl_file_writer_new_output(&writer->file, path);
    pl_packing packing = pl_packing_of_name(path);
    if (status == PL_OK && packing != PL_PACKING_NONE)
        status = pl_packer_new(&writer->packer, packing, writer->file);
    if (status == PL_OK && ops->open != NULL)
        status = ops->open(writer);
    if (status == PL_OK)
        *out = writer;
    else
        pl_sparse_writer_free(writer);
    return status;
}

void pl_sparse_writer_free(pl_sparse_writer *writer)
{
    if (writer == NULL)
        return;
    writer->ops->close(writer);
    pl_packer_free(writer->packer);
    pl_file_writer_free(writer->file);
    pl_mem_free(writer);
}

pl_status pl_sparse_writer_put(pl_sparse_writer *writer, const pl_batch *batch)
{
    return writer->ops->put(writer, batch);
}

pl_status pl_sparse_writer_finish(pl_sparse_writer *writer)
{
    PL_TRY(writer->ops->finish(writer));
    if (writer->packer != NULL)
        PL_TRY(pl_packer_finish(writer->packer));
    return pl_file_writer_commit(writer->file);
}

uint64_t pl_sparse_writer_size(const pl_sparse_writer *writer)
{
    return writer->packer != NULL ? pl_packer_bytes(writer->packer)
                                  : writer->offset;
}

pl_status pl_sparse_writer_bytes(pl_sparse_writer *writer, const void *data,
                                 size_t bytes)
{
    writer->offset += bytes;
    if (writer->packer != NULL)
        return pl_packer_put(writer->packer, data, bytes);
    return pl_file_writer_put(writer->file, data, bytes);
}
