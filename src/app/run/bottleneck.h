/* bottleneck.h - what held a run up, in words.
 *
 * From where the time of its workers went: computing, sending, reading data,
 * or waiting, and then for whom.
 *
 * Threads: one. */
#ifndef PL_APP_RUN_BOTTLENECK_H
#define PL_APP_RUN_BOTTLENECK_H

#include "base/record/summary.h"

typedef struct pl_bottleneck_opts {
    int32_t cores;     /* of the chief's host; 0: not known */
    bool may_use_bf16; /* gradients travel as float32, and need not */
    /* Of all-reduce, likewise; 0: not for this job. */
    double topk_bytes;    /* share of a link's bytes that --codec topk sends */
    double factors_bytes; /* ... and factors, whose products take so long */
    double factors_s;
    int32_t planes; /* blocks that become means with --local-steps */
} pl_bottleneck_opts;

/* Fill `bottleneck` of a summary that has its strategy, mode and rows; it has
 * none when there was no time to speak of. */
pl_status pl_bottleneck_find(pl_summary *summary,
                             const pl_bottleneck_opts *opts) PL_MUST_CHECK;

#endif
