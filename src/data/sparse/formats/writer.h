/* writer.h - files of sparse examples: FORMAT:FILE, in the formats that have
 * a writer.
 *
 * A file appears under its name when it is complete.  One whose name ends in
 * .gz or .zst is compressed; readers detect that by its first bytes.
 *
 * Threads: a writer belongs to one. */
#ifndef PL_DATA_SPARSE_FORMATS_WRITER_H
#define PL_DATA_SPARSE_FORMATS_WRITER_H

#include "base/file/file.h"
#include "data/dataset.h"
#include "data/pack/pack.h"
#include "data/source.h"

typedef struct pl_sparse_writer pl_sparse_writer;

typedef struct pl_sparse_writer_ops {
    size_t bytes; /* of the writer's struct, which begins with the base */
    bool mapped;  /* read in place: cannot be compressed */
    /* Optional. */
    pl_status (*open)(pl_sparse_writer *writer);
    pl_status (*put)(pl_sparse_writer *writer, const pl_batch *batch);
    pl_status (*finish)(pl_sparse_writer *writer);
    void (*close)(pl_sparse_writer *writer);
} pl_sparse_writer_ops;

struct pl_sparse_writer {
    const pl_sparse_writer_ops *ops;
    const pl_source_opts *opts;
    pl_file_writer *file;
    pl_packer *packer; /* NULL: not compressed */
    uint64_t offset;   /* bytes put so far, before compression */
};

/* PL_USAGE when `target` is not FORMAT:FILE with a format that can be written,
 * or FILE would be compressed and the format cannot be. */
pl_status pl_sparse_writer_check(const char *target) PL_MUST_CHECK;
pl_status pl_sparse_writer_new(pl_sparse_writer **out, const char *target,
                               const pl_source_opts *opts) PL_MUST_CHECK;
void pl_sparse_writer_free(pl_sparse_writer *writer); /* NULL is fine */

pl_status pl_sparse_writer_put(pl_sparse_writer *writer,
                               const pl_batch *batch) PL_MUST_CHECK;
pl_status pl_sparse_writer_finish(pl_sparse_writer *writer) PL_MUST_CHECK;

/* Bytes of the finished file. */
uint64_t pl_sparse_writer_size(const pl_sparse_writer *writer);

/* For the formats: write bytes to the file. */
pl_status pl_sparse_writer_bytes(pl_sparse_writer *writer, const void *data,
                                 size_t bytes) PL_MUST_CHECK;

#endif
