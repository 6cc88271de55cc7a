/* single.h - training in one process: a commit updates the parameters.
 *
 * Threads: as pl_sync. */
#ifndef PL_SYNC_SINGLE_SINGLE_H
#define PL_SYNC_SINGLE_SINGLE_H

#include "base/thread.h"
#include "state/snapshot.h"
#include "train/optim/optim.h"
#include "train/optim/schedule.h"
#include "train/sync.h"

typedef struct pl_single_opts {
    pl_params *params; /* all are borrowed and outlive it */
    pl_optim *optim;
    const pl_schedule *schedule;
    pl_pool *pool;
    pl_snapshot *snapshot; /* NULL: nothing is saved */
} pl_single_opts;

pl_status pl_single_new(pl_sync **out,
                        const pl_single_opts *opts) PL_MUST_CHECK;

#endif
