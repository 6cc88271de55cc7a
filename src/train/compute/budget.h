/* budget.h - the memory a training will take, known before it is taken.
 *
 * Counts what grows with model, batch and data: parameters, optimizer slots,
 * gradients and results of all shards, the same for tests, the copies that are
 * made while a checkpoint is written, examples held in memory.
 *
 * Threads: any. */
#ifndef PL_TRAIN_COMPUTE_BUDGET_H
#define PL_TRAIN_COMPUTE_BUDGET_H

#include "train/compute/compute.h"

typedef struct pl_budget_opts {
    const pl_network *network; /* required; may have no values */
    const pl_kernels *kernels; /* default: the best of this processor */
    int64_t batch;             /* required */
    int threads;               /* default 1 */
    bool bf16;                 /* as pl_compute_opts.bf16 */
    int slots;                 /* of the optimizer, for each parameter */
    bool aggregates;           /* gradients are combined, or clipped */
    int64_t eval_batch;        /* 0: no tests */
    bool hogwild;              /* sparse: without gradients */
    bool saves;                /* checkpoints are written on the way */
    bool elsewhere;            /* the parameters, at parameter servers */
    bool streams;              /* examples are not in memory */
    int64_t data_bytes;        /* of examples held in memory */
    int64_t address_bytes;     /* of addresses taken beside memory, where those
                                  are limited: stacks, mapped files */
} pl_budget_opts;

/* Bytes. */
typedef struct pl_budget {
    int64_t params;
    int64_t optimizer;
    int64_t work;       /* gradients and results */
    int64_t evaluation; /* results of tests, where they have their own */
    int64_t checkpoint;
    int64_t data;
    int64_t addresses; /* taken beside memory */
    int64_t total;
} pl_budget;

pl_status pl_budget_make(pl_budget *out,
                         const pl_budget_opts *opts) PL_MUST_CHECK;

/* The largest batch, up to opts->batch, whose total is at most `bytes`; 0 when
 * not even 1 is. */
pl_status pl_budget_largest(const pl_budget_opts *opts, int64_t bytes,
                            int64_t *batch) PL_MUST_CHECK;

#endif
