/* fuzz_plan.c - plans of checkpoints, as servers get them.
 *
 * The first two bytes choose the range of the block that is here; the rest is
 * the plan. */
#include "fuzz/fuzz.h"

#include "train/part.h"

#include <stdlib.h>

#define FLOATS 32

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static float params[FLOATS];
    pl_params *shape = NULL;
    pl_optim *optim = NULL;
    pl_part *part;
    if (bytes < 2)
        return 0;
    if (pl_params_new(&shape) != PL_OK ||
        pl_params_add(shape, "part", PL_SHAPE(FLOATS)) != PL_OK ||
        pl_params_seal(shape) != PL_OK ||
        pl_optim_new(&optim, &(pl_optim_opts) { .name = "adam" }, shape,
                     pl_kernels_best()) != PL_OK)
        abort();
    pl_part_opts opts = {
        .of = 2,
        .index = data[0] & 1,
        .first = data[0],
        .count = 1 + data[1] % FLOATS,
        .params = params,
        .optim = optim,
    };
    if (pl_part_new(&part, (const char *)data + 2, bytes - 2, &opts) == PL_OK)
        pl_part_free(part);
    pl_optim_free(optim);
    pl_params_free(shape);
    return 0;
}
