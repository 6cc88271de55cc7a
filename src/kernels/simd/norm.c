/* Kernels of normalization: sums of products of deviations, and weighted sums
 * of two sources, over whole ranges or column by column. Sums add blocks in
 * single and blocks' totals in double precision. */
#include "kernels/simd/kernels.h"

/* Elements, or rows of columns, that are added in single precision. */
#define SUM_BLOCK 1024

void SIMD(average)(int64_t n, float rate, const float *src, float *a)
{
    EACH_VECTOR(n, {
        vf old = LOAD(a);
        STORE(a, old + v_set(rate) * (LOAD(src) - old));
    });
}

double SIMD(products)(int64_t n, const float *a, float a_less, const float *b,
                      float b_less)
{
    double total = 0;
    vf a_mean = v_set(a_less), b_mean = v_set(b_less);
    for (int64_t first = 0; first < n; first += SUM_BLOCK) {
        int64_t count = n - first < SUM_BLOCK ? n - first : SUM_BLOCK;
        vf part = v_set(0);
        EACH_VECTOR(count, {
            vf x = LOAD(a + first) - a_mean;
            vf y = LOAD(b + first) - b_mean;
            /* Lanes past the end would contain -a_less. */
            if (left < LANES)
                x = v_first(x, left, v_set(0));
            part = v_fma(x, y, part);
        });
        total += (double)v_sum(part);
    }
    return total;
}

void SIMD(blend)(int64_t n, const float *a, float a_factor, const float *b,
                 float b_factor, float add, float *dst)
{
    vf fa = v_set(a_factor), fb = v_set(b_factor), more = v_set(add);
    if (b == NULL) {
        EACH_VECTOR(n, { STORE(dst, v_fma(LOAD(a), fa, more)); });
        return;
    }
    EACH_VECTOR(n,
                { STORE(dst, v_fma(LOAD(a), fa, v_fma(LOAD(b), fb, more))); });
}

/* One vector of columns, all rows of a block. */
INLINE vf column_sum(int64_t rows, int64_t row, const float *a, vf a_mean,
                     const float *b, vf b_mean, int64_t left)
{
    const int64_t i = 0;
    vf part = v_set(0);
    for (int64_t r = 0; r < rows; r++, a += row) {
        vf x = LOAD(a) - a_mean;
        part =
            b == NULL ? part + x : v_fma(x, LOAD(b + r * row) - b_mean, part);
    }
    return part;
}

void SIMD(column_products)(int64_t rows, int64_t row, const float *a,
                           const float *a_less, const float *b,
                           const float *b_less, double *sums)
{
    for (int64_t first = 0; first < rows; first += SUM_BLOCK) {
        int64_t count = rows - first < SUM_BLOCK ? rows - first : SUM_BLOCK;
        const float *from = a + first * row;
        const float *by = b != NULL ? b + first * row : NULL;
        EACH_VECTOR(row, {
            vf a_mean = a_less != NULL ? LOAD(a_less) : v_set(0);
            vf b_mean = b_less != NULL ? LOAD(b_less) : v_set(0);
            vf part = column_sum(count, row, from + i, a_mean,
                                 by != NULL ? by + i : NULL, b_mean, left);
            for (int64_t l = 0; l < left; l++)
                sums[i + l] += (double)part[l];
        });
    }
}

void SIMD(column_blend)(int64_t rows, int64_t row, const float *a,
                        const float *a_factor, const float *b,
                        const float *b_factor, const float *add, float *dst)
{
    for (int64_t r = 0; r < rows; r++, a += row, dst += row) {
        EACH_VECTOR(row, {
            vf more = LOAD(add);
            if (b != NULL)
                more = v_fma(LOAD(b + r * row), LOAD(b_factor), more);
            STORE(dst, v_fma(LOAD(a), LOAD(a_factor), more));
        });
    }
}
