/* fuzz_criteo.c - click logs of 40 columns. */
#include "fuzz/fuzz.h"
#include "fuzz/sparse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    fuzz_sparse(&pl_criteo_format, data, bytes);
    return 0;
}
