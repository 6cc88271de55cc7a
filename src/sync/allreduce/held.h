/* held.h - what a lossy codec holds back, as stored in a checkpoint.
 *
 * A codec with error feedback (sync/codec.h) leaves a residual at each worker,
 * which differs from worker to worker.  With momentum correction each worker
 * also has a velocity of its own: it sends v = momentum v + gradient, and the
 * update that all make has no momentum; where a number was sent, v restarts at
 * 0 (Lin et al., Deep Gradient Compression, 2018, sections 3.1 and 3.3).  To
 * make a resumed run bit-identical to an uninterrupted one, the chief gathers
 * the state of all workers before a checkpoint and returns it after one was
 * read.
 *
 * Threads: one at a time. */
#ifndef PL_SYNC_ALLREDUCE_HELD_H
#define PL_SYNC_ALLREDUCE_HELD_H

#include "paceline/base.h"
#include "state/planes.h"

#include <stdbool.h>
#include <stdint.h>

#define PL_HELD_WORKERS_MOST 64
#define PL_HELD_BLOCKS_MOST  2

typedef struct pl_held {
    int32_t workers;
    int64_t floats;
    int blocks;     /* for each worker; 1: the residual; 2: also the velocity */
    float momentum; /* of the velocity */
    /* The chief's: blocks of all workers, as last gathered.  NULL at other
     * workers. */
    float *all;
    char (*names)[40]; /* "held.0.residual" */
} pl_held;

/* `gathers`: the chief, which writes checkpoints. */
pl_status pl_held_new(pl_held **out, int32_t workers, int64_t floats,
                      double momentum, bool gathers) PL_MUST_CHECK;
void pl_held_free(pl_held *held); /* may be NULL */

/* Block `block` of a worker, at the chief. */
float *pl_held_block(const pl_held *held, int32_t worker, int block);
/* Append all blocks, if any, to the planes of a checkpoint. */
void pl_held_planes(const pl_held *held, pl_planes *planes);

#endif
