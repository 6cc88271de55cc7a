/* Convolution in the batch-in-lanes layout.
 *
 * Design.  All three directions read a copy of their input with a border of
 * zeros, so the inner loops have no edges.
 *
 *   forward  a tile of OUTS channels x COLUMNS pixels of one row stays in
 *            registers over channels and kernel;
 *   source   the gradient of the input is a forward convolution of the
 *            spread-out gradient with the turned and transposed kernel;
 *   weights  a tile of OUTS channels x TAPS kernel columns stays in registers
 *            over all pixels of a group, and is folded over lanes then. */
#include "kernels/simd/fold.h"
#include "kernels/simd/kernels.h"

/* A tile has at most OUTS x COLUMNS sums, and no more than SUMS: with what is
 * loaded they fill the registers. */
#define OUTS    6
#define COLUMNS 6
#define TAPS    COLUMNS
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

/* A stack of planes [count][height][width] of vectors.  Outside of rows
 * [top, bottom) and columns [left, right) all is zero. */
typedef struct planes {
    const float *data;
    int64_t height, width;
    int64_t top, bottom, left, right;
} planes;

INLINE const float *plane_at(planes p, int64_t plane, int64_t y, int64_t x)
{
    return p.data + ((plane * p.height + y) * p.width + x) * LANES;
}

/* Copy planes [count][height][width] into those of `dst`, from its top left
 * on, with `gap` - 1 zeros between pixels. */
static void spread_out(int64_t count, int64_t height, int64_t width,
                       int64_t gap, const float *src, planes dst, float *to)
{
    memset(to, 0, (size_t)(count * dst.height * dst.width) * sizeof(vf));
    for (int64_t c = 0; c < count; c++)
        for (int64_t y = 0; y < height; y++) {
            int64_t row = c * dst.height + y * gap + dst.top;
            float *line = to + (row * dst.width + dst.left) * LANES;
            const float *from = src + (c * height + y) * width * LANES;
            for (int64_t x = 0; x < width; x++)
                v_store(line + x * gap * LANES, v_load(from + x * LANES));
        }
}

/* One group of the source with its border of zeros. */
static planes padded(const pl_conv *c, const float *src, float *scratch)
{
    planes p = {
        .data = c->pad > 0 ? scratch : src,
        .height = c->height + 2 * c->pad,
        .width = c->width + 2 * c->pad,
        .top = c->pad,
        .bottom = c->pad + c->height,
        .left = c->pad,
        .right = c->pad + c->width,
    };
    if (c->pad > 0)
        spread_out(c->channels, c->height, c->width, 1, src, p, scratch);
    return p;
}

/* What a forward tile needs beside its place. */
typedef struct forward {
    planes in;
    int64_t channels, kernel_h, kernel_w, stride;
    const float *weights; /* [outs][channels][kernel_h][kernel_w] */
    const float *bias;    /* NULL: none */
    float *out;           /* [outs][height][width] of vectors */
    int64_t height, width;
} forward;

INLINE void forward_tile(int outs, int columns, const forward *f, int64_t o,
                         int64_t y, int64_t x)
{
    vf sums[OUTS][COLUMNS];
    int64_t taps = f->kernel_h * f->kernel_w;
    UNROLL
    for (int i = 0; i < outs; i++)
        UNROLL
    for (int j = 0; j < columns; j++)
        sums[i][j] = v_set(f->bias != NULL ? f->bias[o + i] : 0.0f);
    /* Taps that meet nothing but zeros are left out. */
    int64_t row = y * f->stride, column = x * f->stride;
    int64_t last = column + (columns - 1) * f->stride;
    int64_t ky_first = row < f->in.top ? f->in.top - row : 0;
    int64_t ky_end =
        row + f->kernel_h > f->in.bottom ? f->in.bottom - row : f->kernel_h;
    int64_t kx_first = last < f->in.left ? f->in.left - last : 0;
    int64_t kx_end =
        column + f->kernel_w > f->in.right ? f->in.right - column : f->kernel_w;
    for (int64_t c = 0; c < f->channels; c++)
        for (int64_t ky = ky_first; ky < ky_end; ky++) {
            const float *in =
                plane_at(f->in, c, y * f->stride + ky, x * f->stride);
            const float *w =
                f->weights + (o * f->channels + c) * taps + ky * f->kernel_w;
            for (int64_t kx = kx_first; kx < kx_end; kx++) {
                vf pixel[COLUMNS];
                UNROLL
                for (int j = 0; j < columns; j++)
                    pixel[j] = v_load_keep(in + (j * f->stride + kx) * LANES);
                UNROLL
                for (int i = 0; i < outs; i++) {
                    vf weight = v_set(w[i * f->channels * taps + kx]);
                    UNROLL
                    for (int j = 0; j < columns; j++)
                        sums[i][j] = v_fma(weight, pixel[j], sums[i][j]);
                }
            }
        }
    UNROLL
    for (int i = 0; i < outs; i++)
        UNROLL
    for (int j = 0; j < columns; j++)
        v_store(f->out + (((o + i) * f->height + y) * f->width + x + j) * LANES,
                sums[i][j]);
}

typedef void forward_fn(const forward *f, int64_t o, int64_t y, int64_t x);

#define TILE(outs, columns)                                                    \
    static void tile_##outs##_##columns(const forward *f, int64_t o,           \
                                        int64_t y, int64_t x)                  \
    {                                                                          \
        forward_tile(outs, columns, f, o, y, x);                               \
    }
#define TILE_ENTRY(outs, columns)                                              \
    [(outs)-1][(columns)-1] = tile_##outs##_##columns,
EACH_TILE(TILE)

/* Into how many blocks channels and columns are split: of those whose tiles
 * fit, the one that loads least. */
typedef struct blocking {
    int64_t outs, columns;
} blocking;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static blocking choose_blocks(int64_t outs, int64_t width)
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

/* One row of the output: all channels, blocks as even as they go. */
static void forward_row(const forward *f, blocking blocks, int64_t outs,
                        int64_t y)
{
    static forward_fn *const tiles[OUTS][COLUMNS] = { EACH_TILE(TILE_ENTRY) };
    for (int64_t i = 0, o = 0; i < blocks.outs; i++) {
        int64_t here = (outs - o) / (blocks.outs - i);
        for (int64_t j = 0, x = 0; j < blocks.columns; j++) {
            int64_t columns = (f->width - x) / (blocks.columns - j);
            tiles[here - 1][columns - 1](f, o, y, x);
            x += columns;
        }
        o += here;
    }
}

static void forward_all(const forward *f, int64_t outs)
{
    blocking blocks = choose_blocks(outs, f->width);
    for (int64_t y = 0; y < f->height; y++)
        forward_row(f, blocks, outs, y);
}

static int64_t src_count(const pl_conv *c)
{
    return c->channels * c->height * c->width * LANES;
}

static int64_t dst_count(const pl_conv *c)
{
    return c->outs * c->out_height * c->out_width * LANES;
}

void SIMD(conv)(const pl_conv *c, int64_t groups, const float *src,
                const float *weights, const float *bias, float *scratch,
                float *dst)
{
    for (int64_t g = 0; g < groups; g++) {
        forward f = {
            .in = padded(c, src + g * src_count(c), scratch),
            .channels = c->channels,
            .kernel_h = c->kernel_h,
            .kernel_w = c->kernel_w,
            .stride = c->stride,
            .weights = weights,
            .bias = bias,
            .out = dst + g * dst_count(c),
            .height = c->out_height,
            .width = c->out_width,
        };
        forward_all(&f, c->outs);
    }
}

/* turned[channel][out][ky][kx] = weights[out][channel][last-ky][last-kx] */
static void turn_weights(const pl_conv *c, const float *weights, float *turned)
{
    int64_t taps = c->kernel_h * c->kernel_w;
    for (int64_t i = 0; i < c->channels; i++)
        for (int64_t o = 0; o < c->outs; o++)
            for (int64_t t = 0; t < taps; t++)
                turned[(i * c->outs + o) * taps + t] =
                    weights[(o * c->channels + i) * taps + taps - 1 - t];
}

void SIMD(conv_src)(const pl_conv *c, int64_t groups, const float *diff_dst,
                    const float *weights, float *scratch, float *diff_src)
{
    int64_t top = c->kernel_h - 1 - c->pad, left = c->kernel_w - 1 - c->pad;
    planes spread = {
        .data = scratch,
        .height = c->height + c->kernel_h - 1,
        .width = c->width + c->kernel_w - 1,
        .top = top,
        .bottom = top + (c->out_height - 1) * c->stride + 1,
        .left = left,
        .right = left + (c->out_width - 1) * c->stride + 1,
    };
    float *turned = scratch + c->outs * spread.height * spread.width * LANES;
    turn_weights(c, weights, turned);
    for (int64_t g = 0; g < groups; g++) {
        spread_out(c->outs, c->out_height, c->out_width, c->stride,
                   diff_dst + g * dst_count(c), spread, scratch);
        forward f = {
            .in = spread,
            .channels = c->outs,
            .kernel_h = c->kernel_h,
            .kernel_w = c->kernel_w,
            .stride = 1,
            .weights = turned,
            .out = diff_src + g * src_count(c),
            .height = c->height,
            .width = c->width,
        };
        forward_all(&f, c->channels);
    }
}

/* Where a tile of the weight gradient lies. */
typedef struct tap {
    int64_t out, channel, ky, kx;
} tap;

/* sums over one group of diff(out + i, y, x) * in(channel, ys + ky, xs + kx +
 * j), added to diff_weights. */
INLINE void weights_tile(int outs, int taps, const pl_conv *c, planes diff,
                         planes in, tap at, float *diff_weights)
{
    vf sums[OUTS][TAPS];
    UNROLL
    for (int i = 0; i < outs; i++)
        UNROLL
    for (int j = 0; j < taps; j++)
        sums[i][j] = v_set(0);
    for (int64_t y = 0; y < c->out_height; y++) {
        const float *row =
            plane_at(in, at.channel, y * c->stride + at.ky, at.kx);
        const float *d = plane_at(diff, at.out, y, 0);
        for (int64_t x = 0; x < c->out_width; x++) {
            vf pixel[TAPS];
            UNROLL
            for (int j = 0; j < taps; j++)
                pixel[j] = v_load_keep(row + (x * c->stride + j) * LANES);
            UNROLL
            for (int i = 0; i < outs; i++) {
                vf slope =
                    v_load(d + (i * c->out_height * c->out_width + x) * LANES);
                UNROLL
                for (int j = 0; j < taps; j++)
                    sums[i][j] = v_fma(slope, pixel[j], sums[i][j]);
            }
        }
    }
    UNROLL
    for (int i = 0; i < outs; i++) {
        int64_t filter = (at.out + i) * c->channels + at.channel;
        float *to =
            diff_weights + (filter * c->kernel_h + at.ky) * c->kernel_w + at.kx;
        UNROLL
        for (int j = 0; j < taps; j += 4) {
            vf zero = v_set(0);
            vf four = v_fold4(sums[i][j], j + 1 < taps ? sums[i][j + 1] : zero,
                              j + 2 < taps ? sums[i][j + 2] : zero,
                              j + 3 < taps ? sums[i][j + 3] : zero);
            UNROLL
            for (int t = 0; t < 4; t++)
                if (j + t < taps)
                    to[j + t] += four[t];
        }
    }
}

typedef void weights_fn(const pl_conv *c, planes diff, planes in, tap at,
                        float *diff_weights);

#define WEIGHTS(outs, taps)                                                    \
    static void weights_##outs##_##taps(                                       \
        const pl_conv *c, planes diff, planes in, tap at, float *diff_weights) \
    {                                                                          \
        weights_tile(outs, taps, c, diff, in, at, diff_weights);               \
    }
#define WEIGHTS_ENTRY(outs, taps)                                              \
    [(outs)-1][(taps)-1] = weights_##outs##_##taps,
EACH_TILE(WEIGHTS)

void SIMD(conv_weights)(const pl_conv *c, int64_t groups, const float *diff_dst,
                        const float *src, float *scratch, float *diff_weights)
{
    static weights_fn *const tiles[OUTS][TAPS] = { EACH_TILE(WEIGHTS_ENTRY) };
    int64_t count = c->outs * c->channels * c->kernel_h * c->kernel_w;
    memset(diff_weights, 0, (size_t)count * sizeof *diff_weights);
    blocking blocks = choose_blocks(c->outs, c->kernel_w);
    for (int64_t g = 0; g < groups; g++) {
        planes in = padded(c, src + g * src_count(c), scratch);
        planes diff = { .data = diff_dst + g * dst_count(c),
                        .height = c->out_height,
                        .width = c->out_width };
        for (int64_t i = 0, o = 0, outs; i < blocks.outs; i++, o += outs) {
            outs = (c->outs - o) / (blocks.outs - i);
            for (int64_t j = 0, kx = 0, taps; j < blocks.columns;
                 j++, kx += taps) {
                taps = (c->kernel_w - kx) / (blocks.columns - j);
                for (int64_t ch = 0; ch < c->channels; ch++)
                    for (int64_t ky = 0; ky < c->kernel_h; ky++)
                        tiles[outs - 1][taps - 1](
                            c, diff, in, (tap) { o, ch, ky, kx }, diff_weights);
            }
        }
    }
}

void SIMD(conv_bias)(const pl_conv *c, int64_t groups, const float *diff_dst,
                     float *diff_bias)
{
    int64_t pixels = c->out_height * c->out_width;
    for (int64_t o = 0; o < c->outs; o++) {
        vf sum = v_set(0);
        for (int64_t g = 0; g < groups; g++) {
            const float *d = diff_dst + (g * c->outs + o) * pixels * LANES;
            for (int64_t i = 0; i < pixels; i++)
                sum += v_load(d + i * LANES);
        }
        diff_bias[o] = v_sum(sum);
    }
}
