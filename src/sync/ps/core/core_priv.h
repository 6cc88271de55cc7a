/* core_priv.h - what the files of the core share.
 *
 * core.c     the object: its life, its end, how it sends
 * request.c  requests: arrival of pieces, answers, dispatch
 * update.c   the update of combined gradients; which requests may be answered
 * members.c  joining, heartbeats, leaving
 * watch.c    server 0: loss and the end
 * follow.c   the other servers and server 0
 * save.c     checkpoints: begun, written, complete, read
 * share.c    whose examples a worker reads
 * deal.c     the same in sync, epoch by epoch
 * report.c   what only the chief hears
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
/* Floats combined and updated in one go: they stay in the first cache. */
#define PL_UPDATE_FLOATS 2048

typedef enum pl_member_state {
    PL_MEMBER_ABSENT, /* did not join yet */
    PL_MEMBER_HERE,
    PL_MEMBER_LOST,
    PL_MEMBER_LEFT, /* said goodbye */
} pl_member_state;

/* How far a request is. */
typedef enum pl_stage {
    PL_STAGE_NONE,
    PL_STAGE_ARRIVING, /* pieces are still to come */
    PL_STAGE_WAITING,  /* complete; the answer must wait */
    PL_STAGE_ANSWERED,
    PL_STAGE_VOID, /* its task has rejoined since */
} pl_stage;

/* Another task, as this server sees it. */
typedef struct pl_member {
    pl_member_state state;
    uint32_t incarnation;
    pl_peer peer;
    pl_liveness life;
    int64_t lost_ns;
    bool gone;      /* lost, it does not come back: who supervises says so */
    bool dismissed; /* its goodbye was answered: the process has ended */
    char where[PL_MEMBER_TEXT]; /* "host, process 123" */
    int64_t started_ms;         /* that process, since boot there */
    char boot[PL_BOOT_ID];
    bool told_usage;
    bool told_final;      /* ... after the job was done */
    pl_task_report usage; /* told last; the most memory of all its processes */

    /* The request at hand. */
    uint64_t sequence; /* 0: none since it joined */
    pl_ps_request request;
    pl_stage stage;
    pl_pieces in;
    pl_stream out;
    uint8_t answer; /* PL_ANSWER_ */
    int64_t answer_step;

    const float *gradient; /* [count], complete when `fresh` */
    pl_lease *lease;       /* held: the gradient lies there; or NULL */
    float *staging;        /* memory for it, where it must be copied */
    bool fresh;            /* sync: of this step, not yet used; async: not
                              yet settled */
    uint64_t pushed;       /* async: the request that brought it */
    bool paused;           /* the chief evaluates */
    bool granted;          /* may make one more gradient (pl_core_grant) */
    bool unwanted;         /* async: the gradient at hand was one too many */
    int64_t own;           /* gradients of its share that were applied */
    int64_t made;          /* ... and those that it made itself, of any */
    int64_t pace;          /* ssp: its clock */
    int32_t reads;         /* whose share; -1: it was taken over */
    int32_t reader;        /* of its share; -1: none */
    double held_s;       /* sync, server 0: its gradient alone was missing... */
    double held_squares; /* ... the squares of these times, added up */
    int64_t dropped;
    bool held;          /* async: its gradient waits until it may be applied */
    int32_t counts_for; /* ... as one of this share; not at server 0 */
    /* Server 0, async: its requests up to this one are settled, and this is
     * the last gradient that was applied. */
    uint64_t settled;
    /* Server 0: so many other servers have the gradient of this step (async:
     * request) complete. */
    int64_t have_of;
    int32_t have_count;
    uint32_t applied_incarnation;
    uint64_t applied;
    int32_t applied_share;
    char *report;
    size_t report_bytes;
} pl_member;

/* What the ops for checkpoints are doing. */
typedef enum pl_storing {
    PL_STORING_NOTHING,
    PL_STORING_PART,
    PL_STORING_MANIFEST,
    PL_STORING_LOAD,
} pl_storing;

typedef struct pl_core_save {
    pl_storing storing;
    /* The chief's request, until it is begun; after a load began, its counts.
     */
    char *plan;
    size_t plan_bytes;
    int64_t *counts; /* [workers] */
    int64_t loading; /* the step of it */

    int64_t number, step; /* of the save at hand, or the last */
    bool tell;            /* another server: server 0 is to hear of our part */
    pl_ps_part own;
    bool held; /* an update waits */
    /* Server 0. */
    bool active;       /* not complete, and not given up */
    bool all_begun;    /* the chief has heard so */
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
    int32_t here; /* workers that are */
    /* Server 0: [workers][ps], the step (async: the request) whose gradient is
     * complete there. */
    int64_t *have;
    /* Server 0, kept up to date message by message, so that one takes O(1):
     * gradients that are complete everywhere and those a step needs; grants
     * that are out. */
    int64_t arrived_ns; /* sync, server 0: the last gradient; 0: none */
    int32_t ready_count, needed;
    int32_t grants;
    /* Server 0, async and ssp: the chief's tests that decide, and the step of
     * the next one; 0: to be reckoned from the step. */
    pl_due_steps tests;
    int64_t test_step;
    /* ssp: the clock of the slowest worker, and how many are that slow. */
    bool slowest_known;
    int64_t slowest;
    int32_t slowest_count;
    /* Guesses at the member of a peer, and of an incarnation. */
    int32_t *by_peer, *by_incarnation;
    uint32_t guess_mask;
    /* Dense: parameters change from one version to the next, and each piece
     * was encoded at one of them; NULL: none is encoded. */
    int64_t version;
    int64_t *encoded_at;
    float *sum; /* [PL_UPDATE_FLOATS] of combined gradients */
    const float **gradients;
    uint8_t *chosen;  /* [workers]: who made the last step */
    uint64_t job;     /* 0: not yet known */
    char *run;        /* the chief's run folder as it said; NULL: unknown */
    uint64_t run_job; /* whose folder that is */
    bool claimed;     /* the chief has told it */
    uint32_t generation;
    uint32_t restarted; /* the last one whose absent tasks were called lost */
    uint32_t base_incarnation, last_incarnation; /* given in between */
    int32_t rejoins;                             /* workers that came again */
    int64_t step;
    int64_t now_ns, begin_ns, said_ns;
    bool initialized;
    bool ready;       /* server 0: ... as are all servers; they may be used */
    bool stopping;    /* no more gradients */
    bool interrupted; /* ... as someone was interrupted */
    bool failed;
    bool frozen;            /* no worker goes on while the chief copies */
    bool reported;          /* server 0: the chief has heard all reports */
    int64_t asked_usage_ns; /* server 0: for all to tell what they used */
    bool told;              /* server 0: the others know that the job is over */
    bool dismissed;         /* by the supervisor: no task will come back */
    /* Server 0: one that is new since the chief left, and so has nothing. */
    const pl_member *hollow;
    bool finished;
    char why[512];
    pl_ps_core_view counts;
    pl_burst refusals; /* in the log */
    pl_core_save save;
    /* Server 0, sync: the last deal of the data and the one before it, which
     * holds until the last one's step. */
    pl_deal deal, deal_before;
    int64_t dealt_step; /* deals are decided up to here */
    /* A server other than 0: its membership there. */
    uint32_t own_incarnation; /* 0: not joined */
    bool ever_joined;
    uint64_t own_sequence; /* of its requests */
    bool wants_stop;       /* it was interrupted: server 0 is to know */
    int64_t asked_ns;      /* when it last spoke to server 0 */
    uint64_t heartbeats;   /* sent there; and when the last one was */
    int64_t heartbeat_ns;
    int64_t coordinator_ns; /* when it last heard of server 0 */
};

/* Until this request is answered its worker makes no gradients: it waits until
 * all others are done. */
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

/* Parameters that may be used. */
static inline bool pl_core_has_parameters(const pl_ps_core *core)
{
    return pl_core_leads(core) ? core->ready : core->initialized;
}

/* The life of server 0 that gave out an incarnation. */
static inline uint32_t pl_core_life(uint32_t incarnation)
{
    return incarnation & 0x7fff0000u;
}

/* This server gave out that incarnation. */
static inline bool pl_core_gave(const pl_ps_core *core, uint32_t incarnation)
{
    return incarnation > core->base_incarnation &&
           incarnation <= core->last_incarnation;
}

/* What this process has used so far. */
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

/* The frame as one of the life of a task that this is from or to. */
static inline pl_frame pl_core_stamp(pl_frame frame, uint32_t incarnation)
{
    frame.incarnation = incarnation;
    return frame;
}

void pl_core_send(pl_ps_core *core, pl_peer to, pl_frame frame,
                  const void *payload, bool lasting);
void pl_core_send_text(pl_ps_core *core, pl_peer to, pl_frame frame,
                       const char *text);
/* Let go of other tasks' memory in which no gradient lies any more. */
void pl_core_end_leases(pl_ps_core *core);
/* Copy a gradient that lies in another task's memory. */
void pl_core_keep(pl_ps_core *core, pl_member *member);
/* Forget the request at hand: a new incarnation starts afresh. */
void pl_core_forget(pl_ps_core *core, pl_member *member);
/* The request is done: send the parameters, or an ACK. */
void pl_core_answer(pl_ps_core *core, pl_member *member, unsigned flags);
/* An answer to the request at hand. */
void pl_core_reply(pl_ps_core *core, const pl_member *member, pl_frame frame,
                   const void *payload, bool lasting);
void pl_core_reply_text(pl_ps_core *core, const pl_member *member,
                        pl_frame frame, const char *text);
/* Forget parameters and requests: all tasks rejoin in `generation`. */
void pl_core_reset(pl_ps_core *core, uint32_t generation);
/* What workers kept of their gradients is not that of the parameters: a worker
 * is a new process, or steps are made again.  Some codecs keep nothing. */
void pl_core_lose_residuals(pl_ps_core *core);
/* The job is over for all; `failed`: say why and give up. */
void pl_core_end(pl_ps_core *core, bool failed, const char *format, ...)
    PL_PRINTF(3, 4);

/* Also when the job was about to end: no task will come back. */
void pl_core_note_interrupt(pl_ps_core *core);

/* update.c */
/* PL_ANSWER_STOP and why when no further gradient is wanted, else 0. */
unsigned pl_core_stop_flag(const pl_ps_core *core);
pl_status pl_core_update_init(pl_ps_core *core) PL_MUST_CHECK;
void pl_core_update_close(pl_ps_core *core);
void pl_core_gradient(pl_ps_core *core, pl_member *member);
/* Tell server 0 that this worker's gradient is complete here. */
void pl_core_send_have(pl_ps_core *core, int32_t worker);
void pl_core_on_have(pl_ps_core *core, const pl_member *from,
                     const pl_message *message);
/* Server 0: that server has the gradient of this step (async: request). */
void pl_core_note_have(pl_ps_core *core, int32_t worker, int32_t ps,
                       int64_t number);
/* All other servers have it. */
bool pl_core_is_elsewhere(pl_ps_core *core, int32_t worker, int64_t number);
void pl_core_forget_have(pl_ps_core *core, int32_t worker);
/* The worker may make one more gradient, or that is over. */
void pl_core_grant(pl_ps_core *core, pl_member *member, bool granted);
/* Combine the gradients of these workers in this order and apply them. */
void pl_core_update(pl_ps_core *core, const int32_t *workers, int32_t count);
/* What the update to come began with pl_trace_mark is done; `bytes`: that it
 * moved, 0: not counted. */
void pl_core_traced(const pl_ps_core *core, const char *name, uint64_t begin,
                    int64_t bytes);
/* The gradient at hand is not used: count it, and answer so. */
void pl_core_drop(pl_ps_core *core, pl_member *member);
void pl_core_try_step(pl_ps_core *core);
/* Answer what waits and may be answered now. */
void pl_core_release(pl_ps_core *core);
/* The same of one member's request. */
void pl_core_release_member(pl_ps_core *core, pl_member *member);
/* A worker has done what changes nothing for other workers: answer it, and
 * the chief or the evaluator, which may have waited for it. */
void pl_core_release_after(pl_ps_core *core, pl_member *member);

/* All workers but the chief have left, or will not come back. */
bool pl_core_others_done(const pl_ps_core *core);

/* share.c */
void pl_core_begin_share(pl_ps_core *core, pl_member *member);
/* Answer a request to share, if that can be. */
void pl_core_try_share(pl_ps_core *core, pl_member *member);
void pl_core_send_share(pl_ps_core *core, const pl_member *member);
/* deal.c */
void pl_core_reset_deal(pl_ps_core *core);
void pl_core_begin_deal(pl_ps_core *core, pl_member *member);
void pl_core_send_deal(pl_ps_core *core, const pl_member *member);
/* A worker reads its own share, whichever worker read it before. */
void pl_core_share_own(pl_ps_core *core, pl_member *member);
/* Server 0: whose share a worker's gradient is of; NULL: it was taken from
 * it. */
pl_member *pl_core_share_of(pl_ps_core *core, const pl_member *member);

/* save.c */
pl_status pl_core_save_init(pl_ps_core *core) PL_MUST_CHECK;
void pl_core_save_close(pl_ps_core *core);
void pl_core_begin_save(pl_ps_core *core, pl_member *member,
                        const pl_message *message);
void pl_core_begin_load(pl_ps_core *core, pl_member *member,
                        const pl_message *message);
/* The request to save or load: answer it, or begin it, if that can be. */
void pl_core_try_store(pl_ps_core *core, pl_member *chief);
/* The answer to a request for the status of the last save. */
void pl_core_send_saved(pl_ps_core *core, const pl_member *chief);
/* Server 0 hears of another server's part; that server, that it was heard. */
void pl_core_on_saved(pl_ps_core *core, const pl_member *from,
                      const pl_message *message);
void pl_core_saved_heard(pl_ps_core *core, const pl_message *message);
void pl_core_say_saved(pl_ps_core *core);
/* The chief has begun the save everywhere. */
void pl_core_save_begun(pl_ps_core *core);
/* The chief joins: one that it began, but not everywhere, is given up. */
void pl_core_save_abandon(pl_ps_core *core);
/* All is rolled back. */
void pl_core_save_reset(pl_ps_core *core);
/* May the parameters change now, by the gradient of `member`, or, NULL, of all
 * that have one?  If not it is noted that something waits. */
bool pl_core_may_change(pl_ps_core *core, const pl_member *member);
void pl_core_watch_save(pl_ps_core *core);

/* request.c */
void pl_core_refuse(pl_ps_core *core, const pl_member *member, const char *why);
/* The same, of a request that is wrong: it may be sent again. */
void pl_core_turn_down(pl_ps_core *core, pl_member *member, const char *why);
/* Are parameters the answer to the request at hand? */
bool pl_core_has_params(const pl_member *member);
/* All of a push or of the first parameters is here. */
void pl_core_complete(pl_ps_core *core, pl_member *member);
/* A push that needs no data: too late, or already here.  True: handled. */
bool pl_core_settle_early(pl_ps_core *core, pl_member *member);
void pl_core_ack(pl_ps_core *core, const pl_member *member,
                 pl_ps_ack_kind kind);
/* The chief, if it is this one, does not evaluate any more. */
void pl_core_end_pause(pl_ps_core *core, pl_member *member);

/* report.c */
/* What a heartbeat or a goodbye says of its process; what cannot be read is
 * left out. */
void pl_core_take_usage(pl_member *member, const pl_message *message);
/* Server 0: the chief has said goodbye, so the job is done: ask the other
 * servers what they used. */
void pl_core_ask_usage(pl_ps_core *core);
/* All other tasks have told it since, or are waited for no longer. */
bool pl_core_knows_usage(const pl_ps_core *core);
/* That server is still to tell it. */
bool pl_core_wants_usage(const pl_ps_core *core, const pl_member *server);
void pl_core_send_reports(pl_ps_core *core, const pl_member *chief);
void pl_core_send_counts(pl_ps_core *core, const pl_member *chief);

/* members.c */
void pl_core_on_join(pl_ps_core *core, const pl_message *message);
void pl_core_on_heartbeat(pl_ps_core *core, const pl_message *message);
void pl_core_on_bye(pl_ps_core *core, pl_member *member,
                    const pl_message *message);
/* Answer who said goodbye and may go. */
void pl_core_answer_goodbyes(pl_ps_core *core);
/* The chief has left and knows all reports; or it is gone. */
bool pl_core_chief_is_done(const pl_ps_core *core);
void pl_core_reports_heard(pl_ps_core *core);
/* A member that was given up was heard of. */
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
/* Join server 0, show that we live, repeat what it may have missed. */
void pl_core_follow(pl_ps_core *core);
/* Tell server 0 that the job should end. */
void pl_core_ask_stop(pl_ps_core *core, bool failed, const char *why);

#endif
