/* pace.h - what a --mode means for a worker: one row each.  What it means for a
 * server is in sync/ps/modes/mode.h.
 *
 * Threads: any. */
#ifndef PL_SYNC_PS_WORKER_PACE_H
#define PL_SYNC_PS_WORKER_PACE_H

#include "sync/ps/messages/protocol.h"

typedef struct pl_ps_pace {
    /* The parameters used for a gradient belong to one step on all servers. */
    bool lock_step;
    /* The job may continue without this worker while dense parameters are in
     * flight: none is read before all belong to one step. */
    bool whole;
    /* The chief makes the others wait while it tests dense parameters.
     * Otherwise no update is made meanwhile anyway, or no worker should
     * wait. */
    bool pauses;
    /* Keyed parameters: batches to request beyond the next one. */
    int ahead;
} pl_ps_pace;

/* `backup`: sync, and a step needs fewer gradients than workers. */
const pl_ps_pace *pl_ps_pace_of(pl_ps_mode mode, bool backup);

#endif
