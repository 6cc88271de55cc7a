/* plan.h - which blocks a worker reads in an epoch, in which windows.
 *
 * Threads: one at a time. */
#ifndef PL_DATA_SPARSE_PLAN_H
#define PL_DATA_SPARSE_PLAN_H

#include "data/sparse/set.h"

/* The blocks dealt to one worker. */
typedef struct pl_stream_share {
    uint32_t *blocks;
    int64_t count;
    int64_t rows;  /* examples in them */
    int64_t least; /* examples of the worker with the fewest */
} pl_stream_share;

pl_status pl_stream_share_init(pl_stream_share *share, const pl_sparse_set *set,
                               const pl_reader_opts *opts) PL_MUST_CHECK;
void pl_stream_share_close(pl_stream_share *share);

typedef struct pl_stream_window {
    int64_t first;        /* position in the epoch of its first example */
    int64_t rows;         /* examples, bad ones too */
    int64_t block, count; /* in pl_stream_plan.order */
} pl_stream_window;

/* One epoch. */
typedef struct pl_stream_plan {
    int64_t epoch;   /* -1: not made yet */
    uint32_t *order; /* the share's blocks */
    pl_stream_window *windows;
    int64_t count; /* windows */
} pl_stream_plan;

pl_status pl_stream_plan_init(pl_stream_plan *plan,
                              const pl_stream_share *share) PL_MUST_CHECK;
void pl_stream_plan_close(pl_stream_plan *plan);

/* Make it the plan of `epoch`. */
void pl_stream_plan_make(pl_stream_plan *plan, const pl_stream_share *share,
                         const pl_sparse_set *set, const pl_reader_opts *opts,
                         int64_t epoch);

/* The window that holds a position. */
int64_t pl_stream_plan_find(const pl_stream_plan *plan, int64_t position);

#endif
