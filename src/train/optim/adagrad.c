/* AdaGrad: Duchi, Hazan and Singer 2011, section 1.1 with the diagonal of G;
 * the sum starts above zero, as TensorFlow's does. */
#include "train/optim/optims.h"

#include <math.h>

static double initial(const pl_optim_opts *opts)
{
    return opts->initial_sum;
}

static void update(const pl_optim *optim, const pl_update *args, int64_t count,
                   const float *grad, float *param, float *const *slots)
{
    optim->kernels->adagrad(count, args, grad, param, slots[0]);
    if (args->l1 > 0)
        for (int64_t i = 0; i < count; i++)
            param[i] = pl_optim_shrink(
                param[i],
                args->lr * args->l1 / (sqrtf(slots[0][i]) + args->epsilon));
}

const pl_optim_ops pl_optim_adagrad = {
    .name = "adagrad",
    .slot_count = 1,
    .slots = { "sum" },
    .sparse_lr = 0.2,
    .initial = initial,
    .update = update,
};
