/* aggregate.h - several gradients combined into one update.
 *
 * Each gradient is clipped separately; the gradients are then added by number
 * and, for the mean, multiplied by 1 / M: the same operations in the same order
 * as on a parameter server that combines M workers.
 *
 * The batch statistics that running averages approach are not gradients: they
 * are not clipped, and are combined as the mean even where gradients are
 * summed.
 *
 * Threads: driven by one thread; uses the given pool. */
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
    double clip;               /* maximum norm of each gradient; 0: no limit */
    float *diff;               /* memory for the result; default: its own */
} pl_aggregator_opts;

pl_status pl_aggregator_new(pl_aggregator **out,
                            const pl_aggregator_opts *opts) PL_MUST_CHECK;
void pl_aggregator_free(pl_aggregator *aggregator); /* NULL is fine */
int32_t pl_aggregator_micro_batches(const pl_aggregator *aggregator);

/* Gradient number m of the step, m = 0 .. M-1 in order. */
void pl_aggregator_put(pl_aggregator *aggregator, int32_t m,
                       const pl_params *diff);

/* The factor by which the last gradient was clipped; 1: not clipped. */
float pl_aggregator_factor(const pl_aggregator *aggregator);

/* The combined gradient, after the last put; valid until the next put. */
pl_params *pl_aggregator_diff(const pl_aggregator *aggregator);

#endif
