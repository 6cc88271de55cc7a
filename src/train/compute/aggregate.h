/* aggregate.h - several gradients combined into one update.
 *
 * Each gradient is clipped on its own, then they are added in the order of
 * their number and, for the mean, multiplied by 1 / M: the same operations in
 * the same order as a parameter server that combines M workers.
 *
 * What running averages are to approach is no gradient: it is not clipped, and
 * combined as the mean also where gradients are summed.
 *
 * Threads: driven by one thread; uses the pool it was given. */
#ifndef PL_TRAIN_COMPUTE_AGGREGATE_H
#define PL_TRAIN_COMPUTE_AGGREGATE_H

#include "base/thread.h"
#include "kernels/backend.h"
#include "tensor/params.h"

#include <stdbool.h>

typedef struct pl_aggregator pl_aggregator;

typedef struct pl_aggregator_opts {
    const pl_params *params;   /* for the layout; required */
    pl_pool *pool;             /* required; borrowed */
    const pl_kernels *kernels; /* default: the best */
    int32_t micro_batches;     /* M; required, >= 1 */
    bool sum;                  /* default: the mean */
    double clip;               /* most length of each gradient; 0: none */
    float *diff;               /* memory for the result; default: its own */
} pl_aggregator_opts;

pl_status pl_aggregator_new(pl_aggregator **out,
                            const pl_aggregator_opts *opts) PL_MUST_CHECK;
void pl_aggregator_free(pl_aggregator *aggregator); /* NULL is fine */
int32_t pl_aggregator_micro_batches(const pl_aggregator *aggregator);

/* Gradient number m of the step, m = 0 .. M-1 in order. */
void pl_aggregator_put(pl_aggregator *aggregator, int32_t m,
                       const pl_params *diff);

/* What they combine to, after the last put; until the next. */
pl_params *pl_aggregator_diff(const pl_aggregator *aggregator);

#endif
