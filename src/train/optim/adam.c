/* Adam: Kingma and Ba 2015, algorithm 1. */
#include "train/optim/optims.h"

#include <math.h>

static void begin(pl_optim *optim, int64_t update)
{
    double t = (double)update;
    optim->args.momentum = (float)optim->opts.beta1;
    optim->args.correct1 = (float)(1 / (1 - pow(optim->opts.beta1, t)));
    optim->args.correct2 = (float)(1 / (1 - pow(optim->opts.beta2, t)));
}

static void update(const pl_optim *optim, const pl_update *args, int64_t count,
                   const float *grad, float *param, float *const *slots)
{
    optim->kernels->adam(count, args, grad, param, slots[0], slots[1]);
}

const pl_optim_ops pl_optim_adam = {
    .name = "adam",
    .slot_count = 2,
    .slots = { "mean", "variance" },
    .sparse_lr = 0.003,
    .begin = begin,
    .update = update,
};
