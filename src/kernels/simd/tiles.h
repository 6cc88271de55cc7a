/* tiles.h - how convolutions are split into tiles that fit the registers. */
#ifndef PL_KERNELS_SIMD_TILES_H
#define PL_KERNELS_SIMD_TILES_H

#include "kernels/simd/simd.h"

/* A tile has at most OUTS x COLUMNS sums, and no more than SUMS: with the
 * loaded operands they fill the registers. */
#define OUTS    PL_CONV_OUTS
#define COLUMNS 6
#if LANES == 16
#define SUMS 24 /* of 32 registers */
#define EACH_TILE(X)                                                           \
    UP_TO_6(X, 1)                                                              \
    UP_TO_6(X, 2) UP_TO_6(X, 3) UP_TO_6(X, 4) UP_TO_4(X, 5) UP_TO_4(X, 6)
#else
#define SUMS 12 /* of 16 registers */
#define EACH_TILE(X)                                                           \
    UP_TO_6(X, 1)                                                              \
    UP_TO_6(X, 2) UP_TO_4(X, 3) UP_TO_3(X, 4) UP_TO_2(X, 5) UP_TO_2(X, 6)
#endif
#define UP_TO_2(X, n) X(n, 1) X(n, 2)
#define UP_TO_3(X, n) UP_TO_2(X, n) X(n, 3)
#define UP_TO_4(X, n) UP_TO_3(X, n) X(n, 4)
#define UP_TO_6(X, n) UP_TO_4(X, n) X(n, 5) X(n, 6)

INLINE int64_t clamp(int64_t x, int64_t least, int64_t most)
{
    return x < least ? least : x > most ? most : x;
}

/* Into how many blocks channels and columns are split: of those whose tiles fit
 * the registers, the one with the fewest loads. */
typedef struct blocking {
    int64_t outs, columns;
} blocking;

INLINE int64_t ceil_div(int64_t a, int64_t b)
{
    return b == 1 ? a : (a + b - 1) / b;
}

INLINE blocking choose_blocks(int64_t outs, int64_t width)
{
    blocking best = { 0, 0 };
    int64_t least = INT64_MAX;
    for (int64_t out = 1; out <= OUTS; out++) {
        int64_t most = SUMS / out < COLUMNS ? SUMS / out : COLUMNS;
        blocking b = { ceil_div(outs, out), ceil_div(width, most) };
        int64_t loads = b.columns * outs + b.outs * width;
        if (loads < least) {
            least = loads;
            best = b;
        }
    }
    return best;
}

/* Floats of one group. */
INLINE int64_t src_count(const pl_conv *c)
{
    return c->channels * c->height * c->width * LANES;
}

INLINE int64_t dst_count(const pl_conv *c)
{
    return c->outs * c->out_height * c->out_width * LANES;
}

#endif
