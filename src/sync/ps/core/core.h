/* core.h - the logic of one parameter server, without input or output.
 *
 * Calls pass in messages and the time, a callback sends messages, and the
 * optimizer is applied in place.  The core never blocks and uses no sockets:
 * the server (server.h) connects it to the network, and the simulator runs
 * whole jobs of cores under a seed.
 *
 * Server 0 is the coordinator: it assigns each joining task its incarnation,
 * monitors the tasks, decides whose gradients make a step, which workers may
 * continue and when the job ends.  The other servers hold their partition of
 * the parameters and follow its decisions.
 *
 * Threads: one core, one thread. */
#ifndef PL_SYNC_PS_CORE_CORE_H
#define PL_SYNC_PS_CORE_CORE_H

#include "base/clock.h"
#include "base/host/skew.h"
#include "base/json/json.h"
#include "base/record/report.h"
#include "base/record/trace.h"
#include "job/cluster/cluster.h"
#include "net/endpoint.h"
#include "sync/codec.h"
#include "sync/ps/messages/join.h"
#include "sync/ps/messages/protocol.h"
#include "train/optim/optim.h"
#include "train/optim/schedule.h"

typedef struct pl_ps_core pl_ps_core;

/* A server's shard of a checkpoint. */
typedef struct pl_ps_part {
    bool done; /* written, or failed */
    pl_saved outcome;
    int64_t bytes; /* of its file */
    uint32_t crc32c;
} pl_ps_part;

typedef struct pl_ps_core_ops {
    /* `lasting`: the payload is a part of the parameters, whose address does
     * not change; otherwise it must be copied. */
    void (*send)(void *context, pl_peer to, const pl_frame *frame,
                 const void *payload, bool lasting);
    /* Optional: a worker (or another server) is lost; the supervisor may
     * restart it. */
    void (*lost)(void *context, bool server, int32_t index);
    /* Optional: the resources used by this process so far; default: unknown. */
    void (*usage)(void *context, pl_task_report *out);
    /* Optional: answer an offer of shared memory; default: none. */
    void (*accept)(void *context, pl_peer from, const char *offer,
                   char answer[PL_OFFER_BYTES]);

    /* Checkpoints; optional, all or none.  The first three begin an operation
     * whose end is reported later by pl_ps_core_stored; false: a cancelled
     * operation has not ended yet, and the call is repeated.  The chief makes
     * the plan (state/partition.h).
     *
     * Write this server's shard in its current state. */
    bool (*save)(void *context, const char *plan, size_t bytes);
    /* Server 0: all shards are written, complete the checkpoint. */
    bool (*commit)(void *context, const pl_ps_part *parts);
    /* Read this server's shard. */
    bool (*load)(void *context, const char *plan, size_t bytes);
    /* Cancel the operation under way; its end is not reported. */
    void (*cancel)(void *context);
    /* These floats of the partition are about to change: true when they may,
     * false when a save must make progress first (pl_ps_core_held). */
    bool (*touch)(void *context, int64_t first, int64_t count);
} pl_ps_core_ops;

typedef struct pl_ps_core_opts {
    int32_t index; /* of this server */
    int32_t ps;    /* servers; required */
    int32_t workers;
    bool evaluator; /* the job has one */
    bool named_chief;

    pl_ps_mode mode;
    int32_t replicas;  /* sync: gradients that make a step; default: all */
    int32_t staleness; /* ssp */
    bool sum;          /* sync: add gradients instead of averaging them */
    int64_t end_step;  /* updates of the job; 0: until the workers are done */

    pl_on_loss on_loss;
    int64_t heartbeat_ms; /* silence that means lost; default 5000 */
    int64_t rejoin_ms;    /* default 60000 */
    int64_t join_ms;      /* default 600000 */
    bool supervised;      /* lost workers are restarted by a supervisor */
    bool held;            /* stay at the end until pl_ps_core_stop */

    int64_t floats;              /* of the whole block; 0: unchecked */
    int64_t first, count;        /* this server's partition of it */
    int64_t piece;               /* floats; default PL_PIECE_FLOATS */
    float *params;               /* [count]; borrowed like all pointers */
    const pl_codec *codec;       /* of dense gradients; default plain */
    float *encoded;              /* [count] for parameters that it encodes;
                                    NULL: they are sent as floats */
    pl_optim *optim;             /* over `count` elements */
    int64_t table_first;         /* of sparse weights: its place in the... */
    int64_t table_count;         /* ... whole block; 0: all is dense */
    float *answers;              /* sparse: memory for answers, possibly... */
    int64_t answer_floats;       /* ... shared: for each worker and the
                                    evaluator */
    const pl_schedule *schedule; /* required */
    const pl_kernels *kernels;   /* required */
    const pl_json *settings;     /* what all tasks must agree on, or NULL */
    uint32_t life;               /* of server 0's process: differs for each */
    const char *address;         /* where this server listens, for messages */
    int64_t process;             /* its process id there... */
    int64_t started_ms;          /* ... and start since boot; 0: unknown */
    char boot[PL_BOOT_ID];       /* of the machine, "": unknown */
    const char *coordinator;     /* where server 0 listens */
    pl_trace *trace;             /* updates go to lane 0; or NULL */
    const pl_ps_core_ops *ops;
    void *context;
} pl_ps_core_opts;

pl_status pl_ps_core_new(pl_ps_core **out, const pl_ps_core_opts *opts,
                         int64_t now_ns) PL_MUST_CHECK;
void pl_ps_core_free(pl_ps_core *core); /* NULL is fine */

/* Check whether the sender of this JOIN may be a task of the job: its role and
 * index exist, its principal `who` permits them, and its settings are the same.
 * *member is its number: workers first, then the evaluator, then servers.
 * PL_USAGE, or PL_FORMAT, with a message for the task.  Only the job
 * description in `opts` is used: a server calls this before it has a core. */
pl_status pl_ps_join_check(const pl_ps_core_opts *opts,
                           const pl_ps_join_text *join, pl_principal who,
                           int32_t *member) PL_MUST_CHECK;

/* Handle a received message; nothing in it is trusted. */
void pl_ps_core_receive(pl_ps_core *core, const pl_message *message,
                        int64_t now_ns);
/* Time has passed; call it every PL_TICK_MS or so. */
void pl_ps_core_tick(pl_ps_core *core, int64_t now_ns);

/* An operation that the ops began has ended. */
typedef struct pl_ps_stored {
    pl_saved outcome;
    int64_t bytes; /* of a shard that was written */
    uint32_t crc32c;
    const char *why; /* the reason, if it failed */
} pl_ps_stored;
void pl_ps_core_stored(pl_ps_core *core, const pl_ps_stored *stored,
                       int64_t now_ns);
/* An update waits for a save to make progress; retry it now. */
bool pl_ps_core_held(const pl_ps_core *core);
void pl_ps_core_retry(pl_ps_core *core, int64_t now_ns);

/* All tasks were notified of the end and have left: the server may exit. */
bool pl_ps_core_finished(const pl_ps_core *core);
/* PL_OK, or why the job failed; PL_INTERRUPTED: before it had parameters. */
pl_status pl_ps_core_outcome(const pl_ps_core *core) PL_MUST_CHECK;
/* This worker will not rejoin once it is lost: do not wait for it. */
void pl_ps_core_gone(pl_ps_core *core, int32_t worker);
/* End the job from here: the server itself was interrupted, or failed. */
void pl_ps_core_stop(pl_ps_core *core, bool failed, const char *why);

typedef struct pl_ps_core_view {
    int64_t step;       /* updates made */
    int64_t updates;    /* ... by this server since it was started */
    int64_t accepted;   /* gradients that were used in updates... */
    int64_t behind;     /* ... and the sum over them of the updates made since
                           their parameters were read */
    int64_t dropped;    /* gradients that arrived too late */
    int64_t duplicates; /* pieces received more than once */
    int64_t first_update_ns, last_update_ns;
    int32_t lost; /* times a worker was lost */
    bool mixed;   /* some step lacked a worker's gradient, or the codec lost
                     what it had held back */
    bool initialized;
    uint32_t generation;
    bool stopping;             /* no more gradients are accepted */
    int64_t applied_of_worker; /* gradients of the share of the worker
                                  queried */
    int64_t pace_of_worker;    /* ssp: its clock */
    pl_skew skew;              /* of server 0's clock, elsewhere */
    const char *run;  /* the chief's run folder, a path on the chief's host;
                         valid until the next message.  NULL: unknown */
    uint64_t run_job; /* the job of that folder */
} pl_ps_core_view;
pl_ps_core_view pl_ps_core_look(const pl_ps_core *core, int32_t worker);

#endif
