/* norm.h - the kernels of normalization in plain C.
 *
 * Threads: any. */
#ifndef PL_KERNELS_REF_NORM_H
#define PL_KERNELS_REF_NORM_H

#include <stddef.h>
#include <stdint.h>

void pl_reference_average(int64_t n, float rate, const float *src, float *a);
double pl_reference_products(int64_t n, const float *a, float a_less,
                             const float *b, float b_less);
void pl_reference_blend(int64_t n, const float *a, float a_factor,
                        const float *b, float b_factor, float add, float *dst);
void pl_reference_column_products(int64_t rows, int64_t row, const float *a,
                                  const float *a_less, const float *b,
                                  const float *b_less, double *sums);
void pl_reference_column_blend(int64_t rows, int64_t row, const float *a,
                               const float *a_factor, const float *b,
                               const float *b_factor, const float *add,
                               float *dst);

#endif
