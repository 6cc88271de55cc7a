/* sync.h - the training loop's way to parameter servers (train/sync.h).
 *
 * Gradients leave as they are ready, parameters are waited for when they are
 * needed.  A second thread, the heartbeat, tells server 0 every second that
 * this task lives and what it does, and notices when server 0 does not answer.
 *
 * Threads: as pl_sync; the heartbeat is its own. */
#ifndef PL_SYNC_PS_SYNC_H
#define PL_SYNC_PS_SYNC_H

#include "job/cluster/cluster.h"
#include "state/snapshot.h"
#include "sync/codec.h"
#include "sync/ps/server.h"
#include "train/loop/due.h"
#include "train/loop/first.h"
#include "train/sync.h"

typedef struct pl_ps_sync pl_ps_sync;

typedef struct pl_ps_sync_opts {
    const pl_cluster *cluster; /* with addresses; all is borrowed */
    pl_task task;
    uint64_t job;    /* the chief's: a number of the job; default: none */
    const char *run; /* the chief's: its run folder, for the others; or NULL */
    pl_ps_mode mode;
    bool backup; /* sync: a step needs fewer gradients than workers */
    bool still;  /* async, ssp: no worker goes on while the chief tests */
    pl_due_steps tests; /* ... nor passes the step of a test before it; by
                           steps alone */
    bool deals; /* sync: the job goes on without lost workers, and the others
                   read their share of the data from the next epoch on */
    const pl_transport *transport; /* as pl_endpoint_opts.transport */
    const pl_job_keys *keys;       /* NULL: no authentication */
    int64_t heartbeat_ms;          /* default 5000 */
    int64_t join_ms;               /* default 600000 */
    int64_t rejoin_ms;             /* default 60000 */
    int64_t end_step;  /* updates of the job; 0: the workers end it */
    int64_t run_steps; /* the same, as the schedule counts */
    const pl_json *settings;
    const pl_codec *codec; /* of dense gradients; default plain */
    pl_params *params;
    double average_rate;          /* of the running averages among them */
    const pl_network *sparse;     /* whose parameters these are, without
                                     memory: the servers have it; NULL: dense */
    uint64_t seed;                /* sparse: of the first parameters */
    pl_snapshot *snapshot;        /* the chief's; NULL: nothing is saved */
    const atomic_bool *interrupt; /* while waiting to join; or NULL */
    /* Optional: this task is a member of the job now. */
    void (*joined)(void *context);
    /* Optional: the chief has come, too; called once, with the job's number
     * and the chief's run folder (a path of its host), before the first step.
     */
    void (*located)(void *context, uint64_t job, const char *run);
    /* This task's report, as JSON text of pl_mem; called once, at the end. */
    pl_status (*report)(void *context, char **text);
    void *context;
} pl_ps_sync_opts;

pl_status pl_ps_sync_new(pl_ps_sync **out,
                         const pl_ps_sync_opts *opts) PL_MUST_CHECK;
pl_sync *pl_ps_sync_base(pl_ps_sync *sync); /* freed by its ops */

typedef struct pl_ps_sync_view {
    int64_t step;
    int64_t made; /* gradients of this worker that were applied */
    int64_t dropped;
    double coding_seconds; /* spent encoding gradients */
    double update_seconds; /* at the end, the chief's: first to last update */
    const char *reports;   /* likewise: JSON array, one a worker */
    int64_t sent_bytes, received_bytes;
    int64_t busy_ns; /* of a ring: its link to the next worker; -1: not known */
    int64_t sent_messages, received_messages; /* -1: not known */
    pl_skew skew;                             /* of server 0's clock */
    bool shared; /* memory is shared with server 0 */
    bool over;   /* the last answer said so */
    bool broken; /* ... since someone was interrupted */
} pl_ps_sync_view;
pl_ps_sync_view pl_ps_sync_look(const pl_ps_sync *sync);
/* What went over the connection to one server. */
pl_endpoint_counts pl_ps_sync_link(const pl_ps_sync *sync, int32_t ps);

/* Sparse: read floats of the block from the servers that have them. */
pl_status pl_ps_sync_read(pl_ps_sync *sync, int64_t first, int64_t count,
                          float *to) PL_MUST_CHECK;

/* The evaluator: wait for parameters of `step` or later; look() tells which
 * they are and whether there will be more.  Rejoins when the job restarts,
 * or when server 0 was silent. */
pl_status pl_ps_sync_pull(pl_ps_sync *sync, int64_t step) PL_MUST_CHECK;
/* ... and, when there will be no more, say goodbye; also to a server that has
 * gone before it could answer. */
pl_status pl_ps_sync_leave(pl_ps_sync *sync) PL_MUST_CHECK;

#endif
