/* fuzz_tfrecord.c - TFRecord files; once as they are, and once with the right
 * checksums, so that the records are looked at, too. */
#include "fuzz/fuzz.h"
#include "fuzz/sparse.h"

#include "base/bytes.h"
#include "base/hash/crc32c.h"

#include <stdlib.h>

static void mend(uint8_t *data, size_t bytes)
{
    for (size_t at = 0; bytes - at >= 16;) {
        uint64_t length = pl_get_u64(data + at);
        pl_put_u32(data + at + 8, pl_crc32c_mask(pl_crc32c(0, data + at, 8)));
        if (length > bytes - at - 16)
            return;
        pl_put_u32(data + at + 12 + length,
                   pl_crc32c_mask(pl_crc32c(0, data + at + 12, length)));
        at += length + 16;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    fuzz_sparse(&pl_tfrecord_format, data, bytes);
    uint8_t *copy = malloc(bytes + 1);
    if (copy != NULL && bytes > 0) {
        __builtin_memcpy(copy, data, bytes);
        mend(copy + 1, bytes - 1);
        fuzz_sparse(&pl_tfrecord_format, copy, bytes);
    }
    free(copy);
    return 0;
}
