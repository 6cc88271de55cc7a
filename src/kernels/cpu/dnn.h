/* dnn.h - operations on large images, prepared and run by oneDNN.
 *
 * An operation is made once for fixed sizes and a batch.  A call is an
 * operation with its memory; running it allocates nothing.  oneDNN's scratch
 * memory is part of the caller's (pl_dnn_op_scratch), as are weights in its own
 * layout: for the caller they are always plain.
 *
 * Images are [batch, channels, height, width], plain, or blocked: channels in
 * groups of `block`, [batch][groups][height][width][block], the last group
 * padded.  Within a group a vector holds one pixel of `block` channels, just as
 * in lanes it holds one pixel of that many examples, so the pooling kernels of
 * backend.h also work on blocked images.
 *
 * Only this folder includes dnnl.h.
 *
 * Threads: operations are constant; a call belongs to one thread at a time, and
 * uses as many OpenMP threads as its operation was made for. */
#ifndef PL_KERNELS_CPU_DNN_H
#define PL_KERNELS_CPU_DNN_H

#include "kernels/backend.h"
#include "paceline/base.h"

#include <stdbool.h>

typedef struct pl_dnn_op pl_dnn_op;
typedef struct pl_dnn_call pl_dnn_call;

typedef enum pl_dnn_kind {
    PL_DNN_CONV,         /* src, weights, bias -> dst */
    PL_DNN_CONV_SRC,     /* diff_dst, weights -> diff_src */
    PL_DNN_CONV_WEIGHTS, /* diff_dst, src -> diff_bias, diff_weights */
    PL_DNN_BLOCK,        /* plain images -> blocked */
    PL_DNN_UNBLOCK,      /* blocked -> plain */
    /* Dense layers: src [batch, channels], weights [outs, channels]. */
    PL_DNN_DENSE,         /* src, weights, bias -> dst */
    PL_DNN_DENSE_SRC,     /* diff_dst, weights -> diff_src */
    PL_DNN_DENSE_WEIGHTS, /* diff_dst, src -> diff_weights */
} pl_dnn_kind;

typedef struct pl_dnn_opts {
    pl_dnn_kind kind;
    pl_conv sizes; /* to block or unblock: channels, height, width; dense layer:
                      channels, outs */
    int64_t batch;
    const pl_kernels *kernels; /* the block size is its number of lanes */
    int threads;               /* default 1 */
    int64_t slice; /* rows computed at once, divides the batch; default: all of
                      them unless that needs too much scratch memory */
    bool bias;     /* has a bias, or computes its gradient */
    bool relu;     /* of the result; PL_DNN_CONV only */
    bool bf16;     /* round factors to bfloat16; sums and all memory of the
                      caller stay float32 */
} pl_dnn_opts;

/* Arguments of a call, in the order of the kind's comment. */
enum {
    PL_DNN_FIRST,
    PL_DNN_SECOND,
    PL_DNN_BIAS,
    PL_DNN_RESULT,
    PL_DNN_ARGS,
};

/* May oneDNN be used with these kernels?  It pays only with vectors of 8 or 16
 * floats, and the reference must not use it. */
bool pl_dnn_usable(const pl_kernels *kernels);

/* Does this processor multiply bfloat16 (pl_dnn_opts.bf16) with these
 * kernels? */
bool pl_dnn_has_bf16(const pl_kernels *kernels);

/* Are images with this number of channels blocked for an operation?  Others are
 * plain. */
bool pl_dnn_blocked(const pl_kernels *kernels, int64_t channels);

pl_status pl_dnn_op_new(pl_dnn_op **out, const pl_dnn_opts *opts) PL_MUST_CHECK;
void pl_dnn_op_free(pl_dnn_op *op); /* NULL is fine */

/* Floats of scratch memory for a call; aligned to a cache line. */
int64_t pl_dnn_op_scratch(const pl_dnn_op *op);

/* `data` are PL_DNN_ARGS pointers, NULL for arguments that the operation lacks;
 * they, the scratch memory and the operation outlive the call. */
pl_status pl_dnn_call_new(pl_dnn_call **out, const pl_dnn_op *op,
                          float *const *data, float *scratch) PL_MUST_CHECK;
void pl_dnn_call_free(pl_dnn_call *call); /* NULL is fine */

/* With fewer rows than the batch, some or all remaining input rows are set to
 * zero, and the remaining output rows are undefined. */
void pl_dnn_call_run(const pl_dnn_call *call, int64_t rows);

/* The version of the library and the instruction set that it uses: on these,
 * and on the number of threads, the bits of its results depend. */
#define PL_DNN_TEXT 64
void pl_dnn_describe(char text[PL_DNN_TEXT]);

/* Threads of one call: `wanted`, or 1 under ThreadSanitizer, which cannot
 * follow the synchronization of OpenMP threads. */
int pl_dnn_threads(int wanted);

/* dst[n, m] = op(a) op(b), row-major; a transposed a is [k, n].  false: out of
 * memory, nothing was written. */
typedef struct pl_dnn_product {
    int64_t n, m, k;
    bool a_transposed, b_transposed;
    bool add; /* add to dst */
    int threads;
} pl_dnn_product;
bool pl_dnn_gemm(const pl_dnn_product *p, const float *a, const float *b,
                 float *dst);

/* dst[n, m] = src[n, k] weights[m, k]^T + bias[m]; bias may be NULL.  Computes
 * the transposed product into n * m floats of scratch, then transposes it: the
 * library is up to 1.5 times as fast if the large matrix comes first. */
bool pl_dnn_inner(const pl_dnn_product *p, const float *src,
                  const float *weights, const float *bias, float *scratch,
                  float *dst);

/* "2.6.3", the version of the loaded oneDNN. */
#define PL_DNN_VERSION 32
const char *pl_dnn_version(char text[PL_DNN_VERSION]);

#endif
