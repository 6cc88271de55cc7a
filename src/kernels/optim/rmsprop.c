/* rmsprop.c - RMSprop: Tieleman and Hinton 2012, lecture 6.5; without
 * momentum. */
#include "kernels/optim/optim.h"

#include <math.h>

#ifdef PL_LANES
#include "kernels/simd/kernels.h"

void SIMD(update_rmsprop)(int64_t n, const pl_update *u, const float *g,
                          float *p, float *const *slots)
{
    float *variance = slots[0];
    vf lr = v_set(u->lr), decay = v_set(u->decay), epsilon = v_set(u->epsilon);
    vf rho = v_set(u->beta2), rest = v_set(1.0f - u->beta2);
    EACH_VECTOR(n, {
        vf old = LOAD(p);
        vf grad = LOAD(g) + decay * old;
        vf v = rho * LOAD(variance) + rest * (grad * grad);
        STORE(variance, v);
        STORE(p, old - lr * grad / (v_sqrt(v) + epsilon));
    });
}

#else

void pl_update_rmsprop_reference(int64_t n, const pl_update *u, const float *g,
                                 float *p, float *const *slots)
{
    float *variance = slots[0];
    for (int64_t i = 0; i < n; i++) {
        float grad = g[i] + u->decay * p[i];
        variance[i] = u->beta2 * variance[i] + (1 - u->beta2) * grad * grad;
        p[i] -= u->lr * grad / (sqrtf(variance[i]) + u->epsilon);
    }
}

static void begin(const pl_optim_opts *opts, int64_t update, pl_update *u)
{
    (void)update;
    u->beta2 = (float)opts->rho;
}

const pl_optim_ops pl_optim_rmsprop = {
    .name = "rmsprop",
    .slot_count = 1,
    .slots = { "variance" },
    .sparse_lr = 0.003,
    .begin = begin,
};

#endif
