/* strip.h - pooling of one row of adjacent windows. */
#ifndef PL_KERNELS_SIMD_STRIP_H
#define PL_KERNELS_SIMD_STRIP_H

#include "kernels/simd/activation.h"

#include <stdbool.h>

/* Take `value` of cell `cell` if it is larger than *top or a NaN, which
 * stays. */
INLINE void take_larger(vf *top, vi *which, vf value, int32_t cell)
{
#if LANES == 16
    __m512 v = (__m512)value;
    __mmask16 take = _mm512_cmp_ps_mask(v, (__m512)*top, _CMP_GT_OQ) |
                     _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    *top = (vf)_mm512_mask_mov_ps((__m512)*top, take, v);
    *which = (vi)_mm512_mask_set1_epi32((__m512i)*which, take, cell);
#else
    vi bits = (vi)value & vi_set(INT32_MAX); /* a NaN's are larger than
                                                infinity's */
    vi take = (value > *top) | (bits > vi_set(0x7f800000));
    *top = v_select(take, value, *top);
    *which = (take & vi_set(cell)) | (~take & *which);
#endif
}

/* ReLU after the pooling equals ReLU before it, except for the sign of a
 * zero. */
INLINE void max_strip(bool relu, bool indexed, int64_t size, int64_t width,
                      const float *rows, float *dst, int32_t *index)
{
    for (int64_t x = 0; x < width; x += size, dst += LANES) {
        const float *corner = rows + x * LANES;
        vf top = v_load(corner);
        vi which = vi_set(0);
        UNROLL
        for (int32_t cell = 1; cell < size * size; cell++) {
            int64_t at = cell / size * width + cell % size;
            take_larger(&top, &which, v_load(corner + at * LANES), cell);
        }
        v_store(dst, relu ? v_relu(top) : top);
        if (indexed) {
            memcpy(index, &which, sizeof which);
            index += LANES;
        }
    }
}

INLINE void avg_strip(bool relu, int64_t size, int64_t width, const float *rows,
                      float *dst)
{
    vf share = v_set(1.0f / (float)(size * size));
    for (int64_t x = 0; x < width; x += size, dst += LANES) {
        vf sum = v_set(0);
        for (int64_t wy = 0; wy < size; wy++)
            for (int64_t wx = 0; wx < size; wx++) {
                vf value = v_load(rows + (wy * width + x + wx) * LANES);
                sum += relu ? v_relu(value) : value;
            }
        v_store(dst, sum * share);
    }
}

/* `size` rows of `width` vectors, a multiple of size -> one row.  index may be
 * NULL; only max pooling writes it. */
INLINE void pool_strip(pl_pooling pooling, bool relu, int64_t size,
                       int64_t width, const float *rows, float *dst,
                       int32_t *index)
{
    switch (pooling) {
    case PL_POOLING_MAX:
        if (size == 2 && relu && index != NULL) /* the most frequent case */
            max_strip(true, true, 2, width, rows, dst, index);
        else
            max_strip(relu, index != NULL, size, width, rows, dst, index);
        break;
    case PL_POOLING_AVG:
        avg_strip(relu, size, width, rows, dst);
        break;
    case PL_POOLING_NONE:
        for (int64_t x = 0; x < width * LANES; x += LANES) {
            vf value = v_load(rows + x);
            v_store(dst + x, relu ? v_relu(value) : value);
        }
        break;
    }
}

#endif
