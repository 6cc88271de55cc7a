/* The reference for every kernel: one loop, sums in double. */
#include "base/rng.h"
#include "kernels/ref/activation.h"
#include "kernels/ref/image.h"
#include "kernels/ref/norm.h"
#include "kernels/tables.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static double at(const pl_view *view, int64_t row, int64_t column)
{
    double value = view->dtype == PL_UINT8
                       ? (double)pl_view_row_u8(view, row)[column]
                       : (double)pl_view_row_f32(view, row)[column];
    return value * (double)view->scale;
}

static void matmul_nt(int64_t n, int64_t m, int64_t k, const pl_view *src,
                      const float *weights, const float *bias, float *dst)
{
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < m; c++) {
            double sum = bias != NULL ? (double)bias[c] : 0;
            for (int64_t i = 0; i < k; i++)
                sum += at(src, r, i) * (double)weights[c * k + i];
            dst[r * m + c] = (float)sum;
        }
}

static void matmul_nn(int64_t n, int64_t m, int64_t k, const float *a,
                      const pl_view *b, float *dst)
{
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < m; c++) {
            double sum = 0;
            for (int64_t i = 0; i < k; i++)
                sum += (double)a[r * k + i] * at(b, i, c);
            dst[r * m + c] = (float)sum;
        }
}

static void matmul_tn(int64_t n, int64_t m, int64_t k, const float *a,
                      const pl_view *b, float *dst)
{
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < m; c++) {
            double sum = 0;
            for (int64_t i = 0; i < k; i++)
                sum += (double)a[i * n + r] * at(b, i, c);
            dst[r * m + c] = (float)sum;
        }
}

static void load(int64_t rows, int64_t row, const pl_view *src, float *dst)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < row; i++)
            dst[r * row + i] = (float)at(src, r, i);
}

/* With one lane both layouts are the same. */
static void from_lanes(int64_t rows, int64_t row, const float *src, float *dst)
{
    memcpy(dst, src, (size_t)(rows * row) * sizeof *dst);
}

static void softmax_xent(int64_t rows, int64_t classes, const float *logits,
                         const pl_view *labels, float *probs, float *loss)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *x = logits + r * classes;
        double top = (double)x[0], sum = 0;
        for (int64_t c = 1; c < classes; c++)
            top = fmax(top, (double)x[c]);
        for (int64_t c = 0; c < classes; c++)
            sum += exp((double)x[c] - top);
        for (int64_t c = 0; c < classes; c++)
            probs[r * classes + c] = (float)(exp((double)x[c] - top) / sum);
        int64_t label = pl_view_label(labels, r);
        loss[r] = (float)(log(sum) + top - (double)x[label]);
    }
}

static void softmax_xent_grad(int64_t rows, int64_t classes, const float *probs,
                              const pl_view *labels, const float *diff_loss,
                              float *diff)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < classes; c++) {
            float one = c == pl_view_label(labels, r) ? 1.0f : 0.0f;
            diff[r * classes + c] =
                (probs[r * classes + c] - one) * diff_loss[r];
        }
}

static void accuracy(int64_t rows, int64_t classes, const float *logits,
                     const pl_view *labels, float *hit)
{
    for (int64_t r = 0; r < rows; r++) {
        int64_t best = 0;
        for (int64_t c = 1; c < classes; c++)
            if (logits[r * classes + c] > logits[r * classes + best])
                best = c;
        hit[r] = best == pl_view_label(labels, r) ? 1.0f : 0.0f;
    }
}

static void relu(int64_t n, const float *src, float *dst)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = src[i] < 0 ? 0 : src[i];
}

static void relu_grad(int64_t n, const float *dst, const float *diff_dst,
                      float *diff_src)
{
    for (int64_t i = 0; i < n; i++)
        diff_src[i] = dst[i] > 0 ? diff_dst[i] : 0;
}

static void tanh_forward(int64_t n, const float *src, float *dst)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = (float)tanh((double)src[i]);
}

static void tanh_grad(int64_t n, const float *dst, const float *diff_dst,
                      float *diff_src)
{
    for (int64_t i = 0; i < n; i++)
        diff_src[i] = diff_dst[i] * (1 - dst[i] * dst[i]);
}

static void sigmoid(int64_t n, const float *src, float *dst)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = (float)(1 / (1 + exp(-(double)src[i])));
}

static void sigmoid_grad(int64_t n, const float *dst, const float *diff_dst,
                         float *diff_src)
{
    for (int64_t i = 0; i < n; i++)
        diff_src[i] = diff_dst[i] * (dst[i] * (1 - dst[i]));
}

static void add(int64_t n, const float *a, const float *b, float *dst)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = a[i] + b[i];
}

static void scale(int64_t n, float factor, const float *src, float *dst)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = factor * src[i];
}

static void fill(int64_t n, float value, float *dst)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = value;
}

static void dropout(int64_t n, const pl_mask *mask, const float *src,
                    float *dst)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t at = (uint64_t)(mask->first + i);
        uint64_t word = at / 32 * 16 + at % 16;
        uint64_t number = pl_rng_u64(mask->key, word / 2);
        unsigned shift = (unsigned)(word % 2 * 32 + at % 32 / 16 * 16);
        bool kept = (number >> shift & 0xffff) >= mask->least;
        dst[i] = kept ? src[i] * mask->scale : 0;
    }
}

static void bias_add(int64_t rows, int64_t row, const float *src,
                     const float *bias, float *dst)
{
    for (int64_t i = 0; i < rows * row; i++)
        dst[i] = src[i] + bias[i % row];
}

static void sum_rows(int64_t rows, int64_t row, const float *src, float *dst)
{
    for (int64_t i = 0; i < row; i++) {
        double sum = 0;
        for (int64_t r = 0; r < rows; r++)
            sum += (double)src[r * row + i];
        dst[i] = (float)sum;
    }
}

static double sum_all(int64_t n, const float *src)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)src[i];
    return sum;
}

static double sum_squares(int64_t n, const float *src)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)src[i] * (double)src[i];
    return sum;
}

static void sum_parts(int64_t n, int count, const float *const *parts,
                      float *dst)
{
    for (int64_t i = 0; i < n; i++) {
        float sum = parts[0][i];
        for (int part = 1; part < count; part++)
            sum += parts[part][i];
        dst[i] = sum;
    }
}

#define UPDATE(kind, name) [PL_OPTIM_##kind] = pl_update_##name##_reference,

const pl_kernels pl_kernels_reference = {
    .name = "reference",
    .lanes = 1,
    .matmul_nt = matmul_nt,
    .matmul_nn = matmul_nn,
    .matmul_tn = matmul_tn,
    .load = load,
    .softmax_xent = softmax_xent,
    .softmax_xent_grad = softmax_xent_grad,
    .softmax = pl_reference_softmax,
    .softmax_grad = pl_reference_softmax_grad,
    .accuracy = accuracy,
    .relu = relu,
    .relu_grad = relu_grad,
    .tanh = tanh_forward,
    .tanh_grad = tanh_grad,
    .sigmoid = sigmoid,
    .sigmoid_grad = sigmoid_grad,
    .leaky_relu = pl_reference_leaky_relu,
    .leaky_relu_grad = pl_reference_leaky_relu_grad,
    .gelu = pl_reference_gelu,
    .gelu_grad = pl_reference_gelu_grad,
    .add = add,
    .multiply = pl_reference_multiply,
    .scale = scale,
    .fill = fill,
    .dropout = dropout,
    .bias = bias_add,
    .sum_rows = sum_rows,
    .sum = sum_all,
    .sum_squares = sum_squares,
    .sum_parts = sum_parts,
    .conv = pl_reference_conv,
    .conv_src = pl_reference_conv_src,
    .conv_weights = pl_reference_conv_weights,
    .conv_bias = pl_reference_conv_bias,
    .max_pool = pl_reference_max_pool,
    .max_pool_grad = pl_reference_max_pool_grad,
    .avg_pool = pl_reference_avg_pool,
    .avg_pool_grad = pl_reference_avg_pool_grad,
    .average = pl_reference_average,
    .products = pl_reference_products,
    .blend = pl_reference_blend,
    .column_products = pl_reference_column_products,
    .column_blend = pl_reference_column_blend,
    .to_lanes = load,
    .from_lanes = from_lanes,
    .update = { PL_OPTIM_LIST(UPDATE) },
};
