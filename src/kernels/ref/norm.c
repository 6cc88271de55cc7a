/* The kernels of normalization in plain C, in double precision: the reference
 * for the vector kernels. */
#include "kernels/ref/norm.h"

void pl_reference_average(int64_t n, float rate, const float *src, float *a)
{
    for (int64_t i = 0; i < n; i++)
        a[i] += rate * (src[i] - a[i]);
}

double pl_reference_products(int64_t n, const float *a, float a_less,
                             const float *b, float b_less)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum +=
            ((double)a[i] - (double)a_less) * ((double)b[i] - (double)b_less);
    return sum;
}

void pl_reference_blend(int64_t n, const float *a, float a_factor,
                        const float *b, float b_factor, float add, float *dst)
{
    for (int64_t i = 0; i < n; i++) {
        double more = b != NULL ? (double)b[i] * (double)b_factor : 0;
        dst[i] = (float)((double)a[i] * (double)a_factor + more + (double)add);
    }
}

void pl_reference_column_products(int64_t rows, int64_t row, const float *a,
                                  const float *a_less, const float *b,
                                  const float *b_less, double *sums)
{
    for (int64_t i = 0; i < rows * row; i++) {
        double less = a_less != NULL ? (double)a_less[i % row] : 0;
        double by = b != NULL ? (double)b[i] : 1;
        by -= b_less != NULL ? (double)b_less[i % row] : 0;
        sums[i % row] += ((double)a[i] - less) * by;
    }
}

void pl_reference_column_blend(int64_t rows, int64_t row, const float *a,
                               const float *a_factor, const float *b,
                               const float *b_factor, const float *add,
                               float *dst)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < row; i++) {
            int64_t at = r * row + i;
            double more = b != NULL ? (double)b[at] * (double)b_factor[i] : 0;
            dst[at] = (float)((double)a[at] * (double)a_factor[i] + more +
                              (double)add[i]);
        }
}
