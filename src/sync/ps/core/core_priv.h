/* core_priv.h - what the files of the core share.
 *
 * core.c     the object: its creation, its end, how it sends
 * request.c  requests: arrival of pieces, answers, dispatch
 * update.c   the update of combined gradients; which requests may be answered
 * members.c  joining, heartbeats, leaving
 * watch.c    server 0: losses and the end of the job
 * follow.c   how the other servers follow server 0
 * save.c     checkpoints: begun, written, complete, read
 * share.c    async, ssp: which data share a worker reads
 * deal.c     the same for sync, epoch by epoch
 * report.c   what is sent to the chief only
 *
 * How gradients become updates is in modes/, sparse parameters in store/. */
#ifndef PL_SYNC_PS_CORE_CORE_PRIV_H
#define PL_SYNC_PS_CORE_CORE_PRIV_H

#include "base/text/burst.h"
#include "job/member/liveness.h"
#include "sync/ps/core/core.h"
#include "sync/ps/messages/join.h"
#include "sync/ps/messages/messages.h"
#include "sync/ps/messages/pieces.h"
#include "train/loop/deal.h"
#include "train/loop/due.h"

#define PL_MEMBER_TEXT 160
/* Floats combined and updated at a time: they stay in the L1 cache. */
#define PL_UPDATE_FLOATS 2048

typedef enum pl_member_state {
    PL_MEMBER_ABSENT, /* has not joined yet */
    PL_MEMBER_HERE,
    PL_MEMBER_LOST,
    PL_MEMBER_LEFT, /* said goodbye */
} pl_member_state;

/* The state of a request. */
typedef enum pl_stage {
    PL_STAGE_NONE,
    PL_STAGE_ARRIVING, /* pieces are missing */
    PL_STAGE_WAITING,  /* complete; the answer is not due */
    PL_STAGE_ANSWERED,
    PL_STAGE_VOID, /* its task has rejoined since */
} pl_stage;

/* This server's state of another task. */
typedef struct pl_member {
    pl_member_state state;
    uint32_t incarnation;
    pl_peer peer;
    pl_liveness life;
    int64_t lost_ns;
    bool gone;      /* lost and will not rejoin, says the supervisor */
    bool dismissed; /* its goodbye was answered: the process has ended */
    char where[PL_MEMBER_TEXT]; /* "host, process 123" */
    int64_t started_ms;         /* that process, since boot there */
    char boot[PL_BOOT_ID];
    bool told_usage;
    bool told_final;      /* sent its final usage, after the end of the job */
    pl_task_report usage; /* as last reported; memory: the maximum over its
                             processes */

    /* The current request. */
    uint64_t sequence; /* 0: none since it joined */
    pl_ps_request request;
    pl_stage stage;
    pl_pieces in;
    pl_stream out;
    uint8_t answer; /* PL_ANSWER_ */
    int64_t answer_step;

    const float *gradient; /* [count], complete when `fresh` */
    pl_lease *lease;       /* the memory in which the gradient lies; or NULL */
    float *staging;        /* memory for a copy of it, if needed */
    bool fresh;            /* sync: belongs to this step, not yet used; async:
                              not yet settled */
    uint64_t pushed;       /* async: the request that pushed it */
    bool paused;           /* the chief evaluates */
    bool granted;          /* may make one more gradient (pl_core_grant) */
    bool unwanted;         /* async: the current gradient was not needed */
    int64_t own;           /* applied gradients of its share, by any worker */
    int64_t made;          /* ... and of any share, by this worker */
    int64_t pace;          /* ssp: its clock */
    int32_t reads;         /* the worker whose share it reads; -1: taken over */
    int32_t reader;        /* the worker that reads its share; -1: none */
    double held_s;         /* sync, server 0: seconds in which only its gradient
                              was missing... */
    double held_squares;   /* ... the sum of the squares of these times */
    int64_t dropped;
    bool held;          /* async: its gradient waits until it may be applied */
    int32_t counts_for; /* ... as a gradient of this share; not at server 0 */
    /* Server 0, async: its requests up to `settled` are settled; `applied` is
     * the last gradient that was applied. */
    uint64_t settled;
    /* Server 0: have_count other servers have the complete gradient of this
     * step (async: request). */
    int64_t have_of;
    int32_t have_count;
    uint32_t applied_incarnation;
    uint64_t applied;
    int32_t applied_share;
    char *report;
    size_t report_bytes;
} pl_member;

/* The operation of the checkpoint ops that is under way. */
typedef enum pl_storing {
    PL_STORING_NOTHING,
    PL_STORING_PART,
    PL_STORING_MANIFEST,
    PL_STORING_LOAD,
} pl_storing;

typedef struct pl_core_save {
    pl_storing storing;
    /* The plan and counts of the chief's request, until it begins; the counts
     * are kept until a load ends. */
    char *plan;
    size_t plan_bytes;
    int64_t *counts; /* [workers] */
    int64_t loading; /* the step of the checkpoint being loaded */

    int64_t number, step; /* of the current or last save */
    bool tell;            /* another server: our shard is to be reported to
                             server 0 */
    pl_ps_part own;
    bool held; /* an update waits */
    /* Server 0. */
    bool active;       /* neither complete nor given up */
    bool all_begun;    /* the chief was notified of that */
    pl_ps_part *parts; /* [ps] */
    pl_saved outcome;  /* of the last one */
    char why[400];
} pl_core_save;

typedef struct pl_ps_table pl_ps_table;
typedef struct pl_ps_mode_ops pl_ps_mode_ops;
typedef struct pl_ps_store_ops pl_ps_store_ops;

struct pl_ps_core {
    pl_ps_core_opts opts;
    const pl_ps_mode_ops *mode;
    const pl_ps_store_ops *store;
    pl_ps_table *table; /* the keyed store's own */
    /* Workers, then the evaluator, then servers (at server 0). */
    pl_member *members;
    int32_t member_count;
    int32_t here; /* workers that are PL_MEMBER_HERE */
    /* Server 0: [workers][ps], the step (async: the request) of the gradient
     * that is complete there. */
    int64_t *have;
    /* Server 0: gradients that are complete on all servers, and how many a step
     * needs; grants in use.  Updated with each message, so that a message takes
     * O(1). */
    int64_t arrived_ns; /* sync, server 0: when the last gradient arrived; 0:
                           none */
    int32_t ready_count, needed;
    int32_t grants;
    /* Server 0, async and ssp: the chief's tests that affect training, and the
     * step of the next one; 0: to be computed from the step. */
    pl_due_steps tests;
    int64_t test_step;
    /* ssp: the clock of the slowest worker, and how many workers have it. */
    bool slowest_known;
    int64_t slowest;
    int32_t slowest_count;
    /* Hints: the member of a peer, and of an incarnation. */
    int32_t *by_peer, *by_incarnation;
    uint32_t guess_mask;
    /* Dense: the version of the parameters, and for each piece the version at
     * which it was encoded; NULL: pieces are not encoded. */
    int64_t version;
    int64_t *encoded_at;
    float *sum; /* [PL_UPDATE_FLOATS] of combined gradients */
    const float **gradients;
    uint8_t *chosen;  /* [workers]: whose gradients made the last step */
    uint64_t job;     /* 0: unknown */
    char *run;        /* the chief's run folder; NULL: unknown */
    uint64_t run_job; /* whose folder that is */
    bool claimed;     /* the chief has confirmed the job */
    uint32_t generation;
    uint32_t restarted; /* the last generation whose absent tasks were declared
                           lost */
    uint32_t base_incarnation, last_incarnation; /* assigned numbers are between
                                                    these */
    int32_t rejoins;                             /* workers that rejoined */
    int64_t step;
    int64_t now_ns, begin_ns, said_ns;
    bool initialized;
    bool ready;       /* server 0: all servers are; parameters may be used */
    bool stopping;    /* no more gradients */
    bool interrupted; /* ... because a task was interrupted */
    bool failed;
    bool frozen;            /* no worker continues while the chief saves */
    bool reported;          /* server 0: the chief has received all reports */
    int64_t asked_usage_ns; /* server 0: when it requested the usage of all
                               tasks */
    bool told;              /* server 0: the others were notified of the end */
    bool dismissed;         /* by the supervisor: no task will rejoin */
    /* Server 0: a server that joined after the chief left, and so has no
     * parameters. */
    const pl_member *hollow;
    bool finished;
    char why[512];
    pl_ps_core_view counts;
    pl_burst refusals; /* in the log */
    pl_core_save save;
    /* Server 0, sync: the last deal of the data, and the previous one, which
     * applies until the step of the last one. */
    pl_deal deal, deal_before;
    int64_t dealt_step; /* deals are decided up to here */
    /* A server other than 0: its membership at server 0. */
    uint32_t own_incarnation; /* 0: not joined */
    bool ever_joined;
    uint64_t own_sequence; /* of its requests */
    bool wants_stop;       /* it was interrupted: server 0 must be notified */
    int64_t asked_ns;      /* when it last sent to server 0 */
    uint64_t heartbeats;   /* sent to server 0, and when the last one was
                              sent */
    int64_t heartbeat_ns;
    int64_t coordinator_ns; /* when it last received from server 0 */
};

/* Until this request is answered its worker makes no gradients: it waits until
 * all other workers are done. */
static inline bool pl_core_idles(const pl_ps_request *request)
{
    return (request->kind == PL_REQUEST_SHARE && request->share.wait) ||
           (request->kind == PL_REQUEST_PULL &&
            (request->pull.flags & PL_PULL_FINAL) != 0);
}

static inline bool pl_core_leads(const pl_ps_core *core)
{
    return core->opts.index == 0;
}

/* Whether the parameters may be used. */
static inline bool pl_core_has_parameters(const pl_ps_core *core)
{
    return pl_core_leads(core) ? core->ready : core->initialized;
}

/* The process of server 0 that assigned an incarnation. */
static inline uint32_t pl_core_life(uint32_t incarnation)
{
    return incarnation & 0x7fff0000u;
}

/* Whether this server assigned that incarnation. */
static inline bool pl_core_gave(const pl_ps_core *core, uint32_t incarnation)
{
    return incarnation > core->base_incarnation &&
           incarnation <= core->last_incarnation;
}

/* The resources that this process has used so far. */
static inline pl_task_report pl_core_usage(const pl_ps_core *core)
{
    pl_task_report report;
    pl_task_report_clear(&report);
    if (core->opts.ops->usage != NULL)
        core->opts.ops->usage(core->opts.context, &report);
    return report;
}

int32_t pl_core_id(const pl_ps_core *core, const pl_member *member);
bool pl_core_is_worker(const pl_ps_core *core, const pl_member *member);
void pl_core_set_state(pl_ps_core *core, pl_member *member,
                       pl_member_state state);
/* "worker 1", "evaluator", "ps 2" */
const char *pl_core_name(const pl_ps_core *core, const pl_member *member,
                         char text[32]);

/* Mark the frame as from or to this incarnation of a task. */
static inline pl_frame pl_core_stamp(pl_frame frame, uint32_t incarnation)
{
    frame.incarnation = incarnation;
    return frame;
}

void pl_core_send(pl_ps_core *core, pl_peer to, pl_frame frame,
                  const void *payload, bool lasting);
void pl_core_send_text(pl_ps_core *core, pl_peer to, pl_frame frame,
                       const char *text);
/* Release leases whose memory no longer holds a needed gradient. */
void pl_core_end_leases(pl_ps_core *core);
/* Copy a gradient that lies in another task's memory. */
void pl_core_keep(pl_ps_core *core, pl_member *member);
/* Discard the current request: a new incarnation starts from scratch. */
void pl_core_forget(pl_ps_core *core, pl_member *member);
/* The request is done: send the parameters, or an ACK. */
void pl_core_answer(pl_ps_core *core, pl_member *member, unsigned flags);
/* Send an answer to the current request. */
void pl_core_reply(pl_ps_core *core, const pl_member *member, pl_frame frame,
                   const void *payload, bool lasting);
void pl_core_reply_text(pl_ps_core *core, const pl_member *member,
                        pl_frame frame, const char *text);
/* Discard parameters and requests: all tasks rejoin in `generation`. */
void pl_core_reset(pl_ps_core *core, uint32_t generation);
/* What workers held back of their gradients no longer matches the parameters: a
 * worker is a new process, or steps are repeated.  Some codecs hold nothing
 * back. */
void pl_core_lose_residuals(pl_ps_core *core);
/* End the job for all tasks; `failed`: send the reason and give up. */
void pl_core_end(pl_ps_core *core, bool failed, const char *format, ...)
    PL_PRINTF(3, 4);

/* Also when the job was about to end: no task will rejoin. */
void pl_core_note_interrupt(pl_ps_core *core);

/* update.c */
/* PL_ANSWER_STOP, with PL_ANSWER_BROKEN if interrupted, when no further
 * gradient is accepted; otherwise 0. */
unsigned pl_core_stop_flag(const pl_ps_core *core);
pl_status pl_core_update_init(pl_ps_core *core) PL_MUST_CHECK;
void pl_core_update_close(pl_ps_core *core);
void pl_core_gradient(pl_ps_core *core, pl_member *member);
/* Notify server 0 that this worker's gradient is complete here. */
void pl_core_send_have(pl_ps_core *core, int32_t worker);
void pl_core_on_have(pl_ps_core *core, const pl_member *from,
                     const pl_message *message);
/* Server 0: server `ps` has the gradient of step `number` (async: request). */
void pl_core_note_have(pl_ps_core *core, int32_t worker, int32_t ps,
                       int64_t number);
/* Whether all other servers have it. */
bool pl_core_is_elsewhere(pl_ps_core *core, int32_t worker, int64_t number);
void pl_core_forget_have(pl_ps_core *core, int32_t worker);
/* Grant the worker one more gradient, or end its grant. */
void pl_core_grant(pl_ps_core *core, pl_member *member, bool granted);
/* Combine the gradients of these workers in this order and apply them. */
void pl_core_update(pl_ps_core *core, const int32_t *workers, int32_t count);
/* End a trace span of the next update that began with pl_trace_mark; `bytes`
 * moved, 0: not counted. */
void pl_core_traced(const pl_ps_core *core, const char *name, uint64_t begin,
                    int64_t bytes);
/* Drop the current gradient: count it, and send the answer. */
void pl_core_drop(pl_ps_core *core, pl_member *member);
void pl_core_try_step(pl_ps_core *core);
/* Answer the waiting requests that may be answered now. */
void pl_core_release(pl_ps_core *core);
/* The same for one member's request. */
void pl_core_release_member(pl_ps_core *core, pl_member *member);
/* A worker did something that does not affect other workers: answer it, and the
 * chief or the evaluator, which may have waited for it. */
void pl_core_release_after(pl_ps_core *core, pl_member *member);

/* Whether all workers but the chief have left or will not rejoin. */
bool pl_core_others_done(const pl_ps_core *core);

/* share.c */
void pl_core_begin_share(pl_ps_core *core, pl_member *member);
/* Answer a SHARE request, if possible. */
void pl_core_try_share(pl_ps_core *core, pl_member *member);
void pl_core_send_share(pl_ps_core *core, const pl_member *member);
/* deal.c */
void pl_core_reset_deal(pl_ps_core *core);
void pl_core_begin_deal(pl_ps_core *core, pl_member *member);
void pl_core_send_deal(pl_ps_core *core, const pl_member *member);
/* Let a worker read its own share, even if another worker reads it. */
void pl_core_share_own(pl_ps_core *core, pl_member *member);
/* Server 0: the owner of the share that a worker's gradient belongs to; NULL:
 * another worker took the share over. */
pl_member *pl_core_share_of(pl_ps_core *core, const pl_member *member);

/* save.c */
pl_status pl_core_save_init(pl_ps_core *core) PL_MUST_CHECK;
void pl_core_save_close(pl_ps_core *core);
void pl_core_begin_save(pl_ps_core *core, pl_member *member,
                        const pl_message *message);
void pl_core_begin_load(pl_ps_core *core, pl_member *member,
                        const pl_message *message);
/* Answer or begin the request to save or load, if possible. */
void pl_core_try_store(pl_ps_core *core, pl_member *chief);
/* Answer a request for the status of the last save. */
void pl_core_send_saved(pl_ps_core *core, const pl_member *chief);
/* Server 0 receives the report of another server's shard, and acknowledges
 * it. */
void pl_core_on_saved(pl_ps_core *core, const pl_member *from,
                      const pl_message *message);
void pl_core_saved_heard(pl_ps_core *core, const pl_message *message);
void pl_core_say_saved(pl_ps_core *core);
/* The chief has begun the save on all servers. */
void pl_core_save_begun(pl_ps_core *core);
/* The chief joins: give up a save that it began on some servers only. */
void pl_core_save_abandon(pl_ps_core *core);
/* The job is rolled back. */
void pl_core_save_reset(pl_ps_core *core);
/* Whether the parameters may change now, by the gradient of `member` or, if
 * NULL, of all workers that have one.  If not, save.held is set. */
bool pl_core_may_change(pl_ps_core *core, const pl_member *member);
void pl_core_watch_save(pl_ps_core *core);

/* request.c */
void pl_core_refuse(pl_ps_core *core, const pl_member *member, const char *why);
/* The same for an invalid request: it may be sent again. */
void pl_core_turn_down(pl_ps_core *core, pl_member *member, const char *why);
/* Whether parameters are the answer to the current request. */
bool pl_core_has_params(const pl_member *member);
/* All of a push or of the first parameters has arrived. */
void pl_core_complete(pl_ps_core *core, pl_member *member);
/* Handle a push that needs no data: too late, or already complete.  True:
 * handled. */
bool pl_core_settle_early(pl_ps_core *core, pl_member *member);
void pl_core_ack(pl_ps_core *core, const pl_member *member,
                 pl_ps_ack_kind kind);
/* End the chief's evaluation, if this is the chief. */
void pl_core_end_pause(pl_ps_core *core, pl_member *member);

/* report.c */
/* Read the usage of a process from its heartbeat or goodbye; malformed usage is
 * ignored. */
void pl_core_take_usage(pl_member *member, const pl_message *message);
/* Server 0: the chief has said goodbye, so the job is done: request the usage
 * of the other servers. */
void pl_core_ask_usage(pl_ps_core *core);
/* Whether all other tasks have reported it since, or are no longer waited
 * for. */
bool pl_core_knows_usage(const pl_ps_core *core);
/* Whether that server has yet to report it. */
bool pl_core_wants_usage(const pl_ps_core *core, const pl_member *server);
void pl_core_send_reports(pl_ps_core *core, const pl_member *chief);
void pl_core_send_counts(pl_ps_core *core, const pl_member *chief);

/* members.c */
void pl_core_on_join(pl_ps_core *core, const pl_message *message);
void pl_core_on_heartbeat(pl_ps_core *core, const pl_message *message);
void pl_core_on_bye(pl_ps_core *core, pl_member *member,
                    const pl_message *message);
/* Answer the tasks that said goodbye and may exit. */
void pl_core_answer_goodbyes(pl_ps_core *core);
/* Whether the chief has left and has all reports, or is gone. */
bool pl_core_chief_is_done(const pl_ps_core *core);
void pl_core_reports_heard(pl_ps_core *core);
/* A message of a member that was given up has arrived. */
void pl_core_is_back(pl_ps_core *core, pl_member *member);
bool pl_core_said_goodbye(const pl_member *member);
/* Workers whose gradients a step may wait for. */
int32_t pl_core_active(const pl_ps_core *core);
/* Server 0: all other servers have joined. */
bool pl_core_servers_here(const pl_ps_core *core);
bool pl_core_counts(const pl_ps_core *core, const pl_member *member);

/* watch.c */
void pl_core_watch(pl_ps_core *core);

/* follow.c */
void pl_core_on_coordinator(pl_ps_core *core, const pl_message *message);
/* Join server 0, send heartbeats, repeat what it may have missed. */
void pl_core_follow(pl_ps_core *core);
/* Request server 0 to end the job. */
void pl_core_ask_stop(pl_ps_core *core, bool failed, const char *why);

#endif
