/* Convolution in the batch-in-lanes layout: forward, and the gradient of the
 * source.
 *
 * Design.  A tile of outs x columns pixels of one row stays in registers over
 * channels and kernel.  Pixels outside of the image are neither read nor
 * multiplied: at an edge a kernel column is applied only to the pixels it
 * covers.
 *
 * The gradient of the source is a forward convolution of the gradient with the
 * turned and transposed kernel; with a stride the gradient is first spread. */
#include "kernels/simd/kernels.h"
#include "kernels/simd/strip.h"
#include "kernels/simd/tiles.h"

/* Inputs of a forward tile besides its position.  The source has no border: row
 * y, column x of the result reads rows from y * stride - top and columns from x
 * * stride - left on, skipping those outside the image. */
typedef struct forward {
    const float *src; /* [channels][src_height][src_width] of vectors */
    int64_t channels, src_height, src_width;
    int64_t kernel_h, kernel_w, stride, top, left;
    const float *weights; /* [outs][channels][kernel_h][kernel_w] */
    const float *bias;    /* NULL: none */
    float *out;           /* [outs][height][width] of vectors */
    int64_t height, width;
    int64_t first_out, first_row; /* of the first element of `out` */
} forward;

/* One kernel column, for which all columns of the tile are inside the
 * source. */
INLINE void forward_full(int outs, int columns, const float *in, int64_t step,
                         const float *w, int64_t filter, vf sums[OUTS][COLUMNS])
{
    vf pixel[COLUMNS];
    UNROLL
    for (int j = 0; j < columns; j++)
        pixel[j] = v_load_keep(in + j * step);
    UNROLL
    for (int i = 0; i < outs; i++) {
        vf weight = v_set(w[i * filter]);
        UNROLL
        for (int j = 0; j < columns; j++)
            sums[i][j] = v_fma(weight, pixel[j], sums[i][j]);
    }
}

/* The same at an edge: `x` is the source column of the tile's first, of
 * `width`. */
INLINE void forward_edge(int outs, int columns, const float *row, int64_t x,
                         int64_t stride, int64_t width, const float *w,
                         int64_t filter, vf sums[OUTS][COLUMNS])
{
    UNROLL
    for (int j = 0; j < columns; j++, x += stride) {
        if (x < 0 || x >= width)
            continue;
        vf pixel = v_load_keep(row + x * LANES);
        UNROLL
        for (int i = 0; i < outs; i++)
            sums[i][j] = v_fma(v_set(w[i * filter]), pixel, sums[i][j]);
    }
}

/* What a tile multiplies, from the first kernel row inside the source in its
 * first channel on. */
typedef struct reach {
    const float *in; /* source row, column 0 */
    const float *weights;
    int64_t rows;   /* kernel rows */
    int64_t column; /* source column for the first columns of tile and kernel */
    int64_t filter; /* floats between the weights of two outs */
} reach;

/* All kernel columns are inside the source, at stride 1; their number is a
 * constant. */
INLINE void forward_inside(int outs, int columns, int kernel_w,
                           const forward *f, reach t, vf sums[OUTS][COLUMNS])
{
    const float *in = t.in + t.column * LANES, *w = t.weights;
    int64_t row = f->src_width * LANES;
    for (int64_t c = 0; c < f->channels; c++) {
        for (int64_t ky = 0; ky < t.rows; ky++)
            UNROLL
        for (int kx = 0; kx < kernel_w; kx++)
            forward_full(outs, columns, in + ky * row + kx * LANES, LANES,
                         w + ky * kernel_w + kx, t.filter, sums);
        in += f->src_height * row;
        w += f->kernel_h * kernel_w;
    }
}

/* Kernel columns may be inside the source for some columns of the tile only. */
INLINE void forward_outside(int outs, int columns, const forward *f, reach t,
                            vf sums[OUTS][COLUMNS])
{
    int64_t stride = f->stride, width = f->src_width;
    int64_t last = t.column + (columns - 1) * stride;
    int64_t first = clamp(-last, 0, f->kernel_w);
    int64_t end = clamp(width - t.column, first, f->kernel_w);
    int64_t full_first = clamp(-t.column, first, end);
    int64_t full_end = clamp(width - last, full_first, end);
    for (int64_t c = 0; c < f->channels; c++)
        for (int64_t ky = 0; ky < t.rows; ky++) {
            const float *in = t.in + (c * f->src_height + ky) * width * LANES;
            const float *w = t.weights + (c * f->kernel_h + ky) * f->kernel_w;
            int64_t kx = first;
            for (; kx < full_first; kx++)
                forward_edge(outs, columns, in, t.column + kx, stride, width,
                             w + kx, t.filter, sums);
            for (; kx < full_end; kx++)
                forward_full(outs, columns, in + (t.column + kx) * LANES,
                             stride * LANES, w + kx, t.filter, sums);
            for (; kx < end; kx++)
                forward_edge(outs, columns, in, t.column + kx, stride, width,
                             w + kx, t.filter, sums);
        }
}

INLINE void forward_tile(int outs, int columns, const forward *f, int64_t o,
                         int64_t y, int64_t x)
{
    vf sums[OUTS][COLUMNS];
    UNROLL
    for (int i = 0; i < outs; i++)
        UNROLL
    for (int j = 0; j < columns; j++)
        sums[i][j] = v_set(f->bias != NULL ? f->bias[o + i] : 0.0f);

    int64_t stride = f->stride, row = y * stride - f->top;
    int64_t ky_first = clamp(-row, 0, f->kernel_h);
    int64_t ky_end = clamp(f->src_height - row, ky_first, f->kernel_h);
    int64_t filter = f->channels * f->kernel_h * f->kernel_w;
    reach t = {
        .in = f->src + (row + ky_first) * f->src_width * LANES,
        .weights = f->weights + o * filter + ky_first * f->kernel_w,
        .rows = ky_end - ky_first,
        .column = x * stride - f->left,
        .filter = filter,
    };
    bool inside = stride == 1 && t.column >= 0 &&
                  t.column + columns + f->kernel_w - 1 <= f->src_width;
    if (inside && f->kernel_w == 3)
        forward_inside(outs, columns, 3, f, t, sums);
    else if (inside && f->kernel_w == 5)
        forward_inside(outs, columns, 5, f, t, sums);
    else
        forward_outside(outs, columns, f, t, sums);

    int64_t plane = o - f->first_out, line = y - f->first_row;
    float *to = f->out + ((plane * f->height + line) * f->width + x) * LANES;
    UNROLL
    for (int i = 0; i < outs; i++)
        UNROLL
    for (int j = 0; j < columns; j++)
        v_store(to + (i * f->height * f->width + j) * LANES, sums[i][j]);
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

/* One row of `outs` outs from `o` on, in tiles of nearly equal size. */
static void forward_row(const forward *f, int64_t blocks, int64_t o,
                        int64_t outs, int64_t y)
{
    static forward_fn *const tiles[OUTS][COLUMNS] = { EACH_TILE(TILE_ENTRY) };
    for (int64_t j = 0, x = 0, columns; j < blocks; j++, x += columns) {
        columns = (f->width - x) / (blocks - j);
        tiles[outs - 1][columns - 1](f, o, y, x);
    }
}

static void forward_all(const forward *f, int64_t outs)
{
    blocking blocks = choose_blocks(outs, f->width);
    for (int64_t y = 0; y < f->height; y++)
        for (int64_t i = 0, o = 0, here; i < blocks.outs; i++, o += here) {
            here = (outs - o) / (blocks.outs - i);
            forward_row(f, blocks.columns, o, here, y);
        }
}

/* The forward direction of one group, without an output. */
static forward forward_of(const pl_conv *c, const float *src,
                          const float *weights, const float *bias)
{
    return (forward) {
        .src = src,
        .channels = c->channels,
        .src_height = c->height,
        .src_width = c->width,
        .kernel_h = c->kernel_h,
        .kernel_w = c->kernel_w,
        .stride = c->stride,
        .top = c->pad,
        .left = c->pad,
        .weights = weights,
        .bias = bias,
        .height = c->out_height,
        .width = c->out_width,
    };
}

void SIMD(conv)(const pl_conv *c, int64_t groups, const float *src,
                const float *weights, const float *bias, float *scratch,
                float *dst)
{
    (void)scratch;
    for (int64_t g = 0; g < groups; g++) {
        forward f = forward_of(c, src + g * src_count(c), weights, bias);
        f.out = dst + g * dst_count(c);
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

/* Copy planes [count][height][width] with `gap` - 1 zeros between pixels. */
static void spread_out(int64_t count, int64_t height, int64_t width,
                       int64_t gap, const float *src, float *dst)
{
    int64_t high = (height - 1) * gap + 1, wide = (width - 1) * gap + 1;
    memset(dst, 0, (size_t)(count * high * wide) * sizeof(vf));
    for (int64_t c = 0; c < count; c++)
        for (int64_t y = 0; y < height; y++)
            for (int64_t x = 0; x < width; x++, src += LANES)
                v_store(dst + ((c * high + y * gap) * wide + x * gap) * LANES,
                        v_load(src));
}

void SIMD(conv_src)(const pl_conv *c, int64_t groups, const float *diff_dst,
                    const float *weights, float *scratch, float *diff_src)
{
    int64_t high = (c->out_height - 1) * c->stride + 1;
    int64_t wide = (c->out_width - 1) * c->stride + 1;
    float *turned =
        scratch + (c->stride > 1 ? c->outs * high * wide * LANES : 0);
    turn_weights(c, weights, turned);
    for (int64_t g = 0; g < groups; g++) {
        const float *diff = diff_dst + g * dst_count(c);
        if (c->stride > 1) {
            spread_out(c->outs, c->out_height, c->out_width, c->stride, diff,
                       scratch);
            diff = scratch;
        }
        forward f = {
            .src = diff,
            .channels = c->outs,
            .src_height = high,
            .src_width = wide,
            .kernel_h = c->kernel_h,
            .kernel_w = c->kernel_w,
            .stride = 1,
            .top = c->kernel_h - 1 - c->pad,
            .left = c->kernel_w - 1 - c->pad,
            .weights = turned,
            .out = diff_src + g * src_count(c),
            .height = c->height,
            .width = c->width,
        };
        forward_all(&f, c->channels);
    }
}

/* Activate the rows of a strip and pool its windows. */
static void finish_strip(const pl_conv_block *b, const forward *f, int64_t outs,
                         float *dst, int32_t *index)
{
    int64_t count = f->height * f->width * LANES;
    bool relu = b->activation == PL_ACTIVATION_RELU;
    if (b->activation == PL_ACTIVATION_TANH)
        SIMD(tanh)(outs * count, f->out, f->out);
    else if (b->activation == PL_ACTIVATION_SIGMOID)
        SIMD(sigmoid)(outs * count, f->out, f->out);
    int64_t plane = b->window.out_height * b->window.out_width * LANES;
    for (int64_t i = 0; i < outs; i++)
        pool_strip(b->pooling, relu, b->window.size, f->width,
                   f->out + i * count, dst + i * plane,
                   index != NULL ? index + i * plane : NULL);
}

/* A strip is the rows under one row of windows, for a few outs: it stays in the
 * first-level cache from convolution to pooling. */
void SIMD(conv_block)(const pl_conv_block *b, int64_t groups, const float *src,
                      const float *weights, const float *bias, float *scratch,
                      float *dst, int32_t *index)
{
    const pl_conv *c = &b->conv;
    const pl_window *w = &b->window;
    int64_t width = w->out_width * w->size; /* pixels outside all windows are
                                               skipped */
    int64_t plane = w->out_height * w->out_width * LANES;
    blocking blocks = choose_blocks(c->outs, width);
    for (int64_t g = 0; g < groups; g++) {
        forward f = forward_of(c, src + g * src_count(c), weights, bias);
        f.out = scratch;
        f.height = w->size;
        f.width = width;
        for (int64_t y = 0; y < w->out_height; y++) {
            f.first_row = y * w->size;
            for (int64_t i = 0, o = 0, here; i < blocks.outs; i++, o += here) {
                here = (c->outs - o) / (blocks.outs - i);
                f.first_out = o;
                for (int64_t r = 0; r < w->size; r++)
                    forward_row(&f, blocks.columns, o, here, f.first_row + r);
                int64_t to =
                    (g * c->outs + o) * plane + y * w->out_width * LANES;
                finish_strip(b, &f, here, dst + to,
                             index != NULL ? index + to : NULL);
            }
        }
    }
}
