/* ftrl.c - FTRL-proximal: McMahan et al., "Ad click prediction: a view from the
 * trenches", 2013, algorithm 1.  The learning rate is alpha.  The slots: z,
 * which determines the parameter, and the sum of squared gradients. */
#include "kernels/optim/optim.h"

#include <math.h>

#ifdef PL_LANES
#include "kernels/simd/kernels.h"

void SIMD(update_ftrl)(int64_t n, const pl_update *u, const float *g, float *p,
                       float *const *slots)
{
    float *z = slots[0], *sum = slots[1];
    vf lr = v_set(u->lr), decay = v_set(u->decay), beta = v_set(u->beta);
    vf l1 = v_set(u->l1), l2 = v_set(u->l2), zero = v_set(0);
    EACH_VECTOR(n, {
        vf old = LOAD(p);
        vf grad = LOAD(g) + decay * old;
        vf before = LOAD(sum);
        vf s = before + grad * grad;
        vf root = v_sqrt(s);
        vf pull = LOAD(z) + (grad - (root - v_sqrt(before)) / lr * old);
        vi sign = (vi)pull & vi_set((int32_t)0x80000000);
        vf shrunk = (vf)((vi)pull ^ sign) - l1;
        vf scaled = (vf)((vi)shrunk ^ sign) / ((beta + root) / lr + l2);
        STORE(sum, s);
        STORE(z, pull);
        STORE(p, v_select(shrunk <= zero, zero, -scaled));
    });
}

#else

void pl_update_ftrl_reference(int64_t n, const pl_update *u, const float *g,
                              float *p, float *const *slots)
{
    float *z = slots[0], *sum = slots[1];
    for (int64_t i = 0; i < n; i++) {
        float grad = g[i] + u->decay * p[i];
        float before = sqrtf(sum[i]);
        sum[i] += grad * grad;
        float root = sqrtf(sum[i]);
        z[i] += grad - (root - before) / u->lr * p[i];
        float shrunk = fabsf(z[i]) - u->l1;
        p[i] = shrunk <= 0 ? 0
                           : -copysignf(shrunk, z[i]) /
                                 ((u->beta + root) / u->lr + u->l2);
    }
}

const pl_optim_ops pl_optim_ftrl = {
    .name = "ftrl",
    .slot_count = 2,
    .slots = { "z", "sum" },
    .sparse_lr = 1,
    .l1 = true,
    .l2 = true,
};

#endif
