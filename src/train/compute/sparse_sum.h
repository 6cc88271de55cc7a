/* sparse_sum.h - several sparse gradients combined into one.
 *
 * Each is a list of sorted, distinct keys with a number for each.  The result
 * has every key of any of them; its number is the sum, in order, over the
 * gradients that have the key, and for the mean is multiplied by 1 / M: the
 * same operations in the same order for micro-batches here and for workers on a
 * parameter server.
 *
 * Threads: one object, one thread. */
#ifndef PL_TRAIN_COMPUTE_SPARSE_SUM_H
#define PL_TRAIN_COMPUTE_SPARSE_SUM_H

#include "train/sync.h"

typedef struct pl_sparse_sum {
    pl_keys keys;  /* of the result, valid until the next put of a first term */
    float *values; /* one per key */
    uint64_t *ids[2];
    float *sums[2];
    int64_t room;
    int at; /* which of the two holds the result */
} pl_sparse_sum;

void pl_sparse_sum_close(pl_sparse_sum *sum); /* a zeroed one is fine */

/* Reset to an empty sum. */
void pl_sparse_sum_clear(pl_sparse_sum *sum);
/* Add one more gradient. */
pl_status pl_sparse_sum_put(pl_sparse_sum *sum, const pl_keys *keys,
                            const float *values) PL_MUST_CHECK;
/* Multiply all numbers, for the mean. */
void pl_sparse_sum_scale(pl_sparse_sum *sum, float factor);

#endif
