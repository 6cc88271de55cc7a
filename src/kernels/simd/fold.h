/* fold.h - the sums of several vectors at once, which costs far less than
 * separate sums. */
#ifndef PL_KERNELS_SIMD_FOLD_H
#define PL_KERNELS_SIMD_FOLD_H

#include "kernels/simd/simd.h"

/* Interleave within groups of four lanes: a0 b0 a1 b1 and a2 b2 a3 b3; then
 * pairs: a0 a1 b0 b1 and a2 a3 b2 b3. */
#if LANES == 16
#define LOW(a, b)                                                              \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25,    \
                            12, 28, 13, 29)
#define HIGH(a, b)                                                             \
    __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27,  \
                            14, 30, 15, 31)
#define LOW2(a, b)                                                             \
    __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25,    \
                            12, 13, 28, 29)
#define HIGH2(a, b)                                                            \
    __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27,  \
                            14, 15, 30, 31)
#elif LANES == 8
#define LOW(a, b)   __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define HIGH(a, b)  __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define LOW2(a, b)  __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define HIGH2(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#else
#define LOW(a, b)   __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH(a, b)  __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define LOW2(a, b)  __builtin_shufflevector(a, b, 0, 1, 4, 5)
#define HIGH2(a, b) __builtin_shufflevector(a, b, 2, 3, 6, 7)
#endif

/* The sums of four vectors in the first four lanes. */
INLINE vf v_fold4(vf a, vf b, vf c, vf d)
{
    vf ab = LOW(a, b) + HIGH(a, b); /* a b a b, a group of four lanes */
    vf cd = LOW(c, d) + HIGH(c, d);
    vf sums = LOW2(ab, cd) + HIGH2(ab, cd); /* a b c d */
#if LANES >= 16
    sums += SWAP8(sums);
#endif
#if LANES >= 8
    sums += SWAP4(sums);
#endif
    return sums;
}

/* Lane l of the result is the sum of vector l of LANES in memory. */
#if LANES >= 8
typedef float half8 __attribute__((vector_size(32)));

INLINE half8 half_load(const float *vector)
{
    half8 low;
    memcpy(&low, vector, sizeof low);
#if LANES == 16
    half8 high;
    memcpy(&high, vector + 8, sizeof high);
    low += high;
#endif
    return low;
}

#define PAIR8(a, b)                                                            \
    (__builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13) +                 \
     __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15))
#define QUAD8(ab, cd)                                                          \
    (__builtin_shufflevector(ab, cd, 0, 1, 8, 9, 4, 5, 12, 13) +               \
     __builtin_shufflevector(ab, cd, 2, 3, 10, 11, 6, 7, 14, 15))

/* The sums of four vectors, as two halves: a b c d a b c d */
INLINE half8 fold_half4(const float *vectors)
{
    half8 a = half_load(vectors), b = half_load(vectors + LANES);
    half8 c = half_load(vectors + 2 * LANES);
    half8 d = half_load(vectors + 3 * LANES);
    half8 ab = PAIR8(a, b), cd = PAIR8(c, d);
    return QUAD8(ab, cd);
}

INLINE half8 fold_half8(const float *vectors)
{
    half8 low = fold_half4(vectors), high = fold_half4(vectors + 4 * LANES);
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 8, 9, 10, 11) +
           __builtin_shufflevector(low, high, 4, 5, 6, 7, 12, 13, 14, 15);
}

INLINE vf v_fold(const float *vectors)
{
#if LANES == 16
    half8 low = fold_half8(vectors), high = fold_half8(vectors + 8 * LANES);
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
                                   11, 12, 13, 14, 15);
#else
    return fold_half8(vectors);
#endif
}
#else
INLINE vf v_fold(const float *vectors)
{
    return v_fold4(v_load(vectors), v_load(vectors + LANES),
                   v_load(vectors + 2 * LANES), v_load(vectors + 3 * LANES));
}
#endif

#endif
