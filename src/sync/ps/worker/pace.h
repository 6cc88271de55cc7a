/* pace.h - what a --mode means for a worker: one row each.  What it means for a
 * server is in sync/ps/modes/mode.h.
 *
 * Threads: any. */
#ifndef PL_SYNC_PS_WORKER_PACE_H
#define PL_SYNC_PS_WORKER_PACE_H

#include "sync/ps/messages/protocol.h"

typedef struct pl_ps_pace {
    /* The parameters of a gradient are of one step, on all servers. */
    bool lock_step;
    /* The job may go on without this worker while dense parameters are on their
     * way: none is read before all are of one step. */
    bool whole;
    /* The chief holds the others up while it tests dense parameters.  Else
     * nothing moves meanwhile anyway, or no worker shall wait. */
    bool pauses;
    /* Keyed parameters: batches to ask for beyond the next one. */
    int ahead;
} pl_ps_pace;

/* `backup`: sync, and a step needs fewer gradients than workers. */
const pl_ps_pace *pl_ps_pace_of(pl_ps_mode mode, bool backup);

#endif
