/* fuzz_request.c - requests to save or load, as servers get them.
 *
 * The first two bytes choose the range of the block that is here; the rest is
 * the request. */
#include "fuzz/fuzz.h"

#include "state/partition.h"

#define FLOATS 32

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static float planes[3][FLOATS];
    pl_partition *partition;
    if (bytes < 2)
        return 0;
    pl_partition_opts opts = {
        .of = 2,
        .index = data[0] & 1,
        .first = data[0],
        .count = 1 + data[1] % FLOATS,
        .planes = { .count = 3,
                    .data = { planes[0], planes[1], planes[2] },
                    .slots = { NULL, "first", "second" } },
    };
    if (pl_partition_new(&partition, (const char *)data + 2, bytes - 2,
                         &opts) == PL_OK)
        pl_partition_free(partition);
    return 0;
}
