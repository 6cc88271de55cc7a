/* budget.h - predicts the memory that a training will use.
 *
 * Counts what grows with model, batch and data: parameters, optimizer slots,
 * gradients and results of all shards, the same for tests, copies made while a
 * checkpoint is written, examples held in memory.
 *
 * Threads: any. */
#ifndef PL_TRAIN_COMPUTE_BUDGET_H
#define PL_TRAIN_COMPUTE_BUDGET_H

#include "train/compute/compute.h"

typedef struct pl_budget_opts {
    const pl_network *network; /* required; may be without values */
    const pl_kernels *kernels; /* default: the best of this processor */
    int64_t batch;             /* required */
    int threads;               /* default 1 */
    bool bf16;                 /* as pl_compute_opts.bf16 */
    int slots;                 /* of the optimizer, per parameter */
    bool aggregates;           /* gradients are combined or clipped */
    int64_t eval_batch;        /* 0: no tests */
    bool hogwild;              /* sparse: no gradient memory */
    bool saves;                /* checkpoints are written during training */
    bool elsewhere;            /* the parameters are on parameter servers */
    bool streams;              /* examples are streamed, not held in memory */
    int64_t data_bytes;        /* of examples held in memory */
    int64_t address_bytes;     /* address space used beyond memory, where it is
                                  limited: stacks, mapped files */
} pl_budget_opts;

/* In bytes. */
typedef struct pl_budget {
    int64_t params;
    int64_t optimizer;
    int64_t work;       /* gradients and results */
    int64_t evaluation; /* results of tests, if stored separately */
    int64_t checkpoint;
    int64_t data;
    int64_t addresses; /* address space beyond memory */
    int64_t total;
} pl_budget;

pl_status pl_budget_make(pl_budget *out,
                         const pl_budget_opts *opts) PL_MUST_CHECK;

/* The largest batch, up to opts->batch, whose total is at most `bytes`; 0 if
 * not even a batch of 1 fits. */
pl_status pl_budget_largest(const pl_budget_opts *opts, int64_t bytes,
                            int64_t *batch) PL_MUST_CHECK;

#endif
