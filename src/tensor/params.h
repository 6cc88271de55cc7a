/* params.h - the named float32 tensors of a model, in one block of memory.
 *
 * Tensors are added, then the set is sealed and gets its memory: each tensor
 * starts on a cache line, gaps are zero and stay zero.  With one block,
 * reducing, updating and sending work on ranges.  Gradients and optimizer slots
 * are sets of the same layout.
 *
 * Running averages (the statistics of batch normalization) follow all trained
 * tensors, so one offset separates the two.
 *
 * Threads: built by one thread; afterwards any thread may read. */
#ifndef PL_TENSOR_PARAMS_H
#define PL_TENSOR_PARAMS_H

#include "tensor/shape.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct pl_params pl_params;

typedef struct pl_params_item {
    const char *name; /* owned by the set */
    pl_shape shape;
    int64_t count;  /* elements */
    int64_t offset; /* of the first element in the block */
    bool averaged;  /* a running average: no gradient changes it */
} pl_params_item;

pl_status pl_params_new(pl_params **out) PL_MUST_CHECK;
void pl_params_free(pl_params *params); /* NULL is fine */

/* PL_USAGE when the name is taken. */
pl_status pl_params_add(pl_params *params, const char *name,
                        pl_shape shape) PL_MUST_CHECK;
/* The same for a running average; trained tensors must be added first. */
pl_status pl_params_add_averaged(pl_params *params, const char *name,
                                 pl_shape shape) PL_MUST_CHECK;
pl_status pl_params_seal(pl_params *params) PL_MUST_CHECK;
/* The same in borrowed memory: pl_params_block_count floats, aligned to a cache
 * line, that outlive the set.  NULL: the set allocates its own. */
pl_status pl_params_seal_in(pl_params *params, float *block) PL_MUST_CHECK;

/* A sealed set with the same names and layout, all zero. */
pl_status pl_params_like(pl_params **out, const pl_params *other) PL_MUST_CHECK;
/* The same, sealed in given memory. */
pl_status pl_params_like_in(pl_params **out, const pl_params *other,
                            float *block) PL_MUST_CHECK;

int pl_params_count(const pl_params *params);
const pl_params_item *pl_params_get(const pl_params *params, int index);
int pl_params_find(const pl_params *params, const char *name); /* -1: none */
float *pl_params_data(const pl_params *params, int index);

float *pl_params_block(const pl_params *params);
int64_t pl_params_block_count(const pl_params *params); /* including gaps */
int64_t pl_params_elements(const pl_params *params); /* trained, without gaps */
/* Index in the block of the first element of a running average; the block count
 * if there is none. */
int64_t pl_params_trained(const pl_params *params);

#endif
