/* sgd.c - plain stochastic gradient descent: no slot.  L1 is a proximal step
 * after the update. */
#include "kernels/optim/optim.h"

static void shrink(int64_t n, const pl_update *u, float *p)
{
    if (u->l1 > 0)
        for (int64_t i = 0; i < n; i++)
            p[i] = pl_optim_shrink(p[i], u->lr * u->l1);
}

#ifdef PL_LANES
#include "kernels/simd/kernels.h"

void SIMD(update_sgd)(int64_t n, const pl_update *u, const float *g, float *p,
                      float *const *slots)
{
    (void)slots;
    vf lr = v_set(u->lr), decay = v_set(u->decay);
    EACH_VECTOR(n, {
        vf old = LOAD(p);
        STORE(p, old - lr * (LOAD(g) + decay * old));
    });
    shrink(n, u, p);
}

#else

void pl_update_sgd_reference(int64_t n, const pl_update *u, const float *g,
                             float *p, float *const *slots)
{
    (void)slots;
    for (int64_t i = 0; i < n; i++)
        p[i] -= u->lr * (g[i] + u->decay * p[i]);
    shrink(n, u, p);
}

const pl_optim_ops pl_optim_sgd = {
    .name = "sgd",
    .sparse_lr = 0.2,
    .l1 = true,
};

#endif
