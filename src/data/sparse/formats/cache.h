/* cache.h - the binary cache of sparse examples: docs/formats/cache.md.
 *
 * Independent blocks of some thousand examples: checksum, labels as bits,
 * packed ids, and plain values, or none when all are 1.
 *
 * Threads: any. */
#ifndef PL_DATA_SPARSE_FORMATS_CACHE_H
#define PL_DATA_SPARSE_FORMATS_CACHE_H

#include "data/sparse/rows.h"

#define PL_CACHE_MAGIC        "PLCACHE" /* and the NUL */
#define PL_CACHE_VERSION      2
#define PL_CACHE_PLAIN        1 /* version of files without a numbering */
#define PL_CACHE_HEADER_BYTES 16
#define PL_CACHE_ENTRY_BYTES  24
#define PL_CACHE_FOOTER_BYTES 56
#define PL_CACHE_BLOCK_BYTES  24 /* of a block, before the labels */
#define PL_CACHE_ROWS         4096
#define PL_CACHE_IDS          ((int64_t)1 << 20)
#define PL_CACHE_MOST_ROWS    65536              /* that a reader accepts, */
#define PL_CACHE_MOST_IDS     ((int64_t)1 << 22) /* or 8 per byte */
#define PL_CACHE_MOST_COLUMNS 4096
#define PL_CACHE_FLAG_COLUMNS 1u
#define PL_CACHE_FLAG_VALUES  2u
#define PL_CACHE_PAD          8 /* zeros after packed ids */

/* Growing bytes. */
typedef struct pl_cache_bytes {
    uint8_t *data;
    size_t used, room;
} pl_cache_bytes;

/* Append one block of these rows. */
pl_status pl_cache_encode(pl_cache_bytes *out,
                          const pl_sparse_rows *rows) PL_MUST_CHECK;

/* Append the rows of a block; ids at or above `bound` are refused, *largest is
 * raised to the largest. */
pl_status pl_cache_decode(pl_sparse_rows *rows, const uint8_t *data,
                          size_t bytes, uint64_t bound,
                          uint64_t *largest) PL_MUST_CHECK;

#endif
