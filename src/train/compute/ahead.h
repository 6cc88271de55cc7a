/* ahead.h - sparse batches that are read, and whose keys are found, before
 * their turn.
 *
 * Where the weights are elsewhere (pl_sync_ops.keyed), their values can be
 * asked for in time: how many batches ahead, the sync says (pl_standing.ahead).
 * Where they are here, finding keys takes most of a step and needs no weights:
 * other threads prepare some batches while the ones before are computed.  What
 * a reader gives lives until its next call; what is needed of it longer is
 * kept.
 *
 * Threads: driven by one; uses the pool of `compute`. */
#ifndef PL_TRAIN_COMPUTE_AHEAD_H
#define PL_TRAIN_COMPUTE_AHEAD_H

#include "data/dataset.h"
#include "train/compute/compute.h"

typedef struct pl_ahead pl_ahead;

/* Batches at hand: as many times the memory of one computation. */
int pl_ahead_batches(bool elsewhere, int64_t rows, int threads);

/* All are borrowed.  `compute`: as for pl_compute_new.  Where the weights are
 * here, so are the examples: `reader` is of a set in memory. */
pl_status pl_ahead_new(pl_ahead **out, const pl_compute_opts *compute,
                       pl_reader *reader, pl_sync *sync) PL_MUST_CHECK;
void pl_ahead_free(pl_ahead *ahead); /* NULL is fine */

/* The sync has joined: nothing is asked for, and the reader gives the batch
 * that is next.  Ask for `distance` (0 or 1) batches beyond the next one. */
void pl_ahead_reset(pl_ahead *ahead, int distance);
/* The batches that were read are not wanted: the reader was moved. */
pl_status pl_ahead_skip(pl_ahead *ahead) PL_MUST_CHECK;

/* From here on `reader`, borrowed, gives the batches; none is asked for. */
void pl_ahead_turn(pl_ahead *ahead, pl_reader *reader);

/* One step: begin() gives the batch and what computes it, with its weights in
 * place; next(), before the commit, asks for the one to come, where there is
 * a sync to ask.  `step`, from 1, is the one the batch is for: prepared
 * batches are traced under their steps. */
typedef struct pl_ahead_batch {
    pl_compute *compute;
    const pl_batch *batch;
    int64_t step; /* of weights that were asked for, in lock step */
} pl_ahead_batch;
pl_status pl_ahead_begin(pl_ahead *ahead, int64_t step,
                         pl_ahead_batch *out) PL_MUST_CHECK;
pl_status pl_ahead_next(pl_ahead *ahead) PL_MUST_CHECK;

/* Where a reader would give the batch that begin() gives next. */
void pl_ahead_position(const pl_ahead *ahead, pl_position *out);

#endif
