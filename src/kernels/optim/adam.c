/* adam.c - Adam: Kingma and Ba 2015, algorithm 1. */
#include "kernels/optim/optim.h"

#include <math.h>

#ifdef PL_LANES
#include "kernels/simd/kernels.h"

void SIMD(update_adam)(int64_t n, const pl_update *u, const float *g, float *p,
                       float *const *slots)
{
    float *mean = slots[0], *variance = slots[1];
    vf lr = v_set(u->lr), decay = v_set(u->decay), epsilon = v_set(u->epsilon);
    vf b1 = v_set(u->momentum), c1 = v_set(1.0f - u->momentum);
    vf b2 = v_set(u->beta2), c2 = v_set(1.0f - u->beta2);
    vf fix1 = v_set(u->correct1), fix2 = v_set(u->correct2);
    EACH_VECTOR(n, {
        vf old = LOAD(p);
        vf grad = LOAD(g) + decay * old;
        vf m = b1 * LOAD(mean) + c1 * grad;
        vf v = b2 * LOAD(variance) + c2 * (grad * grad);
        STORE(mean, m);
        STORE(variance, v);
        STORE(p, old - lr * (m * fix1) / (v_sqrt(v * fix2) + epsilon));
    });
}

#else

void pl_update_adam_reference(int64_t n, const pl_update *u, const float *g,
                              float *p, float *const *slots)
{
    float *mean = slots[0], *variance = slots[1];
    for (int64_t i = 0; i < n; i++) {
        float grad = g[i] + u->decay * p[i];
        mean[i] = u->momentum * mean[i] + (1 - u->momentum) * grad;
        variance[i] = u->beta2 * variance[i] + (1 - u->beta2) * grad * grad;
        p[i] -= u->lr * (mean[i] * u->correct1) /
                (sqrtf(variance[i] * u->correct2) + u->epsilon);
    }
}

static void begin(const pl_optim_opts *opts, int64_t update, pl_update *u)
{
    double t = (double)update;
    u->momentum = (float)opts->beta1;
    u->correct1 = (float)(1 / (1 - pow(opts->beta1, t)));
    u->correct2 = (float)(1 / (1 - pow(opts->beta2, t)));
}

const pl_optim_ops pl_optim_adam = {
    .name = "adam",
    .slot_count = 2,
    .slots = { "mean", "variance" },
    .sparse_lr = 0.003,
    .begin = begin,
};

#endif
