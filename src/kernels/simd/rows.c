/* Kernels that reduce a row of logits: softmax cross-entropy, its gradient,
 * accuracy. Rows are handled a vector's worth at a time, so that one vector
 * logarithm serves all of them. */
#include "kernels/simd/kernels.h"
#include "kernels/simd/math.h"

static int64_t label_of(const pl_view *labels, int64_t row)
{
    if (labels->dtype == PL_UINT8)
        return *pl_view_row_u8(labels, row);
    return pl_view_label(labels, row);
}

static float highest(int64_t n, const float *x)
{
    vf top = v_set(x[0]);
    EACH_VECTOR(n, {
        vf part = LOAD(x);
        top = v_max(top, left == LANES ? part : v_first(part, left, top));
    });
    return v_highest(top);
}

/* probs = exp(x - top), unnormalized; returns their sum. */
static float exponentials(int64_t n, const float *x, float top, float *probs)
{
    vf total = v_set(0);
    EACH_VECTOR(n, {
        vf e = v_exp(LOAD(x) - v_set(top));
        STORE(probs, e);
        total += left == LANES ? e : v_first(e, left, v_set(0));
    });
    return v_sum(total);
}

void SIMD(softmax_xent)(int64_t rows, int64_t classes, const float *logits,
                        const pl_view *labels, float *probs, float *loss)
{
    for (int64_t first = 0; first < rows; first += LANES) {
        int64_t count = rows - first < LANES ? rows - first : LANES;
        float sums[LANES] = { 0 }, rest[LANES] = { 0 };
        for (int64_t r = 0; r < count; r++) {
            const float *x = logits + (first + r) * classes;
            float *p = probs + (first + r) * classes;
            float top = highest(classes, x);
            float sum = exponentials(classes, x, top, p);
            SIMD(scale)(classes, 1.0f / sum, p, p);
            sums[r] = sum;
            rest[r] = top - x[label_of(labels, first + r)];
        }
        /* One logarithm for a vector of rows. */
        vf row_loss = v_log(v_load(sums)) + v_load(rest);
        if (count == LANES)
            v_store(loss + first, row_loss);
        else
            v_store_part(loss + first, row_loss, count);
    }
}

void SIMD(softmax_xent_grad)(int64_t rows, int64_t classes, const float *probs,
                             const pl_view *labels, const float *diff_loss,
                             float *diff)
{
    for (int64_t r = 0; r < rows; r++) {
        float *d = diff + r * classes;
        SIMD(scale)(classes, diff_loss[r], probs + r * classes, d);
        d[label_of(labels, r)] -= diff_loss[r];
    }
}

void SIMD(softmax)(int64_t rows, int64_t classes, const float *src, float *dst)
{
    for (int64_t r = 0; r < rows; r++, src += classes, dst += classes) {
        float sum = exponentials(classes, src, highest(classes, src), dst);
        SIMD(scale)(classes, 1.0f / sum, dst, dst);
    }
}

void SIMD(softmax_grad)(int64_t rows, int64_t classes, const float *dst,
                        const float *diff_dst, float *diff_src)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *y = dst + r * classes, *diff = diff_dst + r * classes;
        float *out = diff_src + r * classes;
        float mean = (float)SIMD(products)(classes, y, 0, diff, 0);
        EACH_VECTOR(classes,
                    { STORE(out, LOAD(y) * (LOAD(diff) - v_set(mean))); });
    }
}

void SIMD(accuracy)(int64_t rows, int64_t classes, const float *logits,
                    const pl_view *labels, float *hit)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *x = logits + r * classes;
        int64_t best = 0;
        for (int64_t c = 1; c < classes; c++)
            if (x[c] > x[best])
                best = c;
        hit[r] = best == label_of(labels, r) ? 1.0f : 0.0f;
    }
}
