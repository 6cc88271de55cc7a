/* fuzz_cache.c - cache files; checksums are made to fit, so that what they
 * protect is looked at, too. */
#include "fuzz/fuzz.h"
#include "fuzz/sparse.h"

#include "base/bytes.h"
#include "base/hash/crc32c.h"
#include "data/sparse/formats/cache.h"

#include <stdlib.h>

/* Right checksums for whatever the bytes are, where there is room. */
static void mend(uint8_t *data, size_t bytes)
{
    if (bytes < PL_CACHE_FOOTER_BYTES)
        return;
    uint8_t *foot = data + bytes - PL_CACHE_FOOTER_BYTES;
    uint64_t index = pl_get_u64(foot);
    uint64_t end = bytes - PL_CACHE_FOOTER_BYTES;
    if (index <= end) {
        for (uint64_t at = index; end - at >= PL_CACHE_ENTRY_BYTES;
             at += PL_CACHE_ENTRY_BYTES) {
            uint64_t offset = pl_get_u64(data + at);
            uint64_t length = pl_get_u64(data + at + 8);
            if (offset < index && length >= 4 && length <= index - offset)
                pl_put_u32(data + offset,
                           pl_crc32c(0, data + offset + 4, length - 4));
        }
        pl_put_u32(foot + 40, pl_crc32c(0, data + index, end - index));
    }
    pl_put_u32(foot + 44, pl_crc32c(0, foot, 44));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    fuzz_sparse(&pl_cache_format, data, bytes);
    uint8_t *copy = malloc(bytes + 1);
    if (copy == NULL || bytes == 0) {
        free(copy);
        return 0;
    }
    __builtin_memcpy(copy, data, bytes);
    mend(copy + 1, bytes - 1);
    fuzz_sparse(&pl_cache_format, copy, bytes);
    free(copy);
    return 0;
}
