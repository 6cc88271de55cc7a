#include "train/optim/optims.h"

static void update(const pl_optim *optim, int64_t count, const float *grad,
                   float *param, float *const *slots)
{
    (void)slots;
    optim->kernels->sgd(count, &optim->args, grad, param);
}

const pl_optim_ops pl_optim_sgd = { .name = "sgd", .update = update };
