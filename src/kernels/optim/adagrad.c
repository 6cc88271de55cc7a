/* adagrad.c - AdaGrad: Duchi, Hazan and Singer 2011, section 1.1 with the
 * diagonal of G; the sum starts above zero, as TensorFlow's does.  L1 is a
 * proximal step after the update. */
#include "kernels/optim/optim.h"

#include <math.h>

static void shrink(int64_t n, const pl_update *u, float *p, const float *sum)
{
    if (u->l1 > 0)
        for (int64_t i = 0; i < n; i++)
            p[i] = pl_optim_shrink(p[i], u->lr * u->l1 /
                                             (sqrtf(sum[i]) + u->epsilon));
}

#ifdef PL_LANES
#include "kernels/simd/kernels.h"

void SIMD(update_adagrad)(int64_t n, const pl_update *u, const float *g,
                          float *p, float *const *slots)
{
    float *sum = slots[0];
    vf lr = v_set(u->lr), decay = v_set(u->decay), epsilon = v_set(u->epsilon);
    EACH_VECTOR(n, {
        vf old = LOAD(p);
        vf grad = LOAD(g) + decay * old;
        vf s = LOAD(sum) + grad * grad;
        STORE(sum, s);
        STORE(p, old - lr * grad / (v_sqrt(s) + epsilon));
    });
    shrink(n, u, p, sum);
}

#else

void pl_update_adagrad_reference(int64_t n, const pl_update *u, const float *g,
                                 float *p, float *const *slots)
{
    float *sum = slots[0];
    for (int64_t i = 0; i < n; i++) {
        float grad = g[i] + u->decay * p[i];
        sum[i] += grad * grad;
        p[i] -= u->lr * grad / (sqrtf(sum[i]) + u->epsilon);
    }
    shrink(n, u, p, sum);
}

static double initial(const pl_optim_opts *opts)
{
    return opts->initial_sum;
}

const pl_optim_ops pl_optim_adagrad = {
    .name = "adagrad",
    .slot_count = 1,
    .slots = { "sum" },
    .sparse_lr = 0.2,
    .initial = initial,
    .l1 = true,
};

#endif
