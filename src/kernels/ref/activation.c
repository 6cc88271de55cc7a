/* Activations with a parameter or without a simple formula, and softmax, in
 * plain C. */
#include "kernels/ref/activation.h"

#include <math.h>

void pl_reference_leaky_relu(int64_t n, float slope, const float *src,
                             float *dst)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = src[i] < 0 ? slope * src[i] : src[i];
}

void pl_reference_leaky_relu_grad(int64_t n, float slope, const float *dst,
                                  const float *diff_dst, float *diff_src)
{
    for (int64_t i = 0; i < n; i++)
        diff_src[i] = dst[i] > 0 ? diff_dst[i] : slope * diff_dst[i];
}

/* The probability of a normal variable below x. */
static double normal_below(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2);
}

void pl_reference_gelu(int64_t n, const float *src, float *dst)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = (float)((double)src[i] * normal_below((double)src[i]));
}

void pl_reference_gelu_grad(int64_t n, const float *src, const float *diff_dst,
                            float *diff_src)
{
    for (int64_t i = 0; i < n; i++) {
        double x = (double)src[i];
        double bell = exp(-x * x / 2) / sqrt(2 * M_PI);
        diff_src[i] =
            (float)((double)diff_dst[i] * (normal_below(x) + x * bell));
    }
}

void pl_reference_multiply(int64_t n, const float *a, const float *b,
                           float *dst)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = a[i] * b[i];
}

void pl_reference_softmax(int64_t rows, int64_t classes, const float *src,
                          float *dst)
{
    for (int64_t r = 0; r < rows; r++, src += classes, dst += classes) {
        double top = (double)src[0], sum = 0;
        for (int64_t c = 1; c < classes; c++)
            top = fmax(top, (double)src[c]);
        for (int64_t c = 0; c < classes; c++)
            sum += exp((double)src[c] - top);
        for (int64_t c = 0; c < classes; c++)
            dst[c] = (float)(exp((double)src[c] - top) / sum);
    }
}

void pl_reference_softmax_grad(int64_t rows, int64_t classes, const float *dst,
                               const float *diff_dst, float *diff_src)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < classes; c++) {
            double mean = 0;
            for (int64_t i = 0; i < classes; i++)
                mean += (double)dst[r * classes + i] *
                        (double)diff_dst[r * classes + i];
            int64_t at = r * classes + c;
            diff_src[at] =
                (float)((double)dst[at] * ((double)diff_dst[at] - mean));
        }
}
