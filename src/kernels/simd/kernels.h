/* kernels.h - the vector kernels of one instruction set, for its table. */
#ifndef PL_KERNELS_SIMD_KERNELS_H
#define PL_KERNELS_SIMD_KERNELS_H

#include "kernels/simd/simd.h"

void SIMD(matmul_nt)(int64_t n, int64_t m, int64_t k, const pl_view *src,
                     const float *weights, const float *bias, float *dst);
void SIMD(matmul_nn)(int64_t n, int64_t m, int64_t k, const float *a,
                     const pl_view *b, float *dst);
void SIMD(matmul_tn)(int64_t n, int64_t m, int64_t k, const float *a,
                     const pl_view *b, float *dst);
void SIMD(load)(int64_t rows, int64_t row, const pl_view *src, float *dst);
void SIMD(softmax_xent)(int64_t rows, int64_t classes, const float *logits,
                        const pl_view *labels, float *probs, float *loss);
void SIMD(softmax_xent_grad)(int64_t rows, int64_t classes, const float *probs,
                             const pl_view *labels, const float *diff_loss,
                             float *diff);
void SIMD(softmax)(int64_t rows, int64_t classes, const float *src, float *dst);
void SIMD(softmax_grad)(int64_t rows, int64_t classes, const float *dst,
                        const float *diff_dst, float *diff_src);
void SIMD(accuracy)(int64_t rows, int64_t classes, const float *logits,
                    const pl_view *labels, float *hit);
void SIMD(relu)(int64_t n, const float *src, float *dst);
void SIMD(relu_grad)(int64_t n, const float *dst, const float *diff_dst,
                     float *diff_src);
void SIMD(tanh)(int64_t n, const float *src, float *dst);
void SIMD(tanh_grad)(int64_t n, const float *dst, const float *diff_dst,
                     float *diff_src);
void SIMD(sigmoid)(int64_t n, const float *src, float *dst);
void SIMD(sigmoid_grad)(int64_t n, const float *dst, const float *diff_dst,
                        float *diff_src);
void SIMD(leaky_relu)(int64_t n, float slope, const float *src, float *dst);
void SIMD(leaky_relu_grad)(int64_t n, float slope, const float *dst,
                           const float *diff_dst, float *diff_src);
void SIMD(gelu)(int64_t n, const float *src, float *dst);
void SIMD(gelu_grad)(int64_t n, const float *src, const float *diff_dst,
                     float *diff_src);
void SIMD(add)(int64_t n, const float *a, const float *b, float *dst);
void SIMD(multiply)(int64_t n, const float *a, const float *b, float *dst);
void SIMD(scale)(int64_t n, float factor, const float *src, float *dst);
void SIMD(fill)(int64_t n, float value, float *dst);
void SIMD(dropout)(int64_t n, const pl_mask *mask, const float *src,
                   float *dst);
void SIMD(bias)(int64_t rows, int64_t row, const float *src, const float *bias,
                float *dst);
void SIMD(sum_rows)(int64_t rows, int64_t row, const float *src, float *dst);
double SIMD(sum)(int64_t n, const float *src);
double SIMD(sum_squares)(int64_t n, const float *src);
void SIMD(sum_parts)(int64_t n, int count, const float *const *parts,
                     float *dst);
void SIMD(average)(int64_t n, float rate, const float *src, float *a);
double SIMD(products)(int64_t n, const float *a, float a_less, const float *b,
                      float b_less);
void SIMD(blend)(int64_t n, const float *a, float a_factor, const float *b,
                 float b_factor, float add, float *dst);
void SIMD(column_products)(int64_t rows, int64_t row, const float *a,
                           const float *a_less, const float *b,
                           const float *b_less, double *sums);
void SIMD(column_blend)(int64_t rows, int64_t row, const float *a,
                        const float *a_factor, const float *b,
                        const float *b_factor, const float *add, float *dst);
void SIMD(to_lanes)(int64_t rows, int64_t row, const pl_view *src, float *dst);
void SIMD(from_lanes)(int64_t rows, int64_t row, const float *src, float *dst);
void SIMD(conv)(const pl_conv *c, int64_t groups, const float *src,
                const float *weights, const float *bias, float *scratch,
                float *dst);
void SIMD(conv_src)(const pl_conv *c, int64_t groups, const float *diff_dst,
                    const float *weights, float *scratch, float *diff_src);
void SIMD(conv_weights)(const pl_conv *c, int64_t groups, const float *diff_dst,
                        const float *src, float *scratch, float *diff_weights);
void SIMD(conv_bias)(const pl_conv *c, int64_t groups, const float *diff_dst,
                     float *diff_bias);
void SIMD(conv_block)(const pl_conv_block *b, int64_t groups, const float *src,
                      const float *weights, const float *bias, float *scratch,
                      float *dst, int32_t *index);
void SIMD(unpool)(const pl_conv_block *b, int64_t groups, const float *dst,
                  const int32_t *index, const float *diff_dst, float *diff_src);
void SIMD(max_pool)(const pl_window *w, int64_t groups, const float *src,
                    float *dst);
void SIMD(max_pool_grad)(const pl_window *w, int64_t groups, const float *src,
                         const float *dst, const float *diff_dst,
                         float *diff_src);
void SIMD(avg_pool)(const pl_window *w, int64_t groups, const float *src,
                    float *dst);
void SIMD(avg_pool_grad)(const pl_window *w, int64_t groups,
                         const float *diff_dst, float *diff_src);

#define DECLARE_UPDATE(kind, name) pl_update_kernel SIMD(update_##name);
PL_OPTIM_LIST(DECLARE_UPDATE)
#undef DECLARE_UPDATE

#endif
