/* Plain stochastic gradient descent: no slot. */
#include "train/optim/optims.h"

static void update(const pl_optim *optim, const pl_update *args, int64_t count,
                   const float *grad, float *param, float *const *slots)
{
    (void)slots;
    optim->kernels->sgd(count, args, grad, param);
    if (args->l1 > 0)
        for (int64_t i = 0; i < count; i++)
            param[i] = pl_optim_shrink(param[i], args->lr * args->l1);
}

const pl_optim_ops pl_optim_sgd = {
    .name = "sgd",
    .sparse_lr = 0.2,
    .update = update,
};
