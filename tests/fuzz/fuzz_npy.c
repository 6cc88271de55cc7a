/* fuzz_npy.c - heads of NumPy arrays. */
#include "base/assert.h"
#include "data/npy/npy.h"
#include "fuzz/fuzz.h"
#include "tensor/shape.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    pl_npy npy;
    if (pl_npy_parse(&npy, data, bytes, bytes) != PL_OK)
        return 0;
    /* What was accepted is exactly what follows. */
    PL_ASSERT(pl_shape_check(npy.shape) == PL_OK);
    PL_ASSERT(npy.head_bytes +
                  (size_t)(pl_shape_row(npy.shape) * npy.element.bytes) ==
              bytes);
    return 0;
}
