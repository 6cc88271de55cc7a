/* image.h - reference convolution and pooling in plain C; the reference table
 * has one lane, so a group is an example. */
#ifndef PL_KERNELS_REF_IMAGE_H
#define PL_KERNELS_REF_IMAGE_H

#include "kernels/backend.h"

void pl_reference_conv(const pl_conv *c, int64_t groups, const float *src,
                       const float *weights, const float *bias, float *scratch,
                       float *dst);
void pl_reference_conv_src(const pl_conv *c, int64_t groups,
                           const float *diff_dst, const float *weights,
                           float *scratch, float *diff_src);
void pl_reference_conv_weights(const pl_conv *c, int64_t groups,
                               const float *diff_dst, const float *src,
                               float *scratch, float *diff_weights);
void pl_reference_conv_bias(const pl_conv *c, int64_t groups,
                            const float *diff_dst, float *diff_bias);
void pl_reference_max_pool(const pl_window *w, int64_t groups, const float *src,
                           float *dst);
void pl_reference_max_pool_grad(const pl_window *w, int64_t groups,
                                const float *src, const float *dst,
                                const float *diff_dst, float *diff_src);
void pl_reference_avg_pool(const pl_window *w, int64_t groups, const float *src,
                           float *dst);
void pl_reference_avg_pool_grad(const pl_window *w, int64_t groups,
                                const float *diff_dst, float *diff_src);

#endif
