/* backend.h - the table of compute kernels, one table per instruction set.
 *
 * The same vector source is compiled once per instruction set; the best set
 * that the processor supports is chosen at run time.  `reference` is plain C,
 * for comparison.  Kernels run on the calling thread, allocate nothing and
 * cannot fail: shapes were checked when the graph was built.
 *
 * One table gives the same bits in every run.  Element-wise and optimizer
 * kernels give the same bits wherever a range is split.
 *
 * Threads: any; the tables are constant. */
#ifndef PL_KERNELS_BACKEND_H
#define PL_KERNELS_BACKEND_H

#include "kernels/optim/optim.h"
#include "tensor/view.h"

#include <stdint.h>

/* The sizes of a convolution over images [channels, height, width]. */
typedef struct pl_conv {
    int64_t channels, height, width;
    int64_t outs, out_height, out_width;
    int64_t kernel_h, kernel_w;
    int64_t stride, pad; /* in both directions */
} pl_conv;

/* Maximum outs in one tile, and the approximate number of vectors of the weight
 * gradient that are folded over lanes at once. */
#define PL_CONV_OUTS   6
#define PL_CONV_FOLDED 256
/* Floats of scratch memory: conv and conv_weights store sums of weights before
 * folding them; conv_src stores the gradient spread by the stride and the
 * turned weights. */
int64_t pl_conv_scratch(const pl_conv *conv, int lanes);
int64_t pl_conv_src_scratch(const pl_conv *conv, int lanes);

/* The sizes of a pooling with square windows. */
typedef struct pl_window {
    int64_t channels, height, width;
    int64_t out_height, out_width;
    int64_t size, stride;
} pl_window;

/* Which elements a dropout keeps: element e of the mask is kept if its 16
 * random bits are at least `least`.  They come from the numbers N[0], N[1], ...
 * of `key` (base/rng.h): 32 elements share eight of them, and element i of the
 * 32 has the low (i < 16) or high half of word i % 16, two words per number.
 * Thus a vector of words gives two vectors of elements for any vector width. */
typedef struct pl_mask {
    uint64_t key;
    int64_t first;  /* mask element of src[0] */
    uint32_t least; /* of 65536: the rate */
    float scale;    /* of kept elements */
} pl_mask;

typedef enum pl_activation {
    PL_ACTIVATION_NONE,
    PL_ACTIVATION_RELU,
    PL_ACTIVATION_TANH,
    PL_ACTIVATION_SIGMOID,
} pl_activation;

typedef enum pl_pooling {
    PL_POOLING_NONE,
    PL_POOLING_MAX,
    PL_POOLING_AVG,
} pl_pooling;

/* A convolution, an activation and a pooling in one pass. */
typedef struct pl_conv_block {
    pl_conv conv;
    pl_activation activation;
    pl_pooling pooling;
    pl_window window; /* windows do not overlap: size = stride; size 1: no
                         pooling */
} pl_conv_block;

/* Floats of scratch memory that conv_block needs. */
int64_t pl_conv_block_scratch(const pl_conv_block *block, int lanes);

typedef struct pl_kernels {
    const char *name; /* "avx512" */
    int lanes;        /* floats in a vector */

    /* dst[n, m] = src[n, k] weights[m, k]^T + bias[m]; bias may be NULL. */
    void (*matmul_nt)(int64_t n, int64_t m, int64_t k, const pl_view *src,
                      const float *weights, const float *bias, float *dst);
    /* dst[n, m] = a[n, k] b[k, m] */
    void (*matmul_nn)(int64_t n, int64_t m, int64_t k, const float *a,
                      const pl_view *b, float *dst);
    /* dst[n, m] = a[k, n]^T b[k, m] */
    void (*matmul_tn)(int64_t n, int64_t m, int64_t k, const float *a,
                      const pl_view *b, float *dst);

    /* dst[rows, row] = the view as plain float32. */
    void (*load)(int64_t rows, int64_t row, const pl_view *src, float *dst);

    /* loss[rows] and probs[rows, classes] of integer labels, which must be in
     * range. */
    void (*softmax_xent)(int64_t rows, int64_t classes, const float *logits,
                         const pl_view *labels, float *probs, float *loss);
    /* diff[rows, classes] = (probs - onehot(label)) * diff_loss[row] */
    void (*softmax_xent_grad)(int64_t rows, int64_t classes, const float *probs,
                              const pl_view *labels, const float *diff_loss,
                              float *diff);
    /* For each row: exp(src) / the row's sum of it, and its gradient. */
    void (*softmax)(int64_t rows, int64_t classes, const float *src,
                    float *dst);
    void (*softmax_grad)(int64_t rows, int64_t classes, const float *dst,
                         const float *diff_dst, float *diff_src);
    /* hit[rows]: 1 if the first largest logit is that of the label, else 0. */
    void (*accuracy)(int64_t rows, int64_t classes, const float *logits,
                     const pl_view *labels, float *hit);

    /* Element-wise, dst may be a source. */
    void (*relu)(int64_t n, const float *src, float *dst);
    void (*relu_grad)(int64_t n, const float *dst, const float *diff_dst,
                      float *diff_src);
    void (*tanh)(int64_t n, const float *src, float *dst);
    void (*tanh_grad)(int64_t n, const float *dst, const float *diff_dst,
                      float *diff_src);
    void (*sigmoid)(int64_t n, const float *src, float *dst);
    void (*sigmoid_grad)(int64_t n, const float *dst, const float *diff_dst,
                         float *diff_src);
    /* Negative numbers times `slope`, 0 or more. */
    void (*leaky_relu)(int64_t n, float slope, const float *src, float *dst);
    void (*leaky_relu_grad)(int64_t n, float slope, const float *dst,
                            const float *diff_dst, float *diff_src);
    /* src times the probability of a normal variable below it. */
    void (*gelu)(int64_t n, const float *src, float *dst);
    void (*gelu_grad)(int64_t n, const float *src, const float *diff_dst,
                      float *diff_src);
    void (*add)(int64_t n, const float *a, const float *b, float *dst);
    void (*multiply)(int64_t n, const float *a, const float *b, float *dst);
    void (*scale)(int64_t n, float factor, const float *src, float *dst);
    void (*fill)(int64_t n, float value, float *dst);
    /* Kept elements times the scale, 0 for the others. */
    void (*dropout)(int64_t n, const pl_mask *mask, const float *src,
                    float *dst);

    /* dst[rows, row] = src[rows, row] + bias[row] */
    void (*bias)(int64_t rows, int64_t row, const float *src, const float *bias,
                 float *dst);
    /* dst[row] = the sum of src[rows, row] over rows. */
    void (*sum_rows)(int64_t rows, int64_t row, const float *src, float *dst);
    /* The sum of n numbers, and of their squares. */
    double (*sum)(int64_t n, const float *src);
    double (*sum_squares)(int64_t n, const float *src);
    /* dst = parts[0] + parts[1] + ... in this order; dst may be parts[0]. */
    void (*sum_parts)(int64_t n, int count, const float *const *parts,
                      float *dst);

    /* a = a + rate (src - a); the same bits wherever a range is split. */
    void (*average)(int64_t n, float rate, const float *src, float *a);
    /* The sum of (a - a_less) (b - b_less). */
    double (*products)(int64_t n, const float *a, float a_less, const float *b,
                       float b_less);
    /* dst = a * a_factor + b * b_factor + add; b may be NULL, dst may be a
     * source. */
    void (*blend)(int64_t n, const float *a, float a_factor, const float *b,
                  float b_factor, float add, float *dst);
    /* The same for each column of matrices [rows, row], with one number per
     * column.  The products are added to sums[row]; a_less or b_less NULL: 0, b
     * NULL: factors of 1. */
    void (*column_products)(int64_t rows, int64_t row, const float *a,
                            const float *a_less, const float *b,
                            const float *b_less, double *sums);
    void (*column_blend)(int64_t rows, int64_t row, const float *a,
                         const float *a_factor, const float *b,
                         const float *b_factor, const float *add, float *dst);

    /* The batch-in-lanes layout: element e of row r lies at [(r / lanes) * row
     * + e] * lanes + r % lanes, so that a vector holds one element of `lanes`
     * examples.  Rows are padded with zeros to whole groups of `lanes`. */
    void (*to_lanes)(int64_t rows, int64_t row, const pl_view *src, float *dst);
    void (*from_lanes)(int64_t rows, int64_t row, const float *src, float *dst);

    /* In lanes: src [groups][channels][height][width], dst [groups][outs]...,
     * weights [outs][channels][kernel_h][kernel_w], bias [outs] or NULL. */
    void (*conv)(const pl_conv *c, int64_t groups, const float *src,
                 const float *weights, const float *bias, float *scratch,
                 float *dst);
    void (*conv_src)(const pl_conv *c, int64_t groups, const float *diff_dst,
                     const float *weights, float *scratch, float *diff_src);
    void (*conv_weights)(const pl_conv *c, int64_t groups,
                         const float *diff_dst, const float *src,
                         float *scratch, float *diff_weights);
    /* diff_bias[outs] = the sum of diff_dst over groups, pixels and lanes. */
    void (*conv_bias)(const pl_conv *c, int64_t groups, const float *diff_dst,
                      float *diff_bias);
    void (*max_pool)(const pl_window *w, int64_t groups, const float *src,
                     float *dst);
    /* The first largest of a window gets its gradient. */
    void (*max_pool_grad)(const pl_window *w, int64_t groups, const float *src,
                          const float *dst, const float *diff_dst,
                          float *diff_src);
    void (*avg_pool)(const pl_window *w, int64_t groups, const float *src,
                     float *dst);
    void (*avg_pool_grad)(const pl_window *w, int64_t groups,
                          const float *diff_dst, float *diff_src);

    /* The same bits as conv, activation and pooling run separately, except for
     * the sign of a zero; both NULL: not available.  `index`, NULL or as large
     * as dst: the number of the window cell that each result of a max pooling
     * came from. */
    void (*conv_block)(const pl_conv_block *b, int64_t groups, const float *src,
                       const float *weights, const float *bias, float *scratch,
                       float *dst, int32_t *index);
    /* The gradients of max pooling and activation, from the results of
     * conv_block: diff_src is the gradient of the convolution's result. */
    void (*unpool)(const pl_conv_block *b, int64_t groups, const float *dst,
                   const int32_t *index, const float *diff_dst,
                   float *diff_src);

    pl_update_kernel *update[PL_OPTIMS];
} pl_kernels;

/* The best table that this processor supports. */
const pl_kernels *pl_kernels_best(void);

/* By name; NULL if unknown or not supported by this processor. */
const pl_kernels *pl_kernels_find(const char *name);

/* All tables of this build, best first, NULL-terminated; including unsupported
 * ones. */
const pl_kernels *const *pl_kernels_all(void);

#endif
