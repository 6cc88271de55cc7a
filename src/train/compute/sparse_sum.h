/* sparse_sum.h - several sparse gradients combined into one.
 *
 * Each is a list of keys, sorted and distinct, with a number for each.  A key
 * of the result is one that any of them has; its number is the sum over those
 * that have it, in their order, and for the mean multiplied by 1 / M: the same
 * operations in the same order for micro-batches here and for workers at a
 * parameter server.
 *
 * Threads: one object, one thread. */
#ifndef PL_TRAIN_COMPUTE_SPARSE_SUM_H
#define PL_TRAIN_COMPUTE_SPARSE_SUM_H

#include "train/sync.h"

typedef struct pl_sparse_sum {
    pl_keys keys;  /* of the result, until the next put of a first term */
    float *values; /* one for each */
    uint64_t *ids[2];
    float *sums[2];
    int64_t room;
    int at; /* which of the two the result is in */
} pl_sparse_sum;

void pl_sparse_sum_close(pl_sparse_sum *sum); /* a zeroed one is fine */

/* Begin with nothing. */
void pl_sparse_sum_clear(pl_sparse_sum *sum);
/* Add one more gradient behind those that were put. */
pl_status pl_sparse_sum_put(pl_sparse_sum *sum, const pl_keys *keys,
                            const float *values) PL_MUST_CHECK;
/* Multiply all numbers, for the mean. */
void pl_sparse_sum_scale(pl_sparse_sum *sum, float factor);

#endif
