/* Decides how the numbers of a channel are found in each layout:
 *
 *   plain, with pixels   a span of `pixels` in each row
 *   in lanes             a span of pixels x lanes in each full group; in the
 *                        last group, where rows are missing, one a pixel
 *   blocked              columns: for a block, `pixels` rows of `lanes` columns
 *                        in each example
 *   plain, one pixel     columns: rows x channels */
#include "graph/channels.h"

#include "tensor/shape.h"

#include <string.h>

#define LINE 16 /* lanes of the widest vector */

pl_channels pl_channels_of(const pl_op_run *run, pl_shape shape)
{
    int64_t first = pl_shape_batched(shape) ? run->state->rows : shape.dim[0];
    int64_t row = pl_shape_count(shape, run->state->rows) / first;
    return (pl_channels) {
        .kernels = run->state->kernels,
        .rows = first,
        .channels = shape.dim[1],
        .pixels = row / shape.dim[1],
        .lanes = run->state->kernels->lanes,
        .in_lanes = run->lanes,
        .blocked = run->blocked,
    };
}

int64_t pl_channels_numbers(const pl_channels *c)
{
    return c->rows * c->pixels;
}

static bool in_columns(const pl_channels *c)
{
    return c->blocked || (!c->in_lanes && c->pixels == 1);
}

int64_t pl_channels_grain(const pl_channels *c)
{
    if (!in_columns(c))
        return 1;
    return c->blocked ? c->lanes : c->channels;
}

int64_t pl_channels_room(int64_t channels)
{
    return (channels + LINE - 1) / LINE * LINE;
}

/* Contiguous numbers of one channel. */
typedef struct span {
    int64_t offset, count;
} span;

static int64_t span_count(const pl_channels *c)
{
    if (!c->in_lanes)
        return c->rows;
    int64_t left = c->rows % c->lanes;
    return c->rows / c->lanes + (left > 0 ? c->pixels : 0);
}

static span span_at(const pl_channels *c, int64_t channel, int64_t i)
{
    if (!c->in_lanes)
        return (span) { (i * c->channels + channel) * c->pixels, c->pixels };
    int64_t full = c->rows / c->lanes, plane = c->pixels * c->lanes;
    if (i < full)
        return (span) { (i * c->channels + channel) * plane, plane };
    int64_t pixel = i - full;
    return (span) { (full * c->channels + channel) * plane + pixel * c->lanes,
                    c->rows % c->lanes };
}

/* A matrix whose columns are channels. */
typedef struct matrix {
    int64_t offset, rows, row;
    int64_t channel; /* of the first column */
} matrix;

static matrix matrix_at(const pl_channels *c, int64_t block, int64_t i)
{
    if (!c->blocked)
        return (matrix) { 0, c->rows, c->channels, 0 };
    int64_t blocks = (c->channels + c->lanes - 1) / c->lanes;
    return (matrix) { (i * blocks + block) * c->pixels * c->lanes, c->pixels,
                      c->lanes, block * c->lanes };
}

/* Blocks of columns from channel `first` on, and the matrices of each. */
static int64_t block_of(const pl_channels *c, int64_t first)
{
    return c->blocked ? first / c->lanes : 0;
}

static int64_t matrix_count(const pl_channels *c)
{
    return c->blocked ? c->rows : 1;
}

static const float *at(const float *list, int64_t channel)
{
    return list != NULL ? list + channel : NULL;
}

static void column_products(const pl_channels *c, int64_t first, int64_t count,
                            const float *a, const float *a_less, const float *b,
                            const float *b_less, double *sums)
{
    double filled[LINE]; /* a block may have columns beyond the last channel */
    int64_t last = block_of(c, first + count - 1);
    memset(sums, 0, (size_t)count * sizeof *sums);
    for (int64_t block = block_of(c, first); block <= last; block++) {
        memset(filled, 0, sizeof filled);
        double *to = c->blocked ? filled : sums;
        int64_t channel = block * c->lanes;
        for (int64_t i = 0; i < matrix_count(c); i++) {
            matrix m = matrix_at(c, block, i);
            c->kernels->column_products(m.rows, m.row, a + m.offset,
                                        at(a_less, m.channel), at(b, m.offset),
                                        at(b_less, m.channel), to);
        }
        for (int64_t k = 0; c->blocked && k < c->lanes; k++)
            if (channel + k < first + count)
                sums[channel + k - first] = filled[k];
    }
}

void pl_channels_products(const pl_channels *c, int64_t first, int64_t count,
                          const float *a, const float *a_less, const float *b,
                          const float *b_less, double *sums)
{
    if (in_columns(c)) {
        column_products(c, first, count, a, a_less, b, b_less, sums);
        return;
    }
    for (int64_t k = 0; k < count; k++) {
        float less = a_less != NULL ? a_less[first + k] : 0;
        float by_less = b_less != NULL ? b_less[first + k] : 0;
        double sum = 0;
        for (int64_t i = 0; i < span_count(c); i++) {
            span s = span_at(c, first + k, i);
            sum += b == NULL ? c->kernels->sum(s.count, a + s.offset)
                             : c->kernels->products(s.count, a + s.offset, less,
                                                    b + s.offset, by_less);
        }
        sums[k] = sum;
    }
}

static void column_blend(const pl_channels *c, int64_t first, int64_t count,
                         const float *a, const float *a_factor, const float *b,
                         const float *b_factor, const float *add, float *dst)
{
    int64_t last = block_of(c, first + count - 1);
    for (int64_t block = block_of(c, first); block <= last; block++)
        for (int64_t i = 0; i < matrix_count(c); i++) {
            matrix m = matrix_at(c, block, i);
            c->kernels->column_blend(m.rows, m.row, a + m.offset,
                                     a_factor + m.channel, at(b, m.offset),
                                     at(b_factor, m.channel), add + m.channel,
                                     dst + m.offset);
        }
}

/* Clear the lanes of missing rows, which gradients of weights add up. */
static void clear_missing(const pl_channels *c, int64_t channel, float *dst)
{
    int64_t used = c->rows % c->lanes;
    if (!c->in_lanes || used == 0)
        return;
    int64_t group = c->rows / c->lanes;
    float *plane = dst + (group * c->channels + channel) * c->pixels * c->lanes;
    for (int64_t p = 0; p < c->pixels; p++)
        memset(plane + p * c->lanes + used, 0,
               (size_t)(c->lanes - used) * sizeof *plane);
}

void pl_channels_blend(const pl_channels *c, int64_t first, int64_t count,
                       const float *a, const float *a_factor, const float *b,
                       const float *b_factor, const float *add, float *dst)
{
    if (in_columns(c)) {
        column_blend(c, first, count, a, a_factor, b, b_factor, add, dst);
        return;
    }
    for (int64_t k = first; k < first + count; k++) {
        for (int64_t i = 0; i < span_count(c); i++) {
            span s = span_at(c, k, i);
            c->kernels->blend(s.count, a + s.offset, a_factor[k],
                              at(b, s.offset), b != NULL ? b_factor[k] : 0,
                              add[k], dst + s.offset);
        }
        clear_missing(c, k, dst);
    }
}
