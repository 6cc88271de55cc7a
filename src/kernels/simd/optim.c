/* Optimizer updates, element by element, after the formulas in
 * docs/optimizers.md. No fused multiply-add is used, so that vector body,
 * tail and reference round alike. */
#include "kernels/simd/kernels.h"

/* All follow the formulas of docs/optimizers.md. */

void SIMD(sgd)(int64_t n, const pl_update *u, const float *g, float *p)
{
    vf lr = v_set(u->lr), decay = v_set(u->decay);
    EACH_VECTOR(n, {
        vf old = LOAD(p);
        STORE(p, old - lr * (LOAD(g) + decay * old));
    });
}

void SIMD(momentum)(int64_t n, const pl_update *u, const float *g, float *p,
                    float *velocity)
{
    vf lr = v_set(u->lr), decay = v_set(u->decay), mu = v_set(u->momentum);
    EACH_VECTOR(n, {
        vf old = LOAD(p);
        vf v = mu * LOAD(velocity) + (LOAD(g) + decay * old);
        STORE(velocity, v);
        STORE(p, old - lr * v);
    });
}

void SIMD(nesterov)(int64_t n, const pl_update *u, const float *g, float *p,
                    float *velocity)
{
    vf lr = v_set(u->lr), decay = v_set(u->decay), mu = v_set(u->momentum);
    EACH_VECTOR(n, {
        vf old = LOAD(p);
        vf grad = LOAD(g) + decay * old;
        vf v = mu * LOAD(velocity) + grad;
        STORE(velocity, v);
        STORE(p, old - lr * (grad + mu * v));
    });
}

void SIMD(adam)(int64_t n, const pl_update *u, const float *g, float *p,
                float *mean, float *variance)
{
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

void SIMD(adagrad)(int64_t n, const pl_update *u, const float *g, float *p,
                   float *sum)
{
    vf lr = v_set(u->lr), decay = v_set(u->decay), epsilon = v_set(u->epsilon);
    EACH_VECTOR(n, {
        vf old = LOAD(p);
        vf grad = LOAD(g) + decay * old;
        vf s = LOAD(sum) + grad * grad;
        STORE(sum, s);
        STORE(p, old - lr * grad / (v_sqrt(s) + epsilon));
    });
}

void SIMD(rmsprop)(int64_t n, const pl_update *u, const float *g, float *p,
                   float *variance)
{
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

/* FTRL-proximal: McMahan et al. 2013, algorithm 1, with alpha = lr. */
void SIMD(ftrl)(int64_t n, const pl_update *u, const float *g, float *p,
                float *z, float *sum)
{
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
        vf way = (vf)((vi)shrunk ^ sign) / ((beta + root) / lr + l2);
        STORE(sum, s);
        STORE(z, pull);
        STORE(p, v_select(shrunk <= zero, zero, -way));
    });
}
