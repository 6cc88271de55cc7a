/* fuzz_examples.c - TFRecord files of dense examples. */
#include "base/assert.h"
#include "data/examples/examples.h"
#include "data/examples/record.h"
#include "fuzz/fuzz.h"

/* The message alone, which no checksum guards, then the file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const pl_source_opts opts = { .threads = 1 };
    pl_example_parts parts;
    pl_dataset *set;
    size_t count;
    if (pl_example_parts_find(&parts, data, bytes, &opts) == PL_OK &&
        parts.floats && pl_example_float_count(&parts, &count) == PL_OK)
        PL_ASSERT(count <= parts.bytes / 4 + 1);
    if (pl_examples_open_memory(&set, data, bytes, &opts) == PL_OK) {
        PL_ASSERT(set->count >= 1);
        pl_dataset_free(set);
    }
    return 0;
}
