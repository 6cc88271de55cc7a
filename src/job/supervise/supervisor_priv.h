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

/* What the supervisor alone knows of a task. */
typedef struct pl_watched {
    bool lost;          /* declared so; it was killed */
    int64_t heard_ns;   /* its last message */
    int64_t stopped_ns; /* since when the chief is, as it takes leave; 0: not */
    int32_t excused;    /* starts that take none of --restarts */
    bool there;         /* this process has said that it is a task */
    bool joined;        /* a process of this task was in the job */
    bool closing;       /* the chief takes leave of the others */
    bool left;          /* told that the terminal is left to it */
    bool gone;          /* it is not restarted, and the job goes on */
} pl_watched;

typedef struct pl_supervisor {
    const pl_supervisor_opts *opts;
    pl_cluster cluster; /* with the addresses reported so far */
    int32_t missing;    /* addresses */
    int count;
    pl_job_task *tasks;  /* [count], servers first */
    pl_watched *watched; /* [count] */
    pl_host *here;       /* this machine; NULL: other hosts alone */
    pl_host *const *hosts;
    int32_t host_count;
    struct pollfd *polls; /* [count + host_count] */
    pl_chaos *chaos;      /* NULL: none */
    pl_phase_of_job phase;
    pl_deadline deadline; /* of the phase, where it has a limit */
    bool done;            /* the chief ended well */
    int64_t restarts;     /* of all tasks */
    pl_error failed;      /* the first failure; PL_OK: none */
} pl_supervisor;

/* Only forward; a phase that is past is not entered. */
void pl_supervisor_enter(pl_supervisor *s, pl_phase_of_job next);
/* The phase's limit is in so many ms. */
#define PL_SUPERVISOR_END_MS 60000
void pl_supervisor_limit(pl_supervisor *s, int64_t ms, int64_t otherwise);
/* Keep the first failure; all tasks are to end. */
void pl_supervisor_fail(pl_supervisor *s, pl_status status);
/* Tell a task, where it can be told. */
void pl_supervisor_tell(pl_supervisor *s, const pl_job_task *task,
                        const pl_control_message *message);
/* Tell all to end; an evaluator may still come to test the end. */
void pl_supervisor_ask_all(pl_supervisor *s, bool evaluator);

/* "worker 1", "worker 1 on HOST" */
const char *pl_supervisor_name(const pl_job_task *task,
                               char name[PL_SUPERVISOR_NAME]);
/* Put on the timeline what happened to a task, and how. */
void pl_supervisor_note(const pl_supervisor *s, const pl_job_task *task,
                        pl_event_kind kind, const char *how);
/* NULL: the job has no such task. */
pl_job_task *pl_supervisor_find(pl_supervisor *s, pl_task id);

/* supervisor_tasks.c: starts and messages. */
pl_status pl_supervisor_start(pl_supervisor *s,
                              pl_job_task *task) PL_MUST_CHECK;
/* The chief's summary says how often tasks were restarted and hit. */
void pl_supervisor_tell_counts(pl_supervisor *s, int64_t more_faults);
/* ps 0 need not wait for the tasks that are not restarted. */
void pl_supervisor_tell_gone(pl_supervisor *s);
void pl_supervisor_take_message(void *context, pl_task id,
                                const pl_control_message *message);
/* Where the address of a task is kept; NULL: it has none to report. */
char **pl_supervisor_address(const pl_supervisor *s, const pl_job_task *task);

/* supervisor_ends.c: deaths. */
void pl_supervisor_watch_chief(pl_supervisor *s);
void pl_supervisor_take_ended(void *context, pl_task id, int ended,
                              const char *said);
void pl_supervisor_lose_host(pl_supervisor *s, pl_host *host, pl_status status);

#endif
