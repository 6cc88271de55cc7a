/* frozen.h - memory as it was at one moment, read while it goes on changing.
 *
 * A thread that is about to change a range announces it first; one other
 * thread reads the whole memory once, in order.  What is about to change and
 * was not read yet is copied before, piece by piece, into a pool of bounded
 * size.  When the pool is full the change has to wait until the reader has
 * come further: touch says so and never waits itself, before_change waits.
 * Neither waits for ever: a reader that does not move for `patience_ms` while a
 * change waits loses what it reads, and all changes go on.  While nothing is
 * read, an announcement costs one branch.
 *
 * The memory is several blocks of one length (planes): parameters and the
 * slots of an optimizer.  A range of the block is copied in all of them.
 *
 * Threads: touch and before_change may be called from several at once, for
 * ranges that they then change; begin while none of them does, end from any;
 * read from one. */
#ifndef PL_STATE_FROZEN_H
#define PL_STATE_FROZEN_H

#include "paceline/base.h"
#include "state/planes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PL_FROZEN_FLOATS      ((int64_t)1 << 14) /* of a piece, by default */
#define PL_FROZEN_PATIENCE_MS 60000

typedef struct pl_frozen pl_frozen;

typedef struct pl_frozen_opts {
    pl_planes planes;
    int64_t count;     /* floats of each; >= 1 */
    int64_t piece;     /* floats; default PL_FROZEN_FLOATS */
    size_t pool_bytes; /* most for copies; default pl_frozen_pool */
    int patience_ms;   /* default PL_FROZEN_PATIENCE_MS */
} pl_frozen_opts;

/* The pool of memory of so many bytes: a quarter, but at least 64 MB or all of
 * it. */
int64_t pl_frozen_pool(int64_t bytes);

pl_status pl_frozen_new(pl_frozen **out,
                        const pl_frozen_opts *opts) PL_MUST_CHECK;
void pl_frozen_free(pl_frozen *frozen); /* NULL is fine */

/* Called now and then while a change waits, by the waiting thread; NULL: no
 * more. */
void pl_frozen_on_wait(pl_frozen *frozen, void (*waiting)(void *context),
                       void *context);

/* From here on reads give the memory as it is now.  None may be under way. */
void pl_frozen_begin(pl_frozen *frozen);
/* No more reads: changes need no copies, and the pool is given back.  The
 * reader calls it when it is done, or both have agreed. */
void pl_frozen_end(pl_frozen *frozen);

/* The floats [first, first + count) of each plane are about to change: true
 * when they may; false when the pool is full.  Then ask again later; what
 * fitted was copied. */
bool pl_frozen_touch(pl_frozen *frozen, int64_t first, int64_t count);

/* The same, but wait until they may change. */
void pl_frozen_before_change(pl_frozen *frozen, int64_t first, int64_t count);
/* ... the floats first + ids[k], for all ids below `most`. */
void pl_frozen_before_keys(pl_frozen *frozen, int64_t first, uint64_t most,
                           const uint64_t *ids, int64_t count);

/* The floats of `plane` from `first` on as they were at the beginning: *data
 * is valid until the next call, and holds *count of them, at most up to the
 * end of the plane.  Planes and places must come in rising order. */
void pl_frozen_read(pl_frozen *frozen, int plane, int64_t first,
                    const float **data, int64_t *count);

/* A change would not wait any longer: what the reads since have given is of no
 * use.  Until the next begin. */
bool pl_frozen_lost(const pl_frozen *frozen);

#endif
