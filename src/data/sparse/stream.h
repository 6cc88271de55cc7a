/* stream.h - the reader of sparse sets that are not held in memory.
 *
 * Design.  The blocks of all files, in an order of the seed, are dealt to the
 * workers in turn, once for all epochs.  In an epoch a worker takes its
 * blocks in an order of (seed, epoch) and reads them in windows: as many
 * blocks as hold --shuffle-buffer examples, all examples of a window in an
 * order of (seed, epoch, window).  So an example's place follows from the
 * settings alone; a reader can start anywhere, at the price of decoding one
 * window, and a resumed run reads what an uninterrupted one would.
 *
 * A thread decodes the next window, on as many threads as the set allows,
 * while the batches of the present one are used: two windows and the blocks
 * of one are what a reader holds.
 *
 * An epoch has as many steps as the worker with the fewest examples can make;
 * what a worker has beyond them is left out: other examples in each epoch,
 * since blocks and windows are in another order.
 * Where bad examples were passed over, the first ones of the window take
 * their place; a one_pass reader leaves them out.  one_pass readers go
 * through all blocks in the order of the files.
 *
 * A position is 64 bytes: those of shuffle.h, as version 2 (the kind of order
 * is 0, 1 or 2), and the CRC32C of what else the order depends on (u32).
 *
 * Threads: a reader belongs to one thread. */
#ifndef PL_DATA_SPARSE_STREAM_H
#define PL_DATA_SPARSE_STREAM_H

#include "data/sparse/set.h"

/* The set must outlive the reader. */
pl_status pl_stream_reader_new(pl_reader **out, pl_sparse_set *set,
                               const pl_reader_opts *opts) PL_MUST_CHECK;

#endif
