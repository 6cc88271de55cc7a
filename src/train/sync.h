/* sync.h - how gradients become updates: the seam to the cluster.
 *
 * The training loop does not know whether it runs alone.  It asks for
 * parameters before it reads them, hands over gradients as they are done, and
 * commits the step.  Alone, the parameters are local and a commit updates
 * them (single); in a cluster the same calls pull, push and wait.
 *
 * One step:   need(p) for each parameter, before it is first read,
 *             ready(p, gradient) for each, the last parameter first, as soon
 *             as it is done and no later parameter's is not, commit().
 * All are needed before the first is ready.  The first parameter is ready only
 * when the loss is known to be a number.
 *
 * Key lists, for sparse parameters, name the rows that are read or that have
 * a gradient; NULL means all.
 *
 * Threads: called by the thread that drives the loop, except where it says
 * otherwise. */
#ifndef PL_TRAIN_SYNC_H
#define PL_TRAIN_SYNC_H

#include "data/dataset.h"
#include "state/progress.h"
#include "tensor/params.h"
#include "train/factors.h"
#include "train/loop/deal.h"

#include <stdbool.h>

typedef struct pl_sync pl_sync;

/* What became of a step. */
typedef struct pl_commit {
    int64_t step; /* updates made so far, by the whole job */
    bool dropped; /* this gradient was too old and not used */
    bool stop;    /* the job is over */
    bool unsent;  /* ... and was, before this gradient could be sent */
    bool midway;  /* the parameters are this worker's alone: nothing is tested,
                     saved or stopped before they are the job's again */
    uint64_t own_ticks; /* of the commit that this worker did not wait, but
                           computed: the update */
} pl_commit;

/* Where a worker stands: for tasks that join a running job. */
typedef struct pl_standing {
    int64_t step;      /* updates made, by the whole job */
    int64_t own;       /* this worker's gradients among them */
    bool over;         /* no more gradients are wanted */
    int64_t restored;  /* the step that the job was taken back to, if it was;
                          before join: INT64_MAX */
    pl_progress start; /* before join: what a first checkpoint is to say, where
                          the strategy writes one when a job begins */
    int ahead;         /* of keyed parameters: batches to ask for beyond the
                          next one, 0 or 1 */
    /* Where the strategy knows who makes steps: the deal of the job (told by
     * the chief, whatever this worker's was) and who is there. */
    bool dealt;
    pl_deal deal;
    pl_workers present;
} pl_standing;

/* A worker's share of the data, as far as it was read. */
typedef struct pl_share {
    int32_t worker; /* whose */
    int64_t own;    /* gradients of it that were made */
} pl_share;

typedef struct pl_keys {
    const uint64_t *ids; /* distinct; sorted where they are sent */
    int64_t count;
} pl_keys;

/* The parameters of a sparse model, as far as a batch has them. */
typedef struct pl_values {
    const float *table; /* one for each key */
    const float *bias;
    int64_t step; /* in lock step: whose they are */
} pl_values;

/* Where a commit makes the update here: its time is computing, not waiting.
 * Update the block range by range, instead of ready and before commit.  Same
 * bits. */
typedef struct pl_sync_local {
    void (*begin)(pl_sync *sync);
    /* From all threads of the pool, on ranges that do not overlap. */
    void (*apply)(pl_sync *sync, int64_t first, int64_t count,
                  const float *grad);
} pl_sync_local;

/* Where a sparse model's parameters are not in memory here: `need` is not
 * called, and one step is take() the values of a batch that was asked for,
 * ask() for one that comes later, ready, commit.  What commit tells of may
 * then be the gradient before. */
typedef struct pl_sync_keyed {
    /* Ask for the values at these keys: `later`, with the commit; or now. */
    pl_status (*ask)(pl_sync *sync, const pl_keys *keys, bool later);
    /* Wait for those of the first ask that was not taken; they stay until two
     * more were. */
    pl_status (*take)(pl_sync *sync, pl_values *out);
    /* Ask and wait, for a test; they stay until the next one. */
    pl_status (*look)(pl_sync *sync, const pl_keys *keys, pl_values *out);
} pl_sync_keyed;

/* Where the data that a worker reads can change while the job runs. */
typedef struct pl_sync_data {
    /* In own pace: `own` gradients of this worker's share are made, or it does
     * not know how many; whose shall it read on, up to as many?  Its own: no
     * other share is left.  `wait`: until that is sure to stay so. */
    pl_status (*share)(pl_sync *sync, int64_t own, bool wait, pl_share *out);
    /* In lock step, where joining told of a deal: who shares the data from
     * `step` on, the first of `epoch`?  at->deal and at->present tell. */
    pl_status (*deal)(pl_sync *sync, int64_t step, int64_t epoch,
                      pl_standing *at);
} pl_sync_data;

typedef struct pl_sync_ops {
    const char *name; /* "single" */

    /* Before the first step; *at is where a resumed run stands, and becomes
     * where this worker goes on.  Any call may fail with PL_ROLLED: what the
     * servers had is lost; join again and go on from there. */
    pl_status (*join)(pl_sync *sync, pl_standing *at);
    /* Parameter `param` is about to be read; return when it is current. */
    pl_status (*need)(pl_sync *sync, int param, const pl_keys *keys);
    /* Its gradient is done and may be sent; it stays until commit returns. */
    pl_status (*ready)(pl_sync *sync, int param, const float *grad,
                       const pl_keys *keys);
    /* All gradients of the step were handed over. */
    pl_status (*commit)(pl_sync *sync, pl_commit *out);
    /* Keep what is needed to go on from here; `complete`: and return when all
     * of it is kept.  Else PL_AGAIN: busy with the one before, left out. */
    pl_status (*save)(pl_sync *sync, const pl_progress *progress,
                      bool complete);
    /* The loop ends here. */
    pl_status (*finish)(pl_sync *sync);
    void (*free)(pl_sync *sync);

    /* Optional, for jobs of several workers. */

    /* Memory the gradients want to be in, laid out like the parameters. */
    float *(*gradient)(pl_sync *sync);
    /* The factors of dense layers that it wants beside the gradients; NULL:
     * none.  They are complete when the first of their parameters is ready. */
    pl_factors *(*factors)(pl_sync *sync);
    /* Parameters are about to be evaluated or saved; *step: whose they are.
     * `over`: after the last step, so wait until no worker changes them any
     * more. */
    pl_status (*pause)(pl_sync *sync, bool over, int64_t *step);
    /* The chief, before a step: a checkpoint is to be written after it.  What
     * is due then is known when the step begins. */
    void (*save_follows)(pl_sync *sync);
    /* A worker other than the chief tests its parameters while the job goes
     * on; or has done so. */
    void (*testing)(pl_sync *sync, int64_t step, bool begins);
    /* An operator of this worker's step has finished: shows that a long step
     * is under way.  `sync` is the pl_sync.  Cheap; from any thread. */
    void (*progress)(void *sync);
    /* End the job for all workers. */
    pl_status (*stop)(pl_sync *sync, const char *why);
    /* What went over its connections so far; cheap. */
    void (*traffic)(const pl_sync *sync, int64_t *sent_bytes,
                    int64_t *received_bytes);
    /* This worker failed. */
    void (*abort)(pl_sync *sync, const char *why);

    /* Optional groups, see above. */
    const pl_sync_local *local; /* NULL: a commit updates elsewhere */
    const pl_sync_keyed *keyed; /* NULL: all parameters are here */
    const pl_sync_data *data;   /* NULL: changes only when all join */
} pl_sync_ops;

struct pl_sync {
    const pl_sync_ops *ops;
};

#endif
