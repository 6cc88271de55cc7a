/* momentum.c - momentum, plain or Nesterov: one slot, the velocity. */
#include "kernels/optim/optim.h"

#ifdef PL_LANES
#include "kernels/simd/kernels.h"

void SIMD(update_momentum)(int64_t n, const pl_update *u, const float *g,
                           float *p, float *const *slots)
{
    float *velocity = slots[0];
    vf lr = v_set(u->lr), decay = v_set(u->decay), mu = v_set(u->momentum);
    if (u->nesterov)
        EACH_VECTOR(n, {
            vf old = LOAD(p);
            vf grad = LOAD(g) + decay * old;
            vf v = mu * LOAD(velocity) + grad;
            STORE(velocity, v);
            STORE(p, old - lr * (grad + mu * v));
        });
    else
        EACH_VECTOR(n, {
            vf old = LOAD(p);
            vf v = mu * LOAD(velocity) + (LOAD(g) + decay * old);
            STORE(velocity, v);
            STORE(p, old - lr * v);
        });
}

#else

void pl_update_momentum_reference(int64_t n, const pl_update *u, const float *g,
                                  float *p, float *const *slots)
{
    float *velocity = slots[0];
    for (int64_t i = 0; i < n; i++) {
        float grad = g[i] + u->decay * p[i];
        velocity[i] = u->momentum * velocity[i] + grad;
        p[i] -= u->lr *
                (u->nesterov ? grad + u->momentum * velocity[i] : velocity[i]);
    }
}

const pl_optim_ops pl_optim_momentum = {
    .name = "momentum",
    .slot_count = 1,
    .slots = { "velocity" },
    .sparse_lr = 0.02,
};

#endif
