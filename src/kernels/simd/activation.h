/* activation.h - activations of a vector, and their gradients. */
#ifndef PL_KERNELS_SIMD_ACTIVATION_H
#define PL_KERNELS_SIMD_ACTIVATION_H

#include "kernels/simd/math.h"

INLINE vf v_relu(vf x)
{
    /* This order of operands propagates NaN. */
    return v_max(v_set(0), x);
}

/* `y` is the activation's result. */
INLINE vf v_activation_grad(pl_activation kind, vf y, vf diff)
{
    switch (kind) {
    case PL_ACTIVATION_RELU:
        return (vf)((vi)(y > v_set(0)) & (vi)diff);
    case PL_ACTIVATION_TANH:
        return diff * v_fma(-y, y, v_set(1));
    case PL_ACTIVATION_SIGMOID:
        return diff * (y * (v_set(1) - y));
    case PL_ACTIVATION_NONE:
        break;
    }
    return diff;
}

#endif
