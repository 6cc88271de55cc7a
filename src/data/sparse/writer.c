#include "data/sparse/writer.h"

#include "base/mem.h"

#include <string.h>

static const pl_sparse_writer_ops *const formats[] = {
    &pl_cache_writer,
    &pl_libsvm_writer,
    &pl_tfrecord_writer,
};

pl_status pl_sparse_writer_new(pl_sparse_writer **out, const char *target,
                               const pl_source_opts *opts)
{
    const char *colon = strchr(target, ':');
    const pl_sparse_writer_ops *ops = NULL;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (colon != NULL &&
            strlen(formats[i]->name) == (size_t)(colon - target) &&
            memcmp(formats[i]->name, target, (size_t)(colon - target)) == 0)
            ops = formats[i];
    if (ops == NULL || colon[1] == '\0')
        return PL_FAIL(
            PL_USAGE, "'%s' cannot be written, expected " PL_SPARSE_WRITER_LIST,
            target);
    pl_sparse_writer *writer = pl_mem_alloc(1, ops->bytes);
    PL_TRY(pl_mem_check(writer, 1, ops->bytes));
    writer->ops = ops;
    writer->opts = opts;
    pl_status status = pl_file_writer_new_output(&writer->file, colon + 1);
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
    return pl_file_writer_commit(writer->file);
}

pl_status pl_sparse_writer_bytes(pl_sparse_writer *writer, const void *data,
                                 size_t bytes)
{
    writer->offset += bytes;
    return pl_file_writer_put(writer->file, data, bytes);
}
