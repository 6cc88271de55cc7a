/* dnn.h - operations on large images, prepared and run by oneDNN.
 *
 * An operation is made once for fixed sizes and a batch.  A call is an
 * operation with its memory; running it allocates nothing.  What oneDNN needs
 * while it runs is part of the caller's memory (pl_dnn_op_scratch), and so
 * are weights in the order it likes: the caller always sees them plain.
 *
 * Images are [batch, channels, height, width], plain, or blocked: channels in
 * groups of `block`, [batch][groups][height][width][block], the last group
 * filled up.  Within a group a vector holds one pixel of `block` channels,
 * just as in lanes it holds one pixel of that many examples, so the pooling
 * kernels of backend.h work on blocked images too.
 *
 * This folder alone includes dnnl.h.
 *
 * Threads: operations are constant; a call belongs to one thread at a time,
 * and uses as many of OpenMP's as its operation was made for. */
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
    PL_DNN_UNBLOCK,      /* and back */
    /* Dense layers: src [batch, channels], weights [outs, channels]. */
    PL_DNN_DENSE,         /* src, weights, bias -> dst */
    PL_DNN_DENSE_SRC,     /* diff_dst, weights -> diff_src */
    PL_DNN_DENSE_WEIGHTS, /* diff_dst, src -> diff_weights */
} pl_dnn_kind;

typedef struct pl_dnn_opts {
    pl_dnn_kind kind;
    pl_conv sizes; /* to block or unblock: channels, height, width; of a
                      dense layer: channels, outs */
    int64_t batch;
    const pl_kernels *kernels; /* block is its number of lanes */
    int threads;               /* default 1 */
    int64_t slice; /* rows computed at once, divides the batch; default: all
                      of them unless that takes much scratch memory */
    bool bias;     /* there is one, or its gradient is wanted */
    bool relu;     /* of the result; PL_DNN_CONV only */
    bool bf16;     /* round what is multiplied to bfloat16 on its way in; sums,
                      and all that the caller has, stay float32 */
} pl_dnn_opts;

/* What a call reads and writes, in the order of the kind's comment. */
enum {
    PL_DNN_FIRST,
    PL_DNN_SECOND,
    PL_DNN_BIAS,
    PL_DNN_RESULT,
    PL_DNN_ARGS,
};

/* Whether oneDNN may be used beside these kernels: it needs vectors of 8 or
 * 16 floats to be worth it, and the reference is to be free of it. */
bool pl_dnn_usable(const pl_kernels *kernels);

/* Whether this processor multiplies bfloat16 (pl_dnn_opts.bf16), beside these
 * kernels. */
bool pl_dnn_has_bf16(const pl_kernels *kernels);

/* Whether images of so many channels are blocked for an operation; others
 * are plain. */
bool pl_dnn_blocked(const pl_kernels *kernels, int64_t channels);

pl_status pl_dnn_op_new(pl_dnn_op **out, const pl_dnn_opts *opts) PL_MUST_CHECK;
void pl_dnn_op_free(pl_dnn_op *op); /* NULL is fine */

/* Floats a call needs while it runs; aligned to a cache line. */
int64_t pl_dnn_op_scratch(const pl_dnn_op *op);

/* `data` are PL_DNN_ARGS pointers, NULL where the operation has none; they
 * and the scratch outlive the call, as does the operation. */
pl_status pl_dnn_call_new(pl_dnn_call **out, const pl_dnn_op *op,
                          float *const *data, float *scratch) PL_MUST_CHECK;
void pl_dnn_call_free(pl_dnn_call *call); /* NULL is fine */

/* With fewer rows than the batch, some or all of the rest of what it reads is
 * set to zero, and the rest of what it writes is of no meaning. */
void pl_dnn_call_run(const pl_dnn_call *call, int64_t rows);

/* The library and the instructions that it uses here: on these, and on the
 * number of threads, the bits of its results depend. */
#define PL_DNN_TEXT 64
void pl_dnn_describe(char text[PL_DNN_TEXT]);

/* Threads that work in one call: `wanted`, or 1 under ThreadSanitizer, which
 * cannot see how OpenMP's threads meet. */
int pl_dnn_threads(int wanted);

/* dst[n, m] = op(a) op(b), row by row; a transposed a is [k, n].  false: no
 * memory, nothing was written. */
typedef struct pl_dnn_product {
    int64_t n, m, k;
    bool a_transposed, b_transposed;
    bool add; /* to what dst holds */
    int threads;
} pl_dnn_product;
bool pl_dnn_gemm(const pl_dnn_product *p, const float *a, const float *b,
                 float *dst);

/* dst[n, m] = src[n, k] weights[m, k]^T + bias[m]; bias may be NULL.  Computed
 * the other way round, into n * m floats of scratch, and turned: the library
 * is up to half as fast again when the large matrix comes first. */
bool pl_dnn_inner(const pl_dnn_product *p, const float *src,
                  const float *weights, const float *bias, float *scratch,
                  float *dst);

/* "2.6.3", the oneDNN that is loaded. */
#define PL_DNN_VERSION 32
const char *pl_dnn_version(char text[PL_DNN_VERSION]);

#endif
