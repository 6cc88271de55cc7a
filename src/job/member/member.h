/* member.h - the membership of a job: the machine behind every strategy whose
 * workers form generations (all-reduce ring, block products).
 *
 * The coordinator, member 0, and the other members each have a machine.  It
 * does no input or output and reads no clock: its inputs are messages and
 * ticks; it sends messages through `send`, and notifies the strategy through
 * `event`.  A generation is a set of members that work together; it forms when
 * all expected members are ready (rendezvous), and it ends when one is lost or
 * restarts (rolled), after which the remaining ones rejoin, or when the job is
 * over.
 *
 * The use of a machine: pl_membership_join, then formed(), then work, during
 * which outcome() tells whether the generation still exists; PL_ROLLED: join
 * again.  At the end finish() submits a report, and done() is true when the
 * coordinator has all reports.
 *
 * Threads: one at a time; pl_membership_progress and _step from any. */
#ifndef PL_JOB_MEMBER_MEMBER_H
#define PL_JOB_MEMBER_MEMBER_H

#include "base/host/skew.h"
#include "job/member/messages.h"

typedef struct pl_membership pl_membership;

#define PL_TO_COORDINATOR (-1) /* instead of a peer */
#define PL_MEMBER_FACTS   4096 /* most bytes a strategy adds to a message */
#define PL_MEMBER_NAME    256

typedef enum pl_member_event_kind {
    PL_MEMBER_EVENT_JOINED, /* a process has joined for the first time */
    PL_MEMBER_EVENT_BACK,   /* ... or a lost process or its successor is back */
    PL_MEMBER_EVENT_LOST,   /* silent, stuck, or too late */
    PL_MEMBER_EVENT_FORMED, /* a generation has formed */
    PL_MEMBER_EVENT_ROLLED, /* this generation is over */
    PL_MEMBER_EVENT_OVER,   /* the job is over */
} pl_member_event_kind;

typedef struct pl_member_event {
    pl_member_event_kind kind;
    int32_t member;    /* JOINED, BACK, LOST */
    bool awaited;      /* LOST: its supervisor may restart it */
    const char *text;  /* LOST, ROLLED, OVER: a message */
    const void *facts; /* FORMED, at other members: the facts of the WELCOME */
    size_t fact_bytes;
} pl_member_event;

typedef struct pl_membership_ops {
    /* `to`: PL_TO_COORDINATOR, or a peer that sent a JOIN. */
    void (*send)(void *context, int32_t to, const pl_frame *frame,
                 const void *payload);
    /* This peer no longer belongs to the member. */
    void (*drop)(void *context, pl_peer peer);
    /* "worker 1 (10.0.0.2:4000)" */
    void (*name)(void *context, int32_t member, char text[PL_MEMBER_NAME]);
    /* Optional, coordinator: fails if this task cannot join.  The message is
     * sent to it. */
    pl_status (*admit)(void *context, const pl_join_message *join);
    /* Optional, coordinator: the facts in the WELCOME of this member; returns
     * their size. */
    size_t (*welcome)(void *context, int32_t member,
                      uint8_t facts[PL_MEMBER_FACTS]);
    /* Optional: false for invalid facts; the WELCOME is dropped. */
    bool (*welcomed)(void *context, const void *facts, size_t bytes);
    void (*event)(void *context, const pl_member_event *event);
} pl_membership_ops;

typedef struct pl_membership_opts {
    int32_t self, members; /* 0 is the coordinator */
    uint32_t incarnation;  /* of this process: random, not 0 */
    pl_on_loss on_loss;    /* the coordinator's value applies */
    int64_t heartbeat_ms;  /* silence that means lost; default 5000 */
    int64_t join_ms;       /* for all to join; default 600000 */
    int64_t rejoin_ms;     /* for a lost member; default 60000 */
    const char *facts;     /* of JOIN, borrowed; NULL: none */
    const char *next;      /* what follows a loss; default by on_loss */
    const pl_membership_ops *ops;
    void *context;
} pl_membership_opts;

pl_status pl_membership_new(pl_membership **out,
                            const pl_membership_opts *opts) PL_MUST_CHECK;
void pl_membership_free(pl_membership *m); /* may be NULL */

/* Take part in the next generation.  `ready`: immediately; otherwise this task
 * is only announced, and pl_membership_ready follows. */
void pl_membership_join(pl_membership *m, bool ready, int64_t now_ns);
void pl_membership_ready(pl_membership *m, int64_t now_ns);
bool pl_membership_formed(const pl_membership *m);
/* A member that is waited for; -1: none. */
int32_t pl_membership_absent(const pl_membership *m);

/* Handle a message of membership (pl_member_message); false: invalid,
 * dropped. */
bool pl_membership_receive(pl_membership *m, int32_t from,
                           const pl_message *message, int64_t now_ns);
void pl_membership_tick(pl_membership *m, int64_t now_ns);

/* The phase that heartbeats carry from now on. */
void pl_membership_phase(pl_membership *m, pl_phase phase);
void pl_membership_transfers(pl_membership *m, int64_t transfers);
void pl_membership_progress(pl_membership *m); /* the task made progress */
void pl_membership_step(pl_membership *m);     /* ... a whole step */

/* End this generation (coordinator), or the job. */
void pl_membership_roll(pl_membership *m, const char *format, ...)
    PL_PRINTF(2, 3);
void pl_membership_over(pl_membership *m, pl_status how, const char *format,
                        ...) PL_PRINTF(3, 4);
/* This task fails: end the job with its message. */
void pl_membership_abort(pl_membership *m, const char *why);

/* Submit the report; done when the coordinator has all. */
pl_status pl_membership_finish(pl_membership *m,
                               const char *report) PL_MUST_CHECK;
bool pl_membership_done(const pl_membership *m);
/* The coordinator's: the report of a member, or NULL. */
const char *pl_membership_report(const pl_membership *m, int32_t member);

/* PL_OK, PL_ROLLED with the reason, or what ended the job. */
pl_status pl_membership_outcome(const pl_membership *m) PL_MUST_CHECK;

/* --- queries ---------------------------------------------------------- */

uint32_t pl_membership_generation(const pl_membership *m);
bool pl_membership_has(const pl_membership *m, int32_t member);
pl_peer pl_membership_peer(const pl_membership *m, int32_t member);
int32_t pl_membership_restarts(const pl_membership *m); /* new processes */
pl_skew pl_membership_skew(const pl_membership *m); /* coordinator's clock */
/* Whether all members notified of the job's end have acknowledged it. */
bool pl_membership_all_told(const pl_membership *m);

#endif
