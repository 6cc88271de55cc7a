/* unpack.h - gzip, zlib and zstd streams of any length.
 *
 * The bytes go into a pl_spill, since readers seek in a file.  Concatenated
 * streams, as from `cat a.gz b.gz`, are read as one.
 *
 * Threads: any. */
#ifndef PL_DATA_PACK_UNPACK_H
#define PL_DATA_PACK_UNPACK_H

#include "base/file/spill.h"

typedef enum pl_packing {
    PL_PACKING_NONE,
    PL_PACKING_GZIP,
    PL_PACKING_ZLIB, /* TFRecordOptions("ZLIB") writes these */
    PL_PACKING_ZSTD,
} pl_packing;

/* By the first bytes.  A zlib header is only two bytes with a check of five
 * bits: when the file might be text, only that of the largest window is
 * accepted, which cannot begin one of our texts. */
pl_packing pl_packing_of(const uint8_t *data, size_t bytes, bool text);

/* A stream that expands to more than `ratio` times its size (0:
 * PL_UNPACK_RATIO) and more than PL_UNPACK_ALWAYS bytes is refused: the formats
 * have no reliable size, and a bomb would fill memory or disk. */
#define PL_UNPACK_RATIO  200
#define PL_UNPACK_ALWAYS ((uint64_t)64 << 20)
pl_status pl_unpack(pl_spill *out, pl_packing packing, const uint8_t *data,
                    size_t bytes, int64_t ratio) PL_MUST_CHECK;

#endif
