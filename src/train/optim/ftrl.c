/* FTRL-proximal: McMahan et al., "Ad click prediction: a view from the
 * trenches", 2013, algorithm 1.  The learning rate is alpha. */
#include "train/optim/optims.h"

static void update(const pl_optim *optim, const pl_update *args, int64_t count,
                   const float *grad, float *param, float *const *slots)
{
    optim->kernels->ftrl(count, args, grad, param, slots[0], slots[1]);
}

const pl_optim_ops pl_optim_ftrl = {
    .name = "ftrl",
    .slot_count = 2,
    .slots = { "z", "sum" },
    .sparse_lr = 1,
    .own_l2 = true,
    .update = update,
};
