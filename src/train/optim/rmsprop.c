/* RMSprop: Tieleman and Hinton 2012, lecture 6.5; without momentum. */
#include "train/optim/optims.h"

static void begin(pl_optim *optim, int64_t number)
{
    (void)number;
    optim->args.beta2 = (float)optim->opts.rho;
}

static void update(const pl_optim *optim, const pl_update *args, int64_t count,
                   const float *grad, float *param, float *const *slots)
{
    optim->kernels->rmsprop(count, args, grad, param, slots[0]);
}

const pl_optim_ops pl_optim_rmsprop = {
    .name = "rmsprop",
    .slot_count = 1,
    .slots = { "variance" },
    .sparse_lr = 0.003,
    .begin = begin,
    .update = update,
};
