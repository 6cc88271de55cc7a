/* simd.h - vectors of PL_LANES floats, written once for every width.
 *
 * The compiler's vector types carry the arithmetic; the few operations they
 * lack (masked loads, maximum, selection) are below.  Every source that
 * includes this is compiled once per instruction set with PL_ISA and PL_LANES
 * set, and its functions get the set's name: SIMD(relu) is pl_avx512_relu. */
#ifndef PL_KERNELS_SIMD_SIMD_H
#define PL_KERNELS_SIMD_SIMD_H

#include "kernels/backend.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define SIMD_JOIN2(isa, name) pl_##isa##_##name
#define SIMD_JOIN(isa, name)  SIMD_JOIN2(isa, name)
#define SIMD(name)            SIMD_JOIN(PL_ISA, name)

#define LANES  PL_LANES
#define INLINE static inline __attribute__((always_inline, unused))

/* The following loop is unrolled completely: its bounds are constants. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

typedef float vf __attribute__((vector_size(LANES * 4)));
typedef int32_t vi __attribute__((vector_size(LANES * 4)));
typedef uint8_t vb __attribute__((vector_size(LANES)));

INLINE vf v_set(float x)
{
    return x - (vf) { 0 };
}

INLINE vi vi_set(int32_t x)
{
    return x - (vi) { 0 };
}

INLINE vf v_load(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Load once and keep in a register: the compiler would rather read memory again
 * as an operand of each use. */
INLINE vf v_load_keep(const float *p)
{
    vf v = v_load(p);
#if LANES == 16
    __asm__("" : "+v"(v));
#elif defined(__x86_64__)
    __asm__("" : "+x"(v));
#endif
    return v;
}

INLINE void v_store(float *p, vf v)
{
    memcpy(p, &v, sizeof v);
}

/* The first `left` (< LANES) numbers; the other lanes are 0. */
INLINE vf v_load_part(const float *p, int64_t left)
{
#if LANES == 16
    return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << left) - 1), p);
#elif LANES == 8
    vi lane = { 0, 1, 2, 3, 4, 5, 6, 7 };
    return (vf)_mm256_maskload_ps(p, (__m256i)(lane < vi_set((int)left)));
#else
    vf v = { 0 };
    for (int64_t i = 0; i < left; i++)
        v[i] = p[i];
    return v;
#endif
}

INLINE void v_store_part(float *p, vf v, int64_t left)
{
#if LANES == 16
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << left) - 1), (__m512)v);
#elif LANES == 8
    vi lane = { 0, 1, 2, 3, 4, 5, 6, 7 };
    _mm256_maskstore_ps(p, (__m256i)(lane < vi_set((int)left)), (__m256)v);
#else
    for (int64_t i = 0; i < left; i++)
        p[i] = v[i];
#endif
}

/* gcc converts bytes one at a time without this. */
INLINE vf v_from_bytes(vb bytes)
{
#if LANES == 16
    return (vf)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32((__m128i)bytes));
#elif LANES == 8
    __m128i low = _mm_set_epi64x(0, (int64_t)bytes);
    return (vf)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(low));
#elif defined(__SSE2__)
    int32_t word;
    memcpy(&word, &bytes, sizeof word);
    __m128i zero = _mm_setzero_si128();
    __m128i half = _mm_unpacklo_epi8(_mm_cvtsi32_si128(word), zero);
    return (vf)_mm_cvtepi32_ps(_mm_unpacklo_epi16(half, zero));
#else
    return __builtin_convertvector(__builtin_convertvector(bytes, vi), vf);
#endif
}

INLINE vf v_load_u8(const uint8_t *p)
{
    vb bytes;
    memcpy(&bytes, p, sizeof bytes);
    return v_from_bytes(bytes);
}

INLINE vf v_load_u8_part(const uint8_t *p, int64_t left)
{
    uint8_t padded[LANES] = { 0 };
    for (int64_t i = 0; i < left; i++)
        padded[i] = p[i];
    return v_load_u8(padded);
}

/* a in lanes where the mask is all ones, b where it is zero. */
INLINE vf v_select(vi mask, vf a, vf b)
{
    return (vf)((mask & (vi)a) | (~mask & (vi)b));
}

/* a * b + c, rounded once if the instruction set can.  Explicit, because what a
 * compiler fuses may differ from place to place, and an element must round
 * alike everywhere. */
INLINE vf v_fma(vf a, vf b, vf c)
{
#if LANES == 16
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif LANES == 8
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
    return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}

/* b if only one operand is NaN. */
INLINE vf v_max(vf a, vf b)
{
#if LANES == 16
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif LANES == 8
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
    return (vf)_mm_max_ps((__m128)a, (__m128)b);
#else
    return v_select(a > b, a, b);
#endif
}

INLINE vf v_min(vf a, vf b)
{
    return -v_max(-a, -b);
}

/* Correctly rounded in every instruction set. */
INLINE vf v_sqrt(vf x)
{
#if LANES == 16
    return (vf)_mm512_sqrt_ps((__m512)x);
#elif LANES == 8
    return (vf)_mm256_sqrt_ps((__m256)x);
#else
    for (int i = 0; i < LANES; i++)
        x[i] = __builtin_sqrtf(x[i]);
    return x;
#endif
}

/* Exchange lanes at distance 1, 2, 4, 8. */
#if LANES == 16
#define SHUFFLE(x, ...) __builtin_shufflevector(x, x, __VA_ARGS__)
#define SWAP8(x)                                                               \
    SHUFFLE(x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)
#define SWAP4(x)                                                               \
    SHUFFLE(x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11)
#define SWAP2(x)                                                               \
    SHUFFLE(x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)
#define SWAP1(x)                                                               \
    SHUFFLE(x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14)
#elif LANES == 8
#define SHUFFLE(x, ...) __builtin_shufflevector(x, x, __VA_ARGS__)
#define SWAP4(x)        SHUFFLE(x, 4, 5, 6, 7, 0, 1, 2, 3)
#define SWAP2(x)        SHUFFLE(x, 2, 3, 0, 1, 6, 7, 4, 5)
#define SWAP1(x)        SHUFFLE(x, 1, 0, 3, 2, 5, 4, 7, 6)
#else
#define SHUFFLE(x, ...) __builtin_shufflevector(x, x, __VA_ARGS__)
#define SWAP2(x)        SHUFFLE(x, 2, 3, 0, 1)
#define SWAP1(x)        SHUFFLE(x, 1, 0, 3, 2)
#endif

INLINE float v_sum(vf x)
{
#if LANES >= 16
    x += SWAP8(x);
#endif
#if LANES >= 8
    x += SWAP4(x);
#endif
    x += SWAP2(x);
    x += SWAP1(x);
    return x[0];
}

INLINE float v_highest(vf x)
{
#if LANES >= 16
    x = v_max(x, SWAP8(x));
#endif
#if LANES >= 8
    x = v_max(x, SWAP4(x));
#endif
    x = v_max(x, SWAP2(x));
    x = v_max(x, SWAP1(x));
    return x[0];
}

/* The first `left` lanes of x, `other` in the rest. */
INLINE vf v_first(vf x, int64_t left, vf other)
{
#if LANES == 16
    vi lane = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
#elif LANES == 8
    vi lane = { 0, 1, 2, 3, 4, 5, 6, 7 };
#else
    vi lane = { 0, 1, 2, 3 };
#endif
    return v_select(lane < vi_set((int32_t)left), x, other);
}

/* Run BODY for each vector of n elements: index i, `left` lanes in use.  The
 * tail runs the same operations on a partial vector, so an element rounds alike
 * everywhere. */
#define EACH_VECTOR(n, BODY)                                                   \
    do {                                                                       \
        int64_t i = 0;                                                         \
        for (; i + LANES <= (n); i += LANES) {                                 \
            const int64_t left = LANES;                                        \
            BODY                                                               \
        }                                                                      \
        if (i < (n)) {                                                         \
            const int64_t left = (n)-i;                                        \
            BODY                                                               \
        }                                                                      \
    } while (0)
#define LOAD(p) (left == LANES ? v_load((p) + i) : v_load_part((p) + i, left))
#define STORE(p, v)                                                            \
    (left == LANES ? v_store((p) + i, v) : v_store_part((p) + i, v, left))

#endif
