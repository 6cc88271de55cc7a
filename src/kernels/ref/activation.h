/* activation.h - activations and softmax in plain C.
 *
 * Threads: any. */
#ifndef PL_KERNELS_REF_ACTIVATION_H
#define PL_KERNELS_REF_ACTIVATION_H

#include <stdint.h>

void pl_reference_leaky_relu(int64_t n, float slope, const float *src,
                             float *dst);
void pl_reference_leaky_relu_grad(int64_t n, float slope, const float *dst,
                                  const float *diff_dst, float *diff_src);
void pl_reference_gelu(int64_t n, const float *src, float *dst);
void pl_reference_gelu_grad(int64_t n, const float *src, const float *diff_dst,
                            float *diff_src);
void pl_reference_multiply(int64_t n, const float *a, const float *b,
                           float *dst);
void pl_reference_softmax(int64_t rows, int64_t classes, const float *src,
                          float *dst);
void pl_reference_softmax_grad(int64_t rows, int64_t classes, const float *dst,
                               const float *diff_dst, float *diff_src);

#endif
