/* math.h - exp, log and tanh on vectors, to about 2 units in the last place.
 *
 * Polynomials of the Cephes library (Moshier, single precision). */
#ifndef PL_KERNELS_SIMD_MATH_H
#define PL_KERNELS_SIMD_MATH_H

#include "kernels/simd/simd.h"

INLINE vf v_exp(vf x)
{
    /* Below: 0; above: the largest finite power; NaN stays NaN. */
    vi tiny = x < v_set(-87.33654475f);
    x = v_max(v_set(-87.33654475f), v_min(v_set(88.37626266f), x));

    /* x = n ln 2 + r, |r| <= ln 2 / 2; adding 1.5 * 2^23 rounds. */
    const vf magic = v_set(12582912.0f);
    vf n = v_fma(x, v_set(1.44269504088896341f), magic) - magic;
    vf r = v_fma(n, v_set(-0.693359375f), x);
    r = v_fma(n, v_set(2.12194440e-4f), r);

    vf p = v_set(1.9875691500e-4f);
    p = v_fma(p, r, v_set(1.3981999507e-3f));
    p = v_fma(p, r, v_set(8.3334519073e-3f));
    p = v_fma(p, r, v_set(4.1665795894e-2f));
    p = v_fma(p, r, v_set(1.6666665459e-1f));
    p = v_fma(p, r, v_set(5.0000001201e-1f));
    p = v_fma(p, r * r, r) + v_set(1.0f);

    vi exponent = (__builtin_convertvector(n, vi) + vi_set(127)) << 23;
    return (vf)(~tiny & (vi)(p * (vf)exponent));
}

/* For positive normal numbers; 0 gives about -87, infinity and NaN a NaN. */
INLINE vf v_log(vf x)
{
    vf poison = x * v_set(0); /* 0, or NaN if x is not finite */
    x = v_max(x, v_set(1.17549435e-38f));
    vi bits = (vi)x;
    vi e = (bits >> 23) - vi_set(126);
    vf m = (vf)((bits & vi_set(0x007fffff)) | vi_set(0x3f000000));

    /* m in [0.5, 1); bring it to [sqrt(0.5), sqrt(2)). */
    vi low = m < v_set(0.707106781186547524f);
    e = e + low; /* a true lane is -1 */
    m = m + (vf)(low & (vi)m) - v_set(1.0f);

    vf z = m * m;
    vf p = v_set(7.0376836292e-2f);
    p = v_fma(p, m, v_set(-1.1514610310e-1f));
    p = v_fma(p, m, v_set(1.1676998740e-1f));
    p = v_fma(p, m, v_set(-1.2420140846e-1f));
    p = v_fma(p, m, v_set(1.4249322787e-1f));
    p = v_fma(p, m, v_set(-1.6668057665e-1f));
    p = v_fma(p, m, v_set(2.0000714765e-1f));
    p = v_fma(p, m, v_set(-2.4999993993e-1f));
    p = v_fma(p, m, v_set(3.3333331174e-1f));
    p = p * m * z;

    vf fe = __builtin_convertvector(e, vf);
    p = v_fma(fe, v_set(-2.12194440e-4f), p);
    p = v_fma(z, v_set(-0.5f), p);
    return v_fma(fe, v_set(0.693359375f), m + p) + poison;
}

INLINE vf v_tanh(vf x)
{
    vf magnitude = (vf)((vi)x & vi_set(0x7fffffff));
    vi sign = (vi)x & vi_set((int32_t)0x80000000);

    vf large = v_set(1.0f) -
               v_set(2.0f) / (v_exp(magnitude + magnitude) + v_set(1.0f));
    large = (vf)((vi)large | sign);

    vf z = x * x;
    vf p = v_set(-5.70498872745e-3f);
    p = v_fma(p, z, v_set(2.06390887954e-2f));
    p = v_fma(p, z, v_set(-5.37397155531e-2f));
    p = v_fma(p, z, v_set(1.33314422036e-1f));
    p = v_fma(p, z, v_set(-3.33332819422e-1f));
    vf small = v_fma(p * z, x, x);

    return v_select(magnitude < v_set(0.625f), small, large);
}

/* The probability of a normal variable below x, within 1e-7: the error function
 * by Abramowitz and Stegun, 7.1.26, of x / sqrt(2). */
INLINE vf v_normal_below(vf x)
{
    vf z = (vf)((vi)x & vi_set(0x7fffffff)) * v_set(0.70710678118654752f);
    vf t = v_set(1.0f) / v_fma(v_set(0.3275911f), z, v_set(1.0f));
    vf p = v_set(1.061405429f);
    p = v_fma(p, t, v_set(-1.453152027f));
    p = v_fma(p, t, v_set(1.421413741f));
    p = v_fma(p, t, v_set(-0.284496736f));
    p = v_fma(p, t, v_set(0.254829592f));
    vf above = v_set(0.5f) * p * t * v_exp(-z * z);
    return v_select(x < v_set(0), above, v_set(1.0f) - above);
}

INLINE vf v_sigmoid(vf x)
{
    return v_set(1.0f) / (v_set(1.0f) + v_exp(-x));
}

#endif
