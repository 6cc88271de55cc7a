/* liveness.h - whether another task is alive.
 *
 * A task sends heartbeats.  They carry its step, its phase and a counter that
 * the working thread increments whenever it makes progress, such as an operator
 * in the middle of a step: so a hanging working thread is detected even if the
 * heartbeat thread runs, and a long step is not taken for a hang.  A task
 * without a heartbeat for the timeout is silent.  A computing task that has
 * made no progress for PL_STUCK_BY times its longest computation in a step so
 * far, and at least for the timeout, is stuck.  Both count as lost.
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
    int64_t progress; /* counts progress of the working thread, also within a
                         step */
} pl_vital;

typedef struct pl_liveness {
    pl_vital last;
    bool known;          /* last.progress belongs to the current work */
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

/* The task has a new process. */
void pl_liveness_reset(pl_liveness *life, int64_t now_ns);
/* The same process restarts its work, as in a new generation: how long its work
 * takes is kept. */
void pl_liveness_restart(pl_liveness *life, int64_t now_ns);
/* Handle a heartbeat; true: the task made progress since the last one. */
bool pl_liveness_hear(pl_liveness *life, const pl_vital *vital, int64_t now_ns);
pl_life_state pl_liveness_judge(const pl_liveness *life, int64_t timeout_ms,
                                int64_t now_ns);
/* Exclude time in which the observer itself did not run. */
void pl_liveness_forgive(pl_liveness *life, int64_t gap_ns);

/* To be called at each tick of the observer.  Returns the time to forgive: 0,
 * or the gap since the last tick if the observer was stopped for half the
 * timeout or longer.  (With a short timeout a smaller limit would be close to
 * the interval of ticks, and all silence would be forgiven.) */
int64_t pl_liveness_gap(int64_t *tick_ns, int64_t timeout_ms, int64_t now_ns);

/* --- messages about losses, the only ones in the product ---------------- */

/* Sent to a process that was replaced by a newer one of the same task. */
#define PL_REPLACED "a newer process has taken this task's place"

#define PL_LOSS_TEXT 512

typedef struct pl_loss {
    const char *task; /* "worker 1 (10.0.0.2:4000)" */
    const pl_liveness *life;
    pl_life_state state;
    bool with_step;   /* include step and phase of the last heartbeat */
    const char *next; /* what happens next; NULL: omitted */
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
/* "TASK did not join within 60 s (--join-timeout)"; `again`: did not rejoin,
 * --rejoin-timeout. */
void pl_absence_text(char text[PL_LOSS_TEXT], const char *task, bool again,
                     int64_t limit_ms);

#endif
