/* liveness.h - what is known about the life of another task.
 *
 * A task sends heartbeats.  They carry its step, its phase and a counter that
 * the working thread raises whenever it gets something done, such as an
 * operator in the middle of a step, so that a task whose heartbeat thread lives
 * but whose working thread hangs is noticed too, and a step that takes long is
 * not taken for one that hangs.  A task without a heartbeat for the timeout is
 * silent.  A computing task that has made no progress for PL_STUCK_BY times the
 * longest that it has computed in a step so far, and at least for the timeout,
 * is stuck.  Both count as
 * lost.
 *
 * Threads: none of its own; the owner serializes. */
#ifndef PL_JOB_MEMBER_LIVENESS_H
#define PL_JOB_MEMBER_LIVENESS_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PL_STUCK_BY               10 /* times the longest step, without progress */
#define PL_HEARTBEATS_PER_TIMEOUT 5

/* What happens when a worker is lost. */
typedef enum pl_on_loss {
    PL_ON_LOSS_WAIT,
    PL_ON_LOSS_CONTINUE,
    PL_ON_LOSS_ABORT,
} pl_on_loss;

/* What a task is doing; heartbeats carry it. */
typedef enum pl_phase {
    PL_PHASE_JOINING,
    PL_PHASE_COMPUTING,
    PL_PHASE_SENDING,
    PL_PHASE_WAITING,
    PL_PHASE_EVALUATING,
    PL_PHASE_SAVING,
    PL_PHASES,
} pl_phase;

const char *pl_phase_text(pl_phase phase); /* "computing" */

/* The contents of a heartbeat that liveness is judged by. */
typedef struct pl_vital {
    int64_t step;
    pl_phase phase;
    int64_t progress; /* counts what the working thread got done, also in the
                         middle of a step */
} pl_vital;

typedef struct pl_liveness {
    pl_vital last;
    bool known;          /* last.progress is of the work under way */
    bool worked;         /* a step or phase has ended since the work began */
    int64_t heard_ns;    /* the last message of any kind */
    int64_t progress_ns; /* the last progress, or moment outside computing */
    int64_t step_ns;     /* the last new step or phase */
    int64_t longest_ns;  /* between two such moments */
} pl_liveness;

typedef enum pl_life_state {
    PL_ALIVE,
    PL_SILENT,
    PL_STUCK,
} pl_life_state;

/* A new process. */
void pl_liveness_reset(pl_liveness *life, int64_t now_ns);
/* The same process begins again, as in a new generation: how long its work
 * takes stays known. */
void pl_liveness_restart(pl_liveness *life, int64_t now_ns);
/* A heartbeat has come; true: the task made progress since the last one. */
bool pl_liveness_hear(pl_liveness *life, const pl_vital *vital, int64_t now_ns);
pl_life_state pl_liveness_judge(const pl_liveness *life, int64_t timeout_ms,
                                int64_t now_ns);
/* Time during which the observer itself did not run is not silence. */
void pl_liveness_forgive(pl_liveness *life, int64_t gap_ns);

/* The observer's ticks.  Returns the time to forgive: 0, or the gap since the
 * last tick when the observer was stopped for half the timeout or longer.  (A
 * smaller limit would come near the distance of two ticks where the timeout is
 * short, and would forgive all silence.) */
int64_t pl_liveness_gap(int64_t *tick_ns, int64_t timeout_ms, int64_t now_ns);

/* --- sentences about losses, the only ones in the product -------------- */

/* What a process hears whose place a newer one of the same task has. */
#define PL_REPLACED "a newer process has taken this task's place"

#define PL_LOSS_TEXT 512

typedef struct pl_loss {
    const char *task; /* "worker 1 (10.0.0.2:4000)" */
    const pl_liveness *life;
    pl_life_state state;
    bool with_step;   /* say step and phase of the last heartbeat */
    const char *next; /* what happens now; NULL: nothing is said */
    int64_t now_ns;
} pl_loss;

/* "worker 1 (host) is lost at step 7 while computing: it has been silent
 * for 5.0 s; waiting for it to come back" */
void pl_loss_text(char text[PL_LOSS_TEXT], const pl_loss *loss);
/* The part of it after the colon: "it has been silent for 5.0 s". */
void pl_loss_how(char *text, size_t room, const pl_liveness *life,
                 pl_life_state state, int64_t now_ns);
/* "waiting for it to come back", ... */
const char *pl_loss_next(pl_on_loss on_loss);
/* "TASK did not join within 60 s (--join-timeout)"; `again`: did not come back,
 * --rejoin-timeout. */
void pl_absence_text(char text[PL_LOSS_TEXT], const char *task, bool again,
                     int64_t limit_ms);

#endif
