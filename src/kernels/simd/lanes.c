/* The batch-in-lanes layout: LANES examples in the lanes of a vector, element
 * by element, [group][element][lane].  Vector code does to LANES examples what
 * scalar code does to one: no reduction across lanes, no odd channel counts,
 * every lane in use.  Rows past the end of a batch are zero. */
#include "kernels/simd/kernels.h"

/* Lanes l of the two results of one exchange at distance d of a transpose. */
#define PICK_A(l, d) (((l) & (d)) == 0 ? (l) : LANES + (l) - (d))
#define PICK_B(l, d) (((l) & (d)) == 0 ? (l) + (d) : LANES + (l))
#if LANES == 16
#define EXCHANGE(P, a, b, d)                                                   \
    __builtin_shufflevector(a, b, P(0, d), P(1, d), P(2, d), P(3, d), P(4, d), \
                            P(5, d), P(6, d), P(7, d), P(8, d), P(9, d),       \
                            P(10, d), P(11, d), P(12, d), P(13, d), P(14, d),  \
                            P(15, d))
#elif LANES == 8
#define EXCHANGE(P, a, b, d)                                                   \
    __builtin_shufflevector(a, b, P(0, d), P(1, d), P(2, d), P(3, d), P(4, d), \
                            P(5, d), P(6, d), P(7, d))
#else
#define EXCHANGE(P, a, b, d)                                                   \
    __builtin_shufflevector(a, b, P(0, d), P(1, d), P(2, d), P(3, d))
#endif

#define EXCHANGE_ALL(rows, d)                                                  \
    UNROLL for (int i = 0; i < LANES; i++) if ((i & (d)) == 0)                 \
    {                                                                          \
        vf a = rows[i], b = rows[i + (d)];                                     \
        rows[i] = EXCHANGE(PICK_A, a, b, d);                                   \
        rows[i + (d)] = EXCHANGE(PICK_B, a, b, d);                             \
    }

/* Transpose. */
INLINE void transpose(vf rows[LANES])
{
#if LANES >= 16
    EXCHANGE_ALL(rows, 8)
#endif
#if LANES >= 8
    EXCHANGE_ALL(rows, 4)
#endif
    EXCHANGE_ALL(rows, 2)
    EXCHANGE_ALL(rows, 1)
}

/* Up to LANES elements from `first` on of one row of a view; zero past the
 * end of the row. */
INLINE vf load_piece(const pl_view *view, int64_t row, int64_t first,
                     int64_t left)
{
    if (view->dtype == PL_UINT8) {
        const uint8_t *p = pl_view_row_u8(view, row) + first;
        return left >= LANES ? v_load_u8(p) : v_load_u8_part(p, left);
    }
    const float *p = pl_view_row_f32(view, row) + first;
    return left >= LANES ? v_load(p) : v_load_part(p, left);
}

#if LANES == 16
/* One stage of a transpose: rows i and i + 8 become rows 2i and 2i + 1. */
INLINE void interleave(const vb from[LANES], vb to[LANES])
{
    UNROLL
    for (int i = 0; i < LANES / 2; i++) {
        __m128i a = (__m128i)from[i], b = (__m128i)from[i + LANES / 2];
        to[2 * i] = (vb)_mm_unpacklo_epi8(a, b);
        to[2 * i + 1] = (vb)_mm_unpackhi_epi8(a, b);
    }
}

/* One group of rows of bytes, up to the last whole vector; returns the number
 * of elements done.  Moves bytes, not the numbers they become, which are four
 * times as large, and prefetches, since the processor cannot predict rows
 * selected by index. */
static int64_t bytes_to_lanes(int64_t row, const pl_view *src, int64_t first,
                              float *dst)
{
    vf scale = v_set(src->scale);
    const uint8_t *rows[LANES];
    for (int l = 0; l < LANES; l++)
        rows[l] = pl_view_row_u8(src, first + l);
    int64_t e = 0;
    for (; e + LANES <= row; e += LANES) {
        vb a[LANES], b[LANES];
        UNROLL
        for (int l = 0; l < LANES; l++) {
            memcpy(&a[l], rows[l] + e, sizeof a[l]);
            if (e % 64 == 0)
                __builtin_prefetch(rows[l] + e + 192);
        }
        interleave(a, b);
        interleave(b, a);
        interleave(a, b);
        interleave(b, a);
        UNROLL
        for (int i = 0; i < LANES; i++)
            v_store(dst + (e + i) * LANES, scale * v_from_bytes(a[i]));
    }
    return e;
}
#endif

void SIMD(to_lanes)(int64_t rows, int64_t row, const pl_view *src, float *dst)
{
    vf scale = v_set(src->scale);
    for (int64_t r = 0; r < rows; r += LANES, dst += row * LANES) {
        int64_t used = rows - r < LANES ? rows - r : LANES, e = 0;
#if LANES == 16
        if (src->dtype == PL_UINT8 && used == LANES)
            e = bytes_to_lanes(row, src, r, dst);
#endif
        for (; e < row; e += LANES) {
            vf block[LANES];
            for (int l = 0; l < LANES; l++)
                block[l] = l < used ? scale * load_piece(src, r + l, e, row - e)
                                    : v_set(0);
            transpose(block);
            for (int64_t i = 0; i < LANES && e + i < row; i++)
                v_store(dst + (e + i) * LANES, block[i]);
        }
    }
}

void SIMD(from_lanes)(int64_t rows, int64_t row, const float *src, float *dst)
{
    for (int64_t r = 0; r < rows; r += LANES, src += row * LANES) {
        int64_t used = rows - r < LANES ? rows - r : LANES;
        for (int64_t e = 0; e < row; e += LANES) {
            int64_t left = row - e < LANES ? row - e : LANES;
            vf block[LANES];
            for (int i = 0; i < LANES; i++)
                block[i] = i < left ? v_load(src + (e + i) * LANES) : v_set(0);
            transpose(block);
            for (int64_t l = 0; l < used; l++) {
                float *to = dst + (r + l) * row + e;
                if (left == LANES)
                    v_store(to, block[l]);
                else
                    v_store_part(to, block[l], left);
            }
        }
    }
}
