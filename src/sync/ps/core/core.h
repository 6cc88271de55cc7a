/* core.h - the logic of one parameter server, without input or output.
 *
 * Messages and the time come in by calls, messages go out by a callback, the
 * optimizer is applied in place.  It never waits and knows no socket: the
 * server (server.h) wraps it around the network, the simulator runs whole
 * jobs of it under a seed.
 *
 * Server 0 is the coordinator: it gives each joining task its incarnation,
 * watches over the living, decides whose gradients make a step, who may go on
 * and when the job ends.  The other servers hold their part of the parameters
 * and follow.
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

/* A server's part of a checkpoint. */
typedef struct pl_ps_part {
    bool done; /* written, or failed */
    pl_saved outcome;
    int64_t bytes; /* of its file */
    uint32_t crc32c;
} pl_ps_part;

typedef struct pl_ps_core_ops {
    /* `lasting`: the payload is a part of the parameters, which stay where
     * they are; else it must be copied. */
    void (*send)(void *context, pl_peer to, const pl_frame *frame,
                 const void *payload, bool lasting);
    /* Optional: a worker (or another server) is lost; the supervisor may
     * restart it. */
    void (*lost)(void *context, bool server, int32_t index);
    /* Optional: what this process has used so far; default: not known. */
    void (*usage)(void *context, pl_task_report *out);
    /* Optional: answer an offer of shared memory; default: none. */
    void (*accept)(void *context, pl_peer from, const char *offer,
                   char answer[PL_OFFER_BYTES]);

    /* Checkpoints; optional, all or none.  The first three begin something
     * that ends by a call of pl_ps_core_stored, later; false: something that
     * was cancelled has not ended yet, and they are called again.  A plan is
     * the chief's (state/partition.h).
     *
     * Write this server's part as it is now. */
    bool (*save)(void *context, const char *plan, size_t bytes);
    /* Server 0: all parts are written, complete the checkpoint. */
    bool (*commit)(void *context, const pl_ps_part *parts);
    /* Read this server's part. */
    bool (*load)(void *context, const char *plan, size_t bytes);
    /* What is under way is of no use any more; it is not heard of again. */
    void (*cancel)(void *context);
    /* These floats of the part are about to change: true when they may, false
     * when a save must come further first (pl_ps_core_held). */
    bool (*touch)(void *context, int64_t first, int64_t count);
} pl_ps_core_ops;

typedef struct pl_ps_core_opts {
    int32_t index; /* of this server */
    int32_t ps;    /* servers; required */
    int32_t workers;
    bool evaluator; /* one may come */
    bool named_chief;

    pl_ps_mode mode;
    int32_t replicas;  /* sync: gradients that make a step; default: all */
    int32_t staleness; /* ssp */
    bool sum;          /* sync: add gradients, do not average */
    int64_t end_step;  /* updates of the job; 0: until the workers are done */

    pl_on_loss on_loss;
    int64_t heartbeat_ms; /* silence that means lost; default 5000 */
    int64_t rejoin_ms;    /* default 60000 */
    int64_t join_ms;      /* default 600000 */
    bool supervised;      /* lost workers are restarted by a supervisor */
    bool held;            /* stay at the end until pl_ps_core_stop */

    int64_t floats;              /* of the whole block; 0: not compared */
    int64_t first, count;        /* this server's part of it */
    int64_t piece;               /* floats; default PL_PIECE_FLOATS */
    float *params;               /* [count]; the rest is borrowed, too */
    const pl_codec *codec;       /* of dense gradients; default plain */
    float *encoded;              /* [count] for parameters that it encodes;
                                    NULL: they are sent as floats */
    pl_optim *optim;             /* over `count` elements */
    int64_t table_first;         /* of sparse weights: its place in the... */
    int64_t table_count;         /* ... whole block; 0: all is dense */
    float *answers;              /* sparse: memory for answers, shared... */
    int64_t answer_floats;       /* ... perhaps: of each worker and the
                                    evaluator */
    const pl_schedule *schedule; /* required */
    const pl_kernels *kernels;   /* required */
    const pl_json *settings;     /* what all tasks must agree on, or NULL */
    uint32_t life;               /* of server 0's process: any two differ */
    const char *address;         /* where this server listens, for messages */
    int64_t process;             /* its number there... */
    int64_t started_ms;          /* ... and start since boot; 0: unknown */
    char boot[PL_BOOT_ID];       /* of the machine, "": unknown */
    const char *coordinator;     /* where server 0 does */
    pl_trace *trace;             /* lane 0 of it: updates; or NULL */
    const pl_ps_core_ops *ops;
    void *context;
} pl_ps_core_opts;

pl_status pl_ps_core_new(pl_ps_core **out, const pl_ps_core_opts *opts,
                         int64_t now_ns) PL_MUST_CHECK;
void pl_ps_core_free(pl_ps_core *core); /* NULL is fine */

/* May the task that sent this JOIN be one of the job: are its role and number
 * there, does `who` it proved to be speak for it, has it the same settings?
 * *member is its number: workers, the evaluator, servers.  PL_USAGE, or
 * PL_FORMAT, with a sentence for the task.  Of `opts` only the description of
 * the job is looked at: a server asks before it has a core. */
pl_status pl_ps_join_check(const pl_ps_core_opts *opts,
                           const pl_ps_join_text *join, pl_principal who,
                           int32_t *member) PL_MUST_CHECK;

/* A message has come; nothing in it is trusted. */
void pl_ps_core_receive(pl_ps_core *core, const pl_message *message,
                        int64_t now_ns);
/* Time has passed; call it every PL_TICK_MS or so. */
void pl_ps_core_tick(pl_ps_core *core, int64_t now_ns);

/* What the ops began has ended. */
typedef struct pl_ps_stored {
    pl_saved outcome;
    int64_t bytes; /* of a part that was written */
    uint32_t crc32c;
    const char *why; /* it failed */
} pl_ps_stored;
void pl_ps_core_stored(pl_ps_core *core, const pl_ps_stored *stored,
                       int64_t now_ns);
/* An update waits for a save to come further; retry it now. */
bool pl_ps_core_held(const pl_ps_core *core);
void pl_ps_core_retry(pl_ps_core *core, int64_t now_ns);

/* Everyone was told and has left: the server may go. */
bool pl_ps_core_finished(const pl_ps_core *core);
/* PL_OK, or why the job failed; PL_INTERRUPTED: before it had parameters. */
pl_status pl_ps_core_outcome(const pl_ps_core *core) PL_MUST_CHECK;
/* This worker does not come back once it is lost: its return is not waited
 * for. */
void pl_ps_core_gone(pl_ps_core *core, int32_t worker);
/* End the job from here: the server itself was interrupted, or failed. */
void pl_ps_core_stop(pl_ps_core *core, bool failed, const char *why);

typedef struct pl_ps_core_view {
    int64_t step;       /* updates made */
    int64_t updates;    /* ... by this server since it was started */
    int64_t accepted;   /* gradients that updates were made of... */
    int64_t behind;     /* ... and the updates that others made before each,
                           since its parameters were read; their sum */
    int64_t dropped;    /* gradients that came too late */
    int64_t duplicates; /* pieces that came again */
    int64_t first_update_ns, last_update_ns;
    int32_t lost; /* times a worker was lost */
    bool mixed;   /* some step had other contributors than all, or the codec
                     lost what it had kept of gradients */
    bool initialized;
    uint32_t generation;
    bool stopping;             /* no more gradients are taken */
    int64_t applied_of_worker; /* gradients of the share asked for */
    int64_t pace_of_worker;    /* ssp: its clock */
    pl_skew skew;              /* of server 0's clock, elsewhere */
    const char *run;  /* the chief's run folder, as the chief told: a path of
                         its host; until the next message.  NULL: unknown */
    uint64_t run_job; /* whose folder that is */
} pl_ps_core_view;
pl_ps_core_view pl_ps_core_look(const pl_ps_core *core, int32_t worker);

#endif
