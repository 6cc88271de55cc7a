/* ahead.h - sparse batches that are read, and whose keys are found, early.
 *
 * If the weights are remote (pl_sync_ops.keyed), their values are requested
 * early; the sync sets how many batches ahead (pl_standing.ahead). If they are
 * local, finding keys takes most of a step and needs no weights: other threads
 * prepare the next batches while the current ones are computed.  A reader's
 * batch is valid until its next call; what is needed longer is copied.
 *
 * Threads: driven by one; uses the pool of `compute`. */
#ifndef PL_TRAIN_COMPUTE_AHEAD_H
#define PL_TRAIN_COMPUTE_AHEAD_H

#include "data/dataset.h"
#include "train/compute/compute.h"

typedef struct pl_ahead pl_ahead;

/* Batches in flight; each takes the memory of one computation. */
int pl_ahead_batches(bool elsewhere, int64_t rows, int threads);

/* All arguments are borrowed.  `compute`: as for pl_compute_new.  If the
 * weights are local, so are the examples: `reader` reads a set in memory. */
pl_status pl_ahead_new(pl_ahead **out, const pl_compute_opts *compute,
                       pl_reader *reader, pl_sync *sync) PL_MUST_CHECK;
void pl_ahead_free(pl_ahead *ahead); /* NULL is fine */

/* The sync has joined: no request is pending, and the reader yields the next
 * batch.  Request `distance` (0 or 1) batches beyond it. */
void pl_ahead_reset(pl_ahead *ahead, int distance);
/* Discard the batches that were read: the reader was moved. */
pl_status pl_ahead_skip(pl_ahead *ahead) PL_MUST_CHECK;

/* Read from `reader`, borrowed, from here on; no request is pending. */
void pl_ahead_turn(pl_ahead *ahead, pl_reader *reader);

/* One step: begin() returns the batch and the object that computes it, with its
 * weights in place; next(), before the commit, requests the batch to come if
 * the weights are remote.  `step`, from 1, is the batch's: prepared batches are
 * traced under their own steps. */
typedef struct pl_ahead_batch {
    pl_compute *compute;
    const pl_batch *batch;
    int64_t step; /* of requested weights, in lock step */
} pl_ahead_batch;
pl_status pl_ahead_begin(pl_ahead *ahead, int64_t step,
                         pl_ahead_batch *out) PL_MUST_CHECK;
pl_status pl_ahead_next(pl_ahead *ahead) PL_MUST_CHECK;

/* The reader's position before the batch that begin() returns next. */
void pl_ahead_position(const pl_ahead *ahead, pl_position *out);

#endif
