/* stream.h - the reader of sparse sets that are not held in memory.
 *
 * Design.  The blocks of all files, in an order keyed by the seed, are dealt to
 * the workers in turn, once for all epochs.  In an epoch a worker takes its
 * blocks in an order keyed by (seed, epoch) and reads them in windows: as many
 * blocks as hold --shuffle-buffer examples, all examples of a window in an
 * order keyed by (seed, epoch, window).  So an example's place depends on the
 * settings only; a reader can start anywhere, at the cost of decoding one
 * window, and a resumed run reads what an uninterrupted one would.
 *
 * A thread decodes the next window, on as many threads as the set allows, while
 * the batches of the current one are used: a reader holds two windows and the
 * blocks of one.
 *
 * An epoch has as many steps as the worker with the fewest examples can make; a
 * worker's further examples are left out: other ones in each epoch, since the
 * order of blocks and windows changes.  Skipped bad examples are replaced by
 * the first ones of the window; one_pass readers leave them out and read all
 * blocks in the order of the files.
 *
 * A position is 64 bytes: those of shuffle.h, as version 2 (the kind of order
 * is 0, 1 or 2), and the CRC32C of everything else the order depends on (u32).
 *
 * Threads: a reader belongs to one thread. */
#ifndef PL_DATA_SPARSE_STREAM_H
#define PL_DATA_SPARSE_STREAM_H

#include "data/sparse/set.h"

/* The set must outlive the reader. */
pl_status pl_stream_reader_new(pl_reader **out, pl_sparse_set *set,
                               const pl_reader_opts *opts) PL_MUST_CHECK;

#endif
