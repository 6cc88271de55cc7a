/* files.h - the files of a sparse source, ready to be decoded.
 *
 * Threads: any. */
#ifndef PL_DATA_SPARSE_FILES_H
#define PL_DATA_SPARSE_FILES_H

#include "data/sparse/formats/format.h"

/* The files a pattern names, in the order of their names, mapped, and unpacked
 * if they are gzip, zlib or zstd (into opts->cache_dir, or memory when that is
 * NULL, within opts->unpack_ratio). */
pl_status pl_sparse_files_new(pl_sparse_file **out, int32_t *count,
                              const pl_sparse_format *format,
                              const char *pattern,
                              const pl_source_opts *opts) PL_MUST_CHECK;

/* One file called "memory" of these bytes, unpacked where needed. */
pl_status pl_sparse_files_new_memory(pl_sparse_file **out,
                                     const pl_sparse_format *format,
                                     const uint8_t *data, size_t bytes,
                                     const pl_source_opts *opts) PL_MUST_CHECK;

void pl_sparse_files_free(pl_sparse_file *files, int32_t count);

#endif
