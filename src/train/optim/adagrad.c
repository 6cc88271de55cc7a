/* AdaGrad: Duchi, Hazan and Singer 2011, section 1.1 with the diagonal of G;
 * the sum starts above zero, as TensorFlow's does. */
#include "train/optim/optims.h"

static double initial(const pl_optim_opts *opts)
{
    return opts->initial_sum;
}

static void update(const pl_optim *optim, int64_t count, const float *grad,
                   float *param, float *const *slots)
{
    optim->kernels->adagrad(count, &optim->args, grad, param, slots[0]);
}

const pl_optim_ops pl_optim_adagrad = {
    .name = "adagrad",
    .slot_count = 1,
    .slots = { "sum" },
    .initial = initial,
    .update = update,
};
