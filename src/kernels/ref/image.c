/* Reference convolution and pooling: one loop over all products, written to be
 * obviously correct. Every optimized kernel is tested against these. */
#include "kernels/ref/image.h"

#include <math.h>
#include <string.h>

/* One product of a convolution: an element of src, of dst and of weights. */
typedef struct term {
    int64_t src, dst, weight;
} term;

typedef void term_fn(void *context, term t);

/* Call `each` for all products of one example, except those outside the
 * image. */
static void each_term(const pl_conv *c, int64_t example, term_fn *each,
                      void *context)
{
    for (int64_t o = 0; o < c->outs; o++)
        for (int64_t y = 0; y < c->out_height; y++)
            for (int64_t x = 0; x < c->out_width; x++)
                for (int64_t i = 0; i < c->channels; i++)
                    for (int64_t ky = 0; ky < c->kernel_h; ky++)
                        for (int64_t kx = 0; kx < c->kernel_w; kx++) {
                            int64_t sy = y * c->stride + ky - c->pad;
                            int64_t sx = x * c->stride + kx - c->pad;
                            if (sy < 0 || sy >= c->height || sx < 0 ||
                                sx >= c->width)
                                continue;
                            int64_t plane = example * c->channels + i;
                            int64_t map = example * c->outs + o;
                            int64_t filter = o * c->channels + i;
                            each(context,
                                 (term) {
                                     (plane * c->height + sy) * c->width + sx,
                                     (map * c->out_height + y) * c->out_width +
                                         x,
                                     (filter * c->kernel_h + ky) * c->kernel_w +
                                         kx,
                                 });
                        }
}

typedef struct arrays {
    const float *src, *weights, *diff_dst;
    float *out;
} arrays;

static void add_dst(void *context, term t)
{
    arrays *a = context;
    a->out[t.dst] += a->src[t.src] * a->weights[t.weight];
}

static void add_src(void *context, term t)
{
    arrays *a = context;
    a->out[t.src] += a->diff_dst[t.dst] * a->weights[t.weight];
}

static void add_weights(void *context, term t)
{
    arrays *a = context;
    a->out[t.weight] += a->diff_dst[t.dst] * a->src[t.src];
}

void pl_reference_conv(const pl_conv *c, int64_t groups, const float *src,
                       const float *weights, const float *bias, float *scratch,
                       float *dst)
{
    (void)scratch;
    int64_t pixels = c->out_height * c->out_width;
    arrays a = { .src = src, .weights = weights, .out = dst };
    for (int64_t i = 0; i < groups * c->outs * pixels; i++)
        dst[i] = bias != NULL ? bias[i / pixels % c->outs] : 0;
    for (int64_t g = 0; g < groups; g++)
        each_term(c, g, add_dst, &a);
}

void pl_reference_conv_src(const pl_conv *c, int64_t groups,
                           const float *diff_dst, const float *weights,
                           float *scratch, float *diff_src)
{
    (void)scratch;
    arrays a = { .weights = weights, .diff_dst = diff_dst, .out = diff_src };
    int64_t count = groups * c->channels * c->height * c->width;
    memset(diff_src, 0, (size_t)count * sizeof *diff_src);
    for (int64_t g = 0; g < groups; g++)
        each_term(c, g, add_src, &a);
}

void pl_reference_conv_weights(const pl_conv *c, int64_t groups,
                               const float *diff_dst, const float *src,
                               float *scratch, float *diff_weights)
{
    (void)scratch;
    arrays a = { .src = src, .diff_dst = diff_dst, .out = diff_weights };
    int64_t count = c->outs * c->channels * c->kernel_h * c->kernel_w;
    memset(diff_weights, 0, (size_t)count * sizeof *diff_weights);
    for (int64_t g = 0; g < groups; g++)
        each_term(c, g, add_weights, &a);
}

void pl_reference_conv_bias(const pl_conv *c, int64_t groups,
                            const float *diff_dst, float *diff_bias)
{
    int64_t pixels = c->out_height * c->out_width;
    for (int64_t o = 0; o < c->outs; o++) {
        double sum = 0;
        for (int64_t g = 0; g < groups; g++)
            for (int64_t i = 0; i < pixels; i++)
                sum += (double)diff_dst[(g * c->outs + o) * pixels + i];
        diff_bias[o] = (float)sum;
    }
}

/* The offset in src of cell (wy, wx) of window i of dst. */
static int64_t cell(const pl_window *w, int64_t i, int64_t wy, int64_t wx)
{
    int64_t x = i % w->out_width, y = i / w->out_width % w->out_height;
    int64_t plane = i / w->out_width / w->out_height;
    return (plane * w->height + y * w->stride + wy) * w->width + x * w->stride +
           wx;
}

static int64_t window_count(const pl_window *w, int64_t groups)
{
    return groups * w->channels * w->out_height * w->out_width;
}

/* The first largest cell of window i. */
static int64_t top_cell(const pl_window *w, const float *src, int64_t i)
{
    int64_t top = cell(w, i, 0, 0);
    for (int64_t wy = 0; wy < w->size; wy++)
        for (int64_t wx = 0; wx < w->size; wx++)
            if (src[cell(w, i, wy, wx)] > src[top] ||
                isnan(src[cell(w, i, wy, wx)]))
                top = cell(w, i, wy, wx);
    return top;
}

void pl_reference_max_pool(const pl_window *w, int64_t groups, const float *src,
                           float *dst)
{
    for (int64_t i = 0; i < window_count(w, groups); i++)
        dst[i] = src[top_cell(w, src, i)];
}

void pl_reference_max_pool_grad(const pl_window *w, int64_t groups,
                                const float *src, const float *dst,
                                const float *diff_dst, float *diff_src)
{
    (void)dst;
    int64_t count = groups * w->channels * w->height * w->width;
    memset(diff_src, 0, (size_t)count * sizeof *diff_src);
    for (int64_t i = 0; i < window_count(w, groups); i++)
        diff_src[top_cell(w, src, i)] += diff_dst[i];
}

void pl_reference_avg_pool(const pl_window *w, int64_t groups, const float *src,
                           float *dst)
{
    float cells = (float)(w->size * w->size);
    for (int64_t i = 0; i < window_count(w, groups); i++) {
        double sum = 0;
        for (int64_t wy = 0; wy < w->size; wy++)
            for (int64_t wx = 0; wx < w->size; wx++)
                sum += (double)src[cell(w, i, wy, wx)];
        dst[i] = (float)sum / cells;
    }
}

void pl_reference_avg_pool_grad(const pl_window *w, int64_t groups,
                                const float *diff_dst, float *diff_src)
{
    float cells = (float)(w->size * w->size);
    int64_t count = groups * w->channels * w->height * w->width;
    memset(diff_src, 0, (size_t)count * sizeof *diff_src);
    for (int64_t i = 0; i < window_count(w, groups); i++)
        for (int64_t wy = 0; wy < w->size; wy++)
            for (int64_t wx = 0; wx < w->size; wx++)
                diff_src[cell(w, i, wy, wx)] += diff_dst[i] / cells;
}
