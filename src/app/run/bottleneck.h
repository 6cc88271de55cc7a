/* bottleneck.h - what slowed a run down, as a sentence.
 *
 * Derived from how its workers spent their time: computing, sending, reading
 * data, or waiting, and for which task.
 *
 * Threads: one. */
#ifndef PL_APP_RUN_BOTTLENECK_H
#define PL_APP_RUN_BOTTLENECK_H

#include "base/record/summary.h"

typedef struct pl_bottleneck_opts {
    int32_t cores;     /* of the chief's host; 0: not known */
    bool may_use_bf16; /* gradients travel as float32, but bf16 is possible */
    /* For all-reduce, possible codecs; 0: not for this job. */
    double topk_bytes;    /* share of a link's bytes that --codec topk sends */
    double factors_bytes; /* ... and factors; factors_s: for their products */
    double factors_s;
    int32_t planes; /* blocks that become means with --local-steps */
} pl_bottleneck_opts;

/* Fill in `bottleneck` of a summary that has its strategy, mode and rows; it
 * stays empty when the run had next to no training time. */
pl_status pl_bottleneck_find(pl_summary *summary,
                             const pl_bottleneck_opts *opts) PL_MUST_CHECK;

#endif
