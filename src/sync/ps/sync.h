/* sync.h - the sync strategy (train/sync.h) with parameter servers.
 *
 * Gradients are sent as they become ready, and parameters are awaited when they
 * are needed.  A second thread, the heartbeat, reports to server 0 every second
 * what this task does, and detects when server 0 does not answer.
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
    const pl_cluster *cluster; /* with addresses; all pointers are borrowed */
    pl_task task;
    uint64_t job;    /* the chief's: the number of the job; default: none */
    const char *run; /* the chief's: its run folder, for the others; or NULL */
    pl_ps_mode mode;
    bool backup; /* sync: a step needs fewer gradients than workers */
    bool still;  /* async, ssp: no worker continues while the chief tests */
    pl_due_steps tests; /* ... nor passes the step of a test before the test;
                           tests due by steps only */
    bool deals; /* sync: the job continues without lost workers, and the others
                   read their data share from the next epoch on */
    const pl_transport *transport; /* as pl_endpoint_opts.transport */
    const pl_job_keys *keys;       /* NULL: no authentication */
    int64_t heartbeat_ms;          /* default 5000 */
    int64_t join_ms;               /* default 600000 */
    int64_t rejoin_ms;             /* default 60000 */
    int64_t end_step;  /* updates of the job; 0: the workers end it */
    int64_t run_steps; /* the same, as counted by the schedule */
    const pl_json *settings;
    const pl_codec *codec; /* of dense gradients; default plain */
    pl_params *params;
    double average_rate;          /* of the running averages among them */
    const pl_network *sparse;     /* the network of these parameters, without
                                     memory: the servers hold them; NULL:
                                     dense */
    uint64_t seed;                /* sparse: of the first parameters */
    pl_snapshot *snapshot;        /* the chief's; NULL: nothing is saved */
    const atomic_bool *interrupt; /* while waiting to join; or NULL */
    /* Optional: this task has become a member of the job. */
    void (*joined)(void *context);
    /* Optional: the chief has joined, too; called once, before the first step,
     * with the job's number and the chief's run folder (a path on its host). */
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
    const char *reports;   /* likewise: JSON array, one report per worker */
    int64_t sent_bytes, received_bytes;
    int64_t busy_ns; /* of a ring: its link to the next worker; -1: unknown */
    int64_t sent_messages, received_messages; /* -1: unknown */
    pl_skew skew;                             /* of server 0's clock */
    bool shared; /* memory is shared with server 0 */
    bool over;   /* according to the last answer */
    bool broken; /* ... because a task was interrupted */
} pl_ps_sync_view;
pl_ps_sync_view pl_ps_sync_look(const pl_ps_sync *sync);
/* The traffic of the connection to one server. */
pl_endpoint_counts pl_ps_sync_link(const pl_ps_sync *sync, int32_t ps);

/* Sparse: read floats of the block from the servers that have them. */
pl_status pl_ps_sync_read(pl_ps_sync *sync, int64_t first, int64_t count,
                          float *to) PL_MUST_CHECK;

/* The evaluator: wait for parameters of `step` or later; look() returns their
 * step and whether there will be more.  Rejoins when the job restarts, or when
 * server 0 was silent. */
pl_status pl_ps_sync_pull(pl_ps_sync *sync, int64_t step) PL_MUST_CHECK;
/* ... and, when there will be no more, say goodbye; succeeds also if the server
 * ended before it answered. */
pl_status pl_ps_sync_leave(pl_ps_sync *sync) PL_MUST_CHECK;

#endif
