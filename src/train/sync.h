/* sync.h - how gradients become updates: the interface to the cluster.
 *
 * The training loop does not know whether it runs alone.  It requests
 * parameters before it reads them, hands over gradients as they are computed,
 * and commits the step.  Alone, the parameters are local and a commit updates
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
 * Threads: called by the thread that drives the loop, unless stated
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

/* The result of a step. */
typedef struct pl_commit {
    int64_t step; /* updates made so far, by the whole job */
    bool dropped; /* this gradient was too old and not used */
    bool stop;    /* the job is over */
    bool unsent;  /* ... and was over before this gradient could be sent */
    bool midway;  /* this worker's parameters differ from the job's: no test,
                     save or stop until they agree again */
    uint64_t own_ticks; /* part of the commit spent computing the update, not
                           waiting */
} pl_commit;

/* The position of a worker, for tasks that join a running job. */
typedef struct pl_standing {
    int64_t step;      /* updates made, by the whole job */
    int64_t own;       /* gradients of this worker among them */
    bool over;         /* no more gradients are needed */
    int64_t restored;  /* the step to which the job rolled back, if it did;
                          before join: INT64_MAX */
    pl_progress start; /* before join: the progress to write in a first
                          checkpoint, if the strategy writes one when a job
                          begins */
    int ahead;         /* for keyed parameters: batches to request beyond the
                          next one, 0 or 1 */
    /* If the strategy knows which workers make steps: the job's deal (set by
     * the chief, whatever this worker had) and the present workers. */
    bool dealt;
    pl_deal deal;
    pl_workers present;
} pl_standing;

/* A worker's share of the data and the position in it. */
typedef struct pl_share {
    int32_t worker; /* owner of the share */
    int64_t own;    /* gradients made from it */
} pl_share;

typedef struct pl_keys {
    const uint64_t *ids; /* distinct; sorted if they are sent */
    int64_t count;
} pl_keys;

/* The parameters of a sparse model at a batch's keys. */
typedef struct pl_values {
    const float *table; /* one per key */
    const float *bias;
    int64_t step; /* in lock step: the step they are from */
} pl_values;

/* For strategies whose commit makes the update locally, so that its time is
 * computing, not waiting: update the block range by range, instead of ready and
 * before commit.  The bits are the same. */
typedef struct pl_sync_local {
    void (*begin)(pl_sync *sync);
    /* From all threads of the pool, on disjoint ranges. */
    void (*apply)(pl_sync *sync, int64_t first, int64_t count,
                  const float *grad);
} pl_sync_local;

/* For a sparse model whose parameters are remote: `need` is not called, and one
 * step is: take() the values of a batch requested earlier, ask() for a later
 * batch, ready, commit.  The commit may then report on the previous
 * gradient. */
typedef struct pl_sync_keyed {
    /* Request the values at these keys: `later`, with the commit; or now. */
    pl_status (*ask)(pl_sync *sync, const pl_keys *keys, bool later);
    /* Wait for the values of the oldest ask not yet taken; they stay valid
     * until two more were taken. */
    pl_status (*take)(pl_sync *sync, pl_values *out);
    /* Request and wait, for a test; valid until the next look. */
    pl_status (*look)(pl_sync *sync, const pl_keys *keys, pl_values *out);
} pl_sync_keyed;

/* If the data that a worker reads can change while the job runs. */
typedef struct pl_sync_data {
    /* In own pace: `own` gradients of this worker's share are made, or unknown
     * to it; which share should it read next, and up to where?  Its own share:
     * no other is left.  `wait`: return only once that is final. */
    pl_status (*share)(pl_sync *sync, int64_t own, bool wait, pl_share *out);
    /* In lock step, if joining returned a deal: which workers share the data
     * from `step` on, the first of `epoch`?  Returned in at->deal and
     * at->present. */
    pl_status (*deal)(pl_sync *sync, int64_t step, int64_t epoch,
                      pl_standing *at);
} pl_sync_data;

typedef struct pl_sync_ops {
    const char *name; /* "single" */

    /* Before the first step; *at is the position of a resumed run, and becomes
     * this worker's position.  Any call may fail with PL_ROLLED: the servers'
     * state was lost; join again and continue from there. */
    pl_status (*join)(pl_sync *sync, pl_standing *at);
    /* Parameter `param` is about to be read; returns when it is current. */
    pl_status (*need)(pl_sync *sync, int param, const pl_keys *keys);
    /* Its gradient is done and may be sent; it stays valid until commit
     * returns. */
    pl_status (*ready)(pl_sync *sync, int param, const float *grad,
                       const pl_keys *keys);
    /* All gradients of the step were handed over. */
    pl_status (*commit)(pl_sync *sync, pl_commit *out);
    /* Store what is needed to continue from here; `complete`: return when all
     * of it is stored.  Otherwise PL_AGAIN if the previous save is not done:
     * skipped. */
    pl_status (*save)(pl_sync *sync, const pl_progress *progress,
                      bool complete);
    /* The loop ends. */
    pl_status (*finish)(pl_sync *sync);
    void (*free)(pl_sync *sync);

    /* Optional, for jobs of several workers. */

    /* Memory for the gradients, laid out like the parameters. */
    float *(*gradient)(pl_sync *sync);
    /* The factors of dense layers that it needs besides the gradients; NULL:
     * none.  They are complete when the first of their parameters is ready. */
    pl_factors *(*factors)(pl_sync *sync);
    /* Parameters are about to be evaluated or saved; *step: the step they are
     * from.  `over`: after the last step, so wait for the final parameters. */
    pl_status (*pause)(pl_sync *sync, bool over, int64_t *step);
    /* For the chief, before a step: a checkpoint will follow the step.  What is
     * due is known when the step begins. */
    void (*save_follows)(pl_sync *sync);
    /* A worker other than the chief begins or ends a test of its parameters
     * while the job continues. */
    void (*testing)(pl_sync *sync, int64_t step, bool begins);
    /* An operator of this worker's step has finished: shows that a long step
     * makes progress.  `sync` is the pl_sync.  Cheap; from any thread. */
    void (*progress)(void *sync);
    /* End the job for all workers. */
    pl_status (*stop)(pl_sync *sync, const char *why);
    /* Bytes sent and received over its connections so far; cheap. */
    void (*traffic)(const pl_sync *sync, int64_t *sent_bytes,
                    int64_t *received_bytes);
    /* This worker failed. */
    void (*abort)(pl_sync *sync, const char *why);

    /* Optional groups, see above. */
    const pl_sync_local *local; /* NULL: updates are not local */
    const pl_sync_keyed *keyed; /* NULL: all parameters are local */
    const pl_sync_data *data;   /* NULL: the data changes only when all join */
} pl_sync_ops;

struct pl_sync {
    const pl_sync_ops *ops;
};

#endif
