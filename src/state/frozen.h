/* frozen.h - memory as it was at one moment, read while it keeps changing.
 *
 * A thread that is about to change a range announces it first; one other thread
 * reads the whole memory once, in order.  Memory that is about to change and
 * was not read yet is copied first, piece by piece, into a pool of bounded
 * size.  When the pool is full the change must wait until the reader has
 * advanced: touch returns false and never waits, before_change waits.  Waiting
 * is bounded: when the reader does not advance for `patience_ms` while a change
 * waits, its snapshot is lost and all changes continue.  Without a reader, an
 * announcement costs one branch.
 *
 * The memory consists of several blocks of equal length (planes): parameters
 * and the slots of an optimizer.  A range of the block is copied in all of
 * them.
 *
 * Threads: touch and before_change may be called from several at once, for
 * ranges that they then change; begin while none of them does; end from any
 * thread; read from one. */
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
    size_t pool_bytes; /* the most for copies; default pl_frozen_pool */
    int patience_ms;   /* default PL_FROZEN_PATIENCE_MS */
} pl_frozen_opts;

/* Size of the pool for `bytes` of memory: a quarter, but at least 64 MB or all
 * of it. */
int64_t pl_frozen_pool(int64_t bytes);

pl_status pl_frozen_new(pl_frozen **out,
                        const pl_frozen_opts *opts) PL_MUST_CHECK;
void pl_frozen_free(pl_frozen *frozen); /* NULL is fine */

/* Called regularly by the waiting thread while a change waits; NULL: not
 * called. */
void pl_frozen_on_wait(pl_frozen *frozen, void (*waiting)(void *context),
                       void *context);

/* From now on reads return the memory as it is now.  No read may be in
 * progress. */
void pl_frozen_begin(pl_frozen *frozen);
/* Ends the reads: changes need no copies, and the pool is freed.  Called by the
 * reader when it is done, or by agreement with it. */
void pl_frozen_end(pl_frozen *frozen);

/* The floats [first, first + count) of each plane are about to change.  True
 * when they may; false when the pool is full: try again later, what fitted has
 * been copied. */
bool pl_frozen_touch(pl_frozen *frozen, int64_t first, int64_t count);

/* The same, but wait until they may change. */
void pl_frozen_before_change(pl_frozen *frozen, int64_t first, int64_t count);
/* The same for the floats first + ids[k], for all ids below `most`. */
void pl_frozen_before_keys(pl_frozen *frozen, int64_t first, uint64_t most,
                           const uint64_t *ids, int64_t count);

/* The floats of `plane` from `first` on as they were at pl_frozen_begin: *data
 * is valid until the next call and holds *count of them, at most up to the end
 * of the plane.  Planes and offsets must rise from call to call. */
void pl_frozen_read(pl_frozen *frozen, int plane, int64_t first,
                    const float **data, int64_t *count);

/* True when a change stopped waiting for the reader: what was read since the
 * last begin must not be used. */
bool pl_frozen_lost(const pl_frozen *frozen);

#endif
