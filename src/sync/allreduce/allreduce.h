/* allreduce.h - the sync strategy (train/sync.h) in which every worker holds
 * the whole model.
 *
 * The gradients of all workers are summed and every worker makes the same
 * update; or, with local_steps, each worker makes some updates of its own,
 * after which all take the mean of the parameters (rounds.c).  No worker
 * decides alone: a step ends according to the status of all, and a worker that
 * stops takes part in one more step so that no other waits for it.
 *
 * Threads: as pl_sync. */
#ifndef PL_SYNC_ALLREDUCE_ALLREDUCE_H
#define PL_SYNC_ALLREDUCE_ALLREDUCE_H

#include "base/thread.h"
#include "state/snapshot.h"
#include "sync/allreduce/collective.h"
#include "sync/allreduce/held.h"
#include "train/factors.h"
#include "train/optim/optim.h"
#include "train/optim/schedule.h"
#include "train/sync.h"

typedef struct pl_allreduce_sync pl_allreduce_sync;

typedef struct pl_allreduce_sync_opts {
    pl_collective *collective; /* made for the floats of `params`; all pointers
                                  here are borrowed */
    int32_t worker, workers;
    bool sum;                /* use the sum of the gradients; default: their
                                mean */
    int64_t local_steps;     /* between two means of the parameters; default 1:
                                each gradient is combined.  Not with `sum` */
    double outer_lr;         /* with local_steps: rate of the step to the
                                mean */
    double outer_momentum;   /* ... which optim->outer keeps */
    int64_t bucket_bytes;    /* default: measured by the chief */
    int64_t end_step;        /* updates of the job; required */
    const pl_json *settings; /* texts that must be the same in all tasks; or
                                NULL */
    pl_params *params;
    pl_optim *optim;
    pl_factors *factors; /* layers that may travel as factors; the collective
                            needs room for them (factors.h); NULL: none */
    pl_held *held;       /* state of the engine's codec; NULL: none.  Not with
                            local_steps or factors */
    pl_link_class link;  /* the chief's: decides which factors travel; UNKNOWN:
                            it is measured */
    const pl_schedule *schedule;
    pl_pool *pool;
    pl_snapshot *snapshot; /* the chief's; NULL: nothing is saved */
    uint64_t job;          /* the chief's: the number of the job */
    const char *run;       /* the chief's: its run folder; or NULL */
    /* Optional: the rendezvous is complete. */
    void (*joined)(void *context);
    /* Optional: called once, before the first step, with the job's number and
     * the chief's run folder (a path on the chief's host; "" when unknown). */
    void (*located)(void *context, uint64_t job, const char *run);
    /* This task's report, as JSON text of pl_mem; called at the end. */
    pl_status (*report)(void *context, char **text);
    void *context;
} pl_allreduce_sync_opts;

pl_status pl_allreduce_sync_new(
    pl_allreduce_sync **out, const pl_allreduce_sync_opts *opts) PL_MUST_CHECK;
pl_sync *pl_allreduce_sync_base(pl_allreduce_sync *sync); /* freed by its ops */

typedef struct pl_allreduce_sync_view {
    int64_t step;          /* updates made */
    int64_t bucket_bytes;  /* in use */
    double update_seconds; /* from the first to the last update */
    bool factors;          /* gradients travel as factors... */
    const bool *chosen;    /* ... these of opts.factors */
    double coding_seconds; /* spent encoding, or forming products of factors */
    const char *reports;   /* at the end: JSON of all workers; else NULL */
    bool mixed;  /* the result differs from a job in which no worker is
                    lost */
    bool broken; /* a worker was interrupted */
} pl_allreduce_sync_view;
pl_allreduce_sync_view pl_allreduce_sync_look(const pl_allreduce_sync *sync);

#endif
