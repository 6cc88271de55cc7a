/* tensor.h - reference-counted memory with a type and a shape.
 *
 * Memory is zeroed and aligned to a cache line.  A tensor may instead borrow
 * memory and keep its owner alive until the last reference is released.
 *
 * Threads: ref and unref from any thread; callers synchronize access to the
 * contents. */
#ifndef PL_TENSOR_TENSOR_H
#define PL_TENSOR_TENSOR_H

#include "tensor/shape.h"

typedef struct pl_tensor pl_tensor;

/* The caller owns one reference to *out.  The shape has no PL_BATCH. */
pl_status pl_tensor_new(pl_tensor **out, pl_dtype dtype,
                        pl_shape shape) PL_MUST_CHECK;

/* A tensor over `data`; release(owner), if not NULL, runs when the tensor is
 * freed. */
pl_status pl_tensor_wrap(pl_tensor **out, pl_dtype dtype, pl_shape shape,
                         void *data, void (*release)(void *owner),
                         void *owner) PL_MUST_CHECK;

pl_tensor *pl_tensor_ref(pl_tensor *tensor);
void pl_tensor_unref(pl_tensor *tensor); /* NULL is fine */

pl_dtype pl_tensor_dtype(const pl_tensor *tensor);
pl_shape pl_tensor_shape(const pl_tensor *tensor);
int64_t pl_tensor_count(const pl_tensor *tensor); /* elements */
int64_t pl_tensor_bytes(const pl_tensor *tensor);
void *pl_tensor_data(pl_tensor *tensor);
float *pl_tensor_f32(pl_tensor *tensor); /* asserts the type */

#endif
