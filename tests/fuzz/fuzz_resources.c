/* fuzz_resources.c - tables of resources. */
#include "fuzz/fuzz.h"

#include "observe/runs/curve_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    pl_curves curves = { 0 };
    if (pl_resources_read(&curves, (const char *)data, bytes, "fuzz") == PL_OK)
        for (size_t i = 0; i < curves.count; i++)
            pl_curve_thin(&curves.list[i], 3);
    pl_curves_close(&curves);
    return 0;
}
