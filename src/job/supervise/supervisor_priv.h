/* supervisor_priv.h - what the files of the supervisor share. */
#ifndef PL_JOB_SUPERVISE_SUPERVISOR_PRIV_H
#define PL_JOB_SUPERVISE_SUPERVISOR_PRIV_H

#include "base/clock.h"
#include "base/error.h"
#include "job/supervise/chaos.h"
#include "job/supervise/supervisor.h"

#define PL_SUPERVISOR_NAME 320 /* bytes of "worker 1 on HOST" */

typedef enum pl_phase_of_job {
    PL_JOB_RUNS,
    PL_JOB_OVER,
    PL_JOB_ASKED,
    PL_JOB_TERM,
    PL_JOB_KILL,
} pl_phase_of_job;

/* The supervisor's own state of a task. */
typedef struct pl_watched {
    bool lost;          /* declared lost, and killed */
    int64_t heard_ns;   /* its last message */
    int64_t stopped_ns; /* since when the closing chief is stopped; 0: not
                           stopped */
    int32_t excused;    /* starts that do not count for --restarts */
    bool there;         /* this process has sent its hello */
    bool joined;        /* a process of this task was in the job */
    bool closing;       /* the chief is saying goodbye */
    bool left;          /* notified that it has the terminal */
    bool gone;          /* it is not restarted, and the job continues */
} pl_watched;

typedef struct pl_supervisor {
    const pl_supervisor_opts *opts;
    pl_cluster cluster; /* with the addresses reported so far */
    int32_t missing;    /* addresses not yet reported */
    int count;
    pl_job_task *tasks;  /* [count], servers first */
    pl_watched *watched; /* [count] */
    pl_host *here;       /* this machine; NULL: only other hosts */
    pl_host *const *hosts;
    int32_t host_count;
    struct pollfd *polls; /* [count + host_count] */
    pl_chaos *chaos;      /* NULL: none */
    pl_phase_of_job phase;
    pl_deadline deadline; /* of the phase, if it has a limit */
    bool done;            /* the chief ended successfully */
    int64_t restarts;     /* of all tasks */
    pl_error failed;      /* the first failure; PL_OK: none */
} pl_supervisor;

/* Phases only move forward; an earlier one is not entered. */
void pl_supervisor_enter(pl_supervisor *s, pl_phase_of_job next);
/* Set the phase's limit to this many ms from now. */
#define PL_SUPERVISOR_END_MS 60000
void pl_supervisor_limit(pl_supervisor *s, int64_t ms, int64_t otherwise);
/* Keep the first failure; all tasks should end. */
void pl_supervisor_fail(pl_supervisor *s, pl_status status);
/* Send a message to a task, if its host can. */
void pl_supervisor_tell(pl_supervisor *s, const pl_job_task *task,
                        const pl_control_message *message);
/* Ask all tasks to end; `evaluator`: an evaluator, too. */
void pl_supervisor_ask_all(pl_supervisor *s, bool evaluator);

/* "worker 1", "worker 1 on HOST" */
const char *pl_supervisor_name(const pl_job_task *task,
                               char name[PL_SUPERVISOR_NAME]);
/* Record on the timeline what happened to a task, and how. */
void pl_supervisor_note(const pl_supervisor *s, const pl_job_task *task,
                        pl_event_kind kind, const char *how);
/* NULL: the job has no such task. */
pl_job_task *pl_supervisor_find(pl_supervisor *s, pl_task id);

/* supervisor_tasks.c: starts and messages. */
pl_status pl_supervisor_start(pl_supervisor *s,
                              pl_job_task *task) PL_MUST_CHECK;
/* Send the chief how often tasks were restarted and hit, for its summary. */
void pl_supervisor_tell_counts(pl_supervisor *s, int64_t more_faults);
/* ps 0 need not wait for the tasks that are not restarted. */
void pl_supervisor_tell_gone(pl_supervisor *s);
void pl_supervisor_take_message(void *context, pl_task id,
                                const pl_control_message *message);
/* Where the address of a task is stored; NULL: it reports none. */
char **pl_supervisor_address(const pl_supervisor *s, const pl_job_task *task);

/* supervisor_ends.c: the end of tasks. */
void pl_supervisor_watch_chief(pl_supervisor *s);
void pl_supervisor_take_ended(void *context, pl_task id, int ended,
                              const char *said);
void pl_supervisor_lose_host(pl_supervisor *s, pl_host *host, pl_status status);

#endif
