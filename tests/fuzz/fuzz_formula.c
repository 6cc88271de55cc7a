#include "fuzz/fuzz.h"

#include "base/mem.h"
#include "matmul/plan/placement.h"

#include <string.h>

/* The formula of --placement. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    pl_matmul_job job = { PL_MATMUL_PRODUCT, 16, 4, 3, 1 };
    pl_placement p;
    char *text = pl_mem_alloc(bytes + 1, 1);
    if (text == NULL)
        return 0;
    memcpy(text, data, bytes);
    if (pl_placement_parse(&p, &job, text) == PL_OK) {
        for (int32_t k = 0; k < job.blocks * job.blocks; k++)
            if (p.owner[k] < 0 || p.owner[k] >= job.workers)
                __builtin_trap();
        pl_placement_close(&p);
    }
    pl_mem_free(text);
    return 0;
}
