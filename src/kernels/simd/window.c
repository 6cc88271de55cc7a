/* Pooling in the batch-in-lanes layout: square windows, no padding. */
#include "kernels/simd/kernels.h"

/* The vector at (plane, y, x) of planes of this size. */
INLINE int64_t at(int64_t plane, int64_t y, int64_t x, int64_t height,
                  int64_t width)
{
    return ((plane * height + y) * width + x) * LANES;
}

/* Run BODY for each window: `from` its corner in src, `to` its place in dst. */
#define EACH_WINDOW(w, groups, BODY)                                           \
    for (int64_t p = 0; p < (groups) * (w)->channels; p++)                     \
        for (int64_t y = 0; y < (w)->out_height; y++)                          \
            for (int64_t x = 0; x < (w)->out_width; x++) {                     \
                int64_t from = at(p, y * (w)->stride, x * (w)->stride,         \
                                  (w)->height, (w)->width);                    \
                int64_t to = at(p, y, x, (w)->out_height, (w)->out_width);     \
                BODY                                                           \
            }

/* Run BODY for each vector of a window: `i` its place in src. */
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
        vi left = (vi)v_load(diff_dst + to); /* bits not yet given away */
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
