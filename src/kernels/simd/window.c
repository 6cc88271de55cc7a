/* Pooling in the batch-in-lanes layout: square windows, no padding. */
#include "kernels/simd/activation.h"
#include "kernels/simd/kernels.h"

/* The offset of the vector at (plane, y, x) of planes of this size. */
INLINE int64_t at(int64_t plane, int64_t y, int64_t x, int64_t height,
                  int64_t width)
{
    return ((plane * height + y) * width + x) * LANES;
}

/* Run BODY for each window: `from` its corner in src, `to` its offset in
 * dst. */
#define EACH_WINDOW(w, groups, BODY)                                           \
    for (int64_t p = 0; p < (groups) * (w)->channels; p++)                     \
        for (int64_t y = 0; y < (w)->out_height; y++)                          \
            for (int64_t x = 0; x < (w)->out_width; x++) {                     \
                int64_t from = at(p, y * (w)->stride, x * (w)->stride,         \
                                  (w)->height, (w)->width);                    \
                int64_t to = at(p, y, x, (w)->out_height, (w)->out_width);     \
                BODY                                                           \
            }

/* Run BODY for each vector of a window: `i` its offset in src. */
#define EACH_CELL(w, from, BODY)                                               \
    for (int64_t wy = 0; wy < (w)->size; wy++)                                 \
        for (int64_t wx = 0; wx < (w)->size; wx++) {                           \
            int64_t i = (from) + (wy * (w)->width + wx) * LANES;               \
            BODY                                                               \
        }

void SIMD(max_pool)(const pl_window *w, int64_t groups, const float *src,
                    float *dst)
{
    EACH_WINDOW(w, groups, {
        vf top = v_load(src + from);
        EACH_CELL(w, from, {
            vf value = v_load(src + i);
            /* A NaN stays, wherever it is in the window. */
            top = v_select((value > top) | (value != value), value, top);
        })
        v_store(dst + to, top);
    })
}

void SIMD(max_pool_grad)(const pl_window *w, int64_t groups, const float *src,
                         const float *dst, const float *diff_dst,
                         float *diff_src)
{
    int64_t count = groups * w->channels * w->height * w->width * LANES;
    memset(diff_src, 0, (size_t)count * sizeof *diff_src);
    EACH_WINDOW(w, groups, {
        vf top = v_load(dst + to);
        vi left = (vi)v_load(diff_dst + to); /* bits not yet assigned */
        EACH_CELL(w, from, {
            vi here = v_load(src + i) == top;
            v_store(diff_src + i, v_load(diff_src + i) + (vf)(here & left));
            left &= ~here;
        })
    })
}

void SIMD(avg_pool)(const pl_window *w, int64_t groups, const float *src,
                    float *dst)
{
    vf share = v_set(1.0f / (float)(w->size * w->size));
    EACH_WINDOW(w, groups, {
        vf sum = v_set(0);
        EACH_CELL(w, from, { sum += v_load(src + i); })
        v_store(dst + to, sum * share);
    })
}

void SIMD(avg_pool_grad)(const pl_window *w, int64_t groups,
                         const float *diff_dst, float *diff_src)
{
    int64_t count = groups * w->channels * w->height * w->width * LANES;
    memset(diff_src, 0, (size_t)count * sizeof *diff_src);
    vf share = v_set(1.0f / (float)(w->size * w->size));
    EACH_WINDOW(w, groups, {
        vf each = share * v_load(diff_dst + to);
        EACH_CELL(w, from,
                  { v_store(diff_src + i, v_load(diff_src + i) + each); })
    })
}

/* One row of windows of one channel: `rows` has size rows of `width`. */
INLINE void unpool_row(pl_activation kind, int64_t size, int64_t count,
                       int64_t width, const float *dst, const int32_t *index,
                       const float *diff_dst, float *rows)
{
    for (int64_t x = 0; x < count; x++) {
        vi which;
        memcpy(&which, index + x * LANES, sizeof which);
        /* Added to zero, as for overlapping windows. */
        vf diff = v_set(0) + v_load(diff_dst + x * LANES);
        vi slope = (vi)v_activation_grad(kind, v_load(dst + x * LANES), diff);
        float *corner = rows + x * size * LANES;
        UNROLL
        for (int32_t cell = 0; cell < size * size; cell++) {
            int64_t at = cell / size * width + cell % size;
            v_store(corner + at * LANES, (vf)((which == vi_set(cell)) & slope));
        }
    }
    for (int64_t y = 0; y < size; y++)
        memset(rows + (y * width + count * size) * LANES, 0,
               (size_t)(width - count * size) * sizeof(vf));
}

void SIMD(unpool)(const pl_conv_block *b, int64_t groups, const float *dst,
                  const int32_t *index, const float *diff_dst, float *diff_src)
{
    const pl_window *w = &b->window;
    int64_t row = w->out_width * LANES, covered = w->out_height * w->size;
    for (int64_t p = 0; p < groups * w->channels; p++) {
        for (int64_t y = 0; y < w->out_height; y++) {
            float *rows = diff_src + at(p, y * w->size, 0, w->height, w->width);
            if (w->size == 2 && b->activation == PL_ACTIVATION_RELU)
                unpool_row(PL_ACTIVATION_RELU, 2, w->out_width, w->width, dst,
                           index, diff_dst, rows);
            else
                unpool_row(b->activation, w->size, w->out_width, w->width, dst,
                           index, diff_dst, rows);
            dst += row;
            index += row;
            diff_dst += row;
        }
        memset(diff_src + at(p, covered, 0, w->height, w->width), 0,
               (size_t)((w->height - covered) * w->width) * sizeof(vf));
    }
}
