/* fuzz_idx.c - IDX files, plain and gzip. */
#include "base/assert.h"
#include "data/idx/idx.h"
#include "fuzz/fuzz.h"

/* What was accepted has a sound shape and all its elements. */
static void check(const pl_idx *idx)
{
    volatile uint8_t sum = 0;
    PL_ASSERT(pl_shape_check(idx->shape) == PL_OK && idx->shape.rank >= 1);
    for (int64_t i = 0; i < pl_shape_row(idx->shape) * idx->element.bytes; i++)
        sum = (uint8_t)(sum + idx->data[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    pl_idx idx;
    if (pl_idx_init_memory(&idx, data, bytes) == PL_OK) {
        check(&idx);
        pl_idx_close(&idx);
    }
    return 0;
}
