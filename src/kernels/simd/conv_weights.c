/* Convolution in the batch-in-lanes layout: the gradients of weights and bias.
 *
 * Design.  A tile of outs x taps of one kernel row stays in registers over all
 * pixels of a group that are inside the image.  Tiles are stored as vectors
 * until there are enough to fold over lanes, LANES at a time: that costs far
 * less than folding each sum separately. */
#include "kernels/simd/fold.h"
#include "kernels/simd/kernels.h"
#include "kernels/simd/tiles.h"

#define TAPS   COLUMNS
#define FOLDED PL_CONV_FOLDED
#define CHAINS 4 /* independent sums, to hide latency */

/* Position of a tile of the weight gradient. */
typedef struct tap {
    int64_t out, channel, ky, kx;
} tap;

/* One pixel at which all taps are inside the source. */
INLINE void weights_full(int outs, int taps, const float *in, const float *d,
                         int64_t plane, vf sums[OUTS][TAPS])
{
    vf pixel[TAPS];
    UNROLL
    for (int j = 0; j < taps; j++)
        pixel[j] = v_load_keep(in + j * LANES);
    UNROLL
    for (int i = 0; i < outs; i++) {
        vf slope = v_load_keep(d + i * plane);
        UNROLL
        for (int j = 0; j < taps; j++)
            sums[i][j] = v_fma(slope, pixel[j], sums[i][j]);
    }
}

/* The same at an edge: `x` is the source column of the first tap, of
 * `width`. */
INLINE void weights_edge(int outs, int taps, const float *row, int64_t x,
                         int64_t width, const float *d, int64_t plane,
                         vf sums[OUTS][TAPS])
{
    UNROLL
    for (int j = 0; j < taps; j++) {
        if (x + j < 0 || x + j >= width)
            continue;
        vf pixel = v_load_keep(row + (x + j) * LANES);
        UNROLL
        for (int i = 0; i < outs; i++)
            sums[i][j] = v_fma(v_load(d + i * plane), pixel, sums[i][j]);
    }
}

/* The sums over one group of diff(out + i, y, x) * src(channel, ys + ky - pad,
 * xs + kx + j - pad), as vectors at to[i * filter + j]. */
INLINE void weights_tile(int outs, int taps, const pl_conv *c,
                         const float *diff, const float *src, tap at,
                         int64_t filter, float *to)
{
    vf sums[OUTS][TAPS];
    UNROLL
    for (int i = 0; i < outs; i++)
        UNROLL
    for (int j = 0; j < taps; j++)
        sums[i][j] = v_set(0);
    int64_t stride = c->stride, top = at.ky - c->pad, left = at.kx - c->pad;
    int64_t y_first = clamp(ceil_div(-top, stride), 0, c->out_height);
    int64_t y_end = clamp(ceil_div(c->height - top, stride), 0, c->out_height);
    /* Pixels at which all taps are inside the source. */
    int64_t full_first = clamp(ceil_div(-left, stride), 0, c->out_width);
    int64_t full_end = clamp(ceil_div(c->width - left - taps + 1, stride),
                             full_first, c->out_width);
    int64_t plane = c->out_height * c->out_width * LANES;
    for (int64_t y = y_first; y < y_end; y++) {
        const float *row =
            src +
            ((at.channel * c->height + y * stride + top) * c->width) * LANES;
        const float *d = diff + at.out * plane + y * c->out_width * LANES;
        int64_t x = 0;
        for (; x < full_first; x++)
            weights_edge(outs, taps, row, x * stride + left, c->width,
                         d + x * LANES, plane, sums);
        for (; x < full_end; x++)
            weights_full(outs, taps, row + (x * stride + left) * LANES,
                         d + x * LANES, plane, sums);
        for (; x < c->out_width; x++)
            weights_edge(outs, taps, row, x * stride + left, c->width,
                         d + x * LANES, plane, sums);
    }
    UNROLL
    for (int i = 0; i < outs; i++)
        UNROLL
    for (int j = 0; j < taps; j++)
        v_store(to + (i * filter + j) * LANES, sums[i][j]);
}

typedef void weights_fn(const pl_conv *c, const float *diff, const float *src,
                        tap at, int64_t filter, float *to);

#define WEIGHTS(outs, taps)                                                    \
    static void weights_##outs##_##taps(const pl_conv *c, const float *diff,   \
                                        const float *src, tap at,              \
                                        int64_t filter, float *to)             \
    {                                                                          \
        weights_tile(outs, taps, c, diff, src, at, filter, to);                \
    }
#define WEIGHTS_ENTRY(outs, taps)                                              \
    [(outs)-1][(taps)-1] = weights_##outs##_##taps,
EACH_TILE(WEIGHTS)

/* All taps of `outs` outs and `channels` channels, as vectors. */
static void weights_block(const pl_conv *c, const float *diff, const float *src,
                          blocking blocks, tap first, int64_t outs,
                          int64_t channels, float *to)
{
    static weights_fn *const tiles[OUTS][TAPS] = { EACH_TILE(WEIGHTS_ENTRY) };
    int64_t filter = channels * c->kernel_h * c->kernel_w;
    for (int64_t ch = 0; ch < channels; ch++)
        for (int64_t ky = 0; ky < c->kernel_h; ky++)
            for (int64_t j = 0, kx = 0, taps; j < blocks.columns;
                 j++, kx += taps, to += taps * LANES) {
                taps = (c->kernel_w - kx) / (blocks.columns - j);
                tap at = { first.out, first.channel + ch, ky, kx };
                tiles[outs - 1][taps - 1](c, diff, src, at, filter, to);
            }
}

/* to[0 .. count-1] += the sums of `count` vectors. */
static void fold_into(int64_t count, const float *vectors, float *to)
{
    EACH_VECTOR(count, {
        vf sums = v_fold(vectors + i * LANES);
        STORE(to, LOAD(to) + sums);
    });
}

void SIMD(conv_weights)(const pl_conv *c, int64_t groups, const float *diff_dst,
                        const float *src, float *scratch, float *diff_weights)
{
    int64_t taps = c->kernel_h * c->kernel_w;
    int64_t count = c->outs * c->channels * taps;
    memset(diff_weights, 0, (size_t)count * sizeof *diff_weights);
    blocking blocks = choose_blocks(c->outs, c->kernel_w);
    int64_t most = clamp(FOLDED / (OUTS * taps), 1, c->channels);
    for (int64_t g = 0; g < groups; g++)
        for (int64_t i = 0, o = 0, outs; i < blocks.outs; i++, o += outs) {
            outs = (c->outs - o) / (blocks.outs - i);
            for (int64_t ch = 0, now; ch < c->channels; ch += now) {
                now = c->channels - ch < most ? c->channels - ch : most;
                weights_block(c, diff_dst + g * dst_count(c),
                              src + g * src_count(c), blocks,
                              (tap) { .out = o, .channel = ch }, outs, now,
                              scratch);
                for (int64_t k = 0; k < outs; k++)
                    fold_into(now * taps, scratch + k * now * taps * LANES,
                              diff_weights +
                                  ((o + k) * c->channels + ch) * taps);
            }
        }
}

void SIMD(conv_bias)(const pl_conv *c, int64_t groups, const float *diff_dst,
                     float *diff_bias)
{
    int64_t rows = c->out_height, width = c->out_width;
    for (int64_t o = 0; o < c->outs; o++) {
        vf sums[CHAINS] = { v_set(0) };
        for (int64_t r = 0; r < groups * rows; r++) {
            const float *d =
                diff_dst +
                ((r / rows * c->outs + o) * rows + r % rows) * width * LANES;
            int64_t x = 0;
            /* Each chain has its columns: trailing zeros change no bit. */
            for (; x + CHAINS <= width; x += CHAINS)
                UNROLL
            for (int j = 0; j < CHAINS; j++)
                sums[j] += v_load(d + (x + j) * LANES);
            UNROLL
            for (int j = 0; j < CHAINS - 1; j++)
                if (x + j < width)
                    sums[j] += v_load(d + (x + j) * LANES);
        }
        diff_bias[o] = v_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
    }
}
