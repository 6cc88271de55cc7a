/* pack.h - writes a file as a gzip or zstd stream; unpack.h reads it.
 *
 * Threads: a packer belongs to one. */
#ifndef PL_DATA_PACK_PACK_H
#define PL_DATA_PACK_PACK_H

#include "base/file/file.h"
#include "data/pack/unpack.h"

typedef struct pl_packer pl_packer;

/* By the suffix of the name: .gz and .zst. */
pl_packing pl_packing_of_name(const char *path);

/* Compressed bytes go to `file`, which is borrowed.  `packing` is not
 * PL_PACKING_NONE. */
pl_status pl_packer_new(pl_packer **out, pl_packing packing,
                        pl_file_writer *file) PL_MUST_CHECK;
void pl_packer_free(pl_packer *packer); /* NULL is fine */

pl_status pl_packer_put(pl_packer *packer, const void *data,
                        size_t bytes) PL_MUST_CHECK;
/* The end of the stream; nothing is put after it. */
pl_status pl_packer_finish(pl_packer *packer) PL_MUST_CHECK;

/* Compressed bytes so far. */
uint64_t pl_packer_bytes(const pl_packer *packer);

#endif
