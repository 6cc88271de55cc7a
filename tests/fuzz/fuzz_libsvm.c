/* fuzz_libsvm.c - libsvm files, plain, gzip and zstd. */
#include "fuzz/fuzz.h"
#include "fuzz/sparse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    fuzz_sparse(&pl_libsvm_format, data, bytes);
    return 0;
}
