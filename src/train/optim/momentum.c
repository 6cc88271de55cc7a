/* Momentum, plain or Nesterov: one slot, the velocity. */
#include "train/optim/optims.h"

static void update(const pl_optim *optim, const pl_update *args, int64_t count,
                   const float *grad, float *param, float *const *slots)
{
    if (optim->opts.nesterov)
        optim->kernels->nesterov(count, args, grad, param, slots[0]);
    else
        optim->kernels->momentum(count, args, grad, param, slots[0]);
}

const pl_optim_ops pl_optim_momentum = {
    .name = "momentum",
    .slot_count = 1,
    .slots = { "velocity" },
    .sparse_lr = 0.02,
    .update = update,
};
