/* shuffle.h - the reader of all data sets in memory.
 *
 * Shuffles, then shards, in the order that dataset.h defines.  The permutation
 * of an epoch is a function of (seed, epoch), computed for one batch at a time,
 * so a reader holds one batch of row numbers and nothing else, and can start
 * anywhere.  Sparse examples are shuffled in runs of 16 consecutive ones, or
 * fetching them would take longer than computing; the incomplete run at the end
 * of the set has a new place in every epoch, like any other run. one_pass
 * readers read the whole set in file order and ignore workers and
 * micro-batches.
 *
 * A position is 60 bytes, little-endian: the settings it depends on - version 1
 * (u32), kind of order (u32), examples (u64), seed (u64), batch (u64),
 * micro-batches (u32), workers (u32) - then the batch that comes next: epoch
 * (u64), step (u64), micro-batch (u32).  The kind of order is 1 for one_pass, 2
 * for keep_rest, plus 4 when an incomplete run moves with the epoch.  Other
 * settings are refused.
 *
 * Threads: a reader belongs to one thread. */
#ifndef PL_DATA_SHUFFLE_H
#define PL_DATA_SHUFFLE_H

#include "data/dataset.h"

/* The options are complete, as pl_reader_new makes them.  The set must
 * outlive the reader. */
pl_status pl_shuffle_reader_new(pl_reader **out, const pl_dataset *set,
                                const pl_reader_opts *opts) PL_MUST_CHECK;

/* The epoch of the batch that such a reader gives next. */
int64_t pl_shuffle_reader_epoch(const pl_reader *reader);

#endif
