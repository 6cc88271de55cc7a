/* member_priv.h - what the files of the membership machine share.
 *
 *   member.c       the calls, the end, the common part of both sides
 *   coordinator.c  member 0: rendezvous, losses, reports
 *   participant.c  the others: joining, heartbeats, the coordinator's silence
 *
 * Threads: one at a time. */
#ifndef PL_JOB_MEMBER_MEMBER_PRIV_H
#define PL_JOB_MEMBER_MEMBER_PRIV_H

#include "job/member/member.h"

#include <stdatomic.h>

typedef enum pl_membership_state {
    PL_MEMBERSHIP_IDLE,
    PL_MEMBERSHIP_JOINING, /* wants to be in the next generation */
    PL_MEMBERSHIP_FORMED,
    PL_MEMBERSHIP_ROLLED, /* the generation is over, the job is not */
    PL_MEMBERSHIP_OVER,
} pl_membership_state;

/* The coordinator's state of a member. */
typedef struct pl_seat {
    pl_peer peer;         /* -1: none */
    uint32_t incarnation; /* of its process; 0: never seen */
    uint32_t before;      /* of the previous process */
    int64_t attempt;      /* of its last JOIN */
    bool spent;           /* that attempt was used by a generation... */
    bool confirmed;       /* ... which the member knows */
    bool ready;           /* waits for the next generation to form */
    bool in;              /* is in the generation */
    bool lost;            /* and not back yet */
    bool left;            /* its report has arrived */
    bool told;            /* has acknowledged the end of the job */
    pl_liveness life;
    pl_heartbeat_message last;
    char *report;
} pl_seat;

struct pl_membership {
    pl_membership_opts opts;
    pl_membership_state state;
    pl_status how; /* how it ended */
    char why[PL_LOSS_TEXT];
    uint32_t generation;
    bool formed_once;
    bool ready; /* this task, for the next generation */
    int64_t tick_ns, since_ns;
    pl_phase phase;
    int64_t transfers;
    _Atomic int64_t step, progress;
    char *report; /* of this task; NULL: not submitted */

    /* At the coordinator. */
    pl_seat *seats;   /* [members]; NULL: another member */
    int32_t settled;  /* no member before this one is awaited */
    uint32_t highest; /* generation seen in any message */
    int32_t restarts;
    bool follows;     /* an earlier process was coordinator of this job */
    int64_t moved_ns; /* the last transfer, or moment that a member computed */
    int64_t transfers_seen;

    /* At another member. */
    pl_liveness coordinator;
    uint32_t coordinator_incarnation; /* of this generation */
    bool heard;                       /* ... since this task began to join */
    int64_t attempt;
    int64_t next_ns; /* of a JOIN or heartbeat */
    uint64_t number; /* of the last heartbeat, and when it was sent */
    int64_t sent_ns;
    bool delivered; /* the report was acknowledged */
    pl_skew skew;
};

static inline bool pl_membership_leads(const pl_membership *m)
{
    return m->seats != NULL;
}

static inline int64_t pl_membership_timeout_ns(const pl_membership *m)
{
    return m->opts.heartbeat_ms * INT64_C(1000000);
}

/* --- member.c --------------------------------------------------------- */

void pl_membership_name(const pl_membership *m, int32_t member,
                        char text[PL_MEMBER_NAME]);
void pl_membership_send(pl_membership *m, int32_t to, const pl_frame *frame,
                        const void *payload);
/* Send a text; `kind` as in pl_note_message, `how`: its meaning for the
 * receiver. */
void pl_membership_note(pl_membership *m, int32_t to, pl_frame_kind kind,
                        pl_status how, const char *text);
/* ROLLED or OVER, with the event; false: the job was over before. */
bool pl_membership_end(pl_membership *m, pl_membership_state state,
                       pl_status how, const char *why);
/* The time limit to join, or to rejoin. */
int64_t pl_membership_limit_ms(const pl_membership *m);
const char *pl_membership_next(const pl_membership *m);

/* --- coordinator.c ---------------------------------------------------- */

void pl_coordinator_try_form(pl_membership *m, int64_t now_ns);
int32_t pl_coordinator_absent(const pl_membership *m);
bool pl_coordinator_receive(pl_membership *m, pl_peer from,
                            const pl_message *message, int64_t now_ns);
void pl_coordinator_tick(pl_membership *m, int64_t now_ns);
void pl_coordinator_roll(pl_membership *m, const char *why);
void pl_coordinator_over(pl_membership *m, pl_status how, const char *why);
/* End the job if all reports have arrived. */
void pl_coordinator_try_finish(pl_membership *m);

/* --- participant.c ---------------------------------------------------- */

void pl_participant_join(pl_membership *m, int64_t now_ns);
bool pl_participant_receive(pl_membership *m, const pl_message *message,
                            int64_t now_ns);
void pl_participant_tick(pl_membership *m, int64_t now_ns);
void pl_participant_report(pl_membership *m);

#endif
