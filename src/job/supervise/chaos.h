/* chaos.h - deliberate faults: kill and freeze the tasks of a job.
 *
 * Faults occur at random times, `rate` a second on average for any number of
 * tasks (a Poisson process).  Half of them kill a task, half freeze it for a
 * random time of up to `freeze_ms`.  Their times, tasks and kinds depend only
 * on the seed; the work that they interrupt, on the machine.
 *
 * Threads: one, the supervisor's. */
#ifndef PL_JOB_SUPERVISE_CHAOS_H
#define PL_JOB_SUPERVISE_CHAOS_H

#include "job/supervise/host.h"

typedef struct pl_chaos pl_chaos;

typedef struct pl_chaos_opts {
    double rate; /* faults a second; required, > 0 */
    uint64_t seed;
    int64_t freeze_ms; /* the longest freeze; default 10000 */
    int tasks;         /* required: number of tasks */
} pl_chaos_opts;

pl_status pl_chaos_new(pl_chaos **out, const pl_chaos_opts *opts) PL_MUST_CHECK;
void pl_chaos_free(pl_chaos *chaos); /* may be NULL */

/* The task to hit now; -1: none.  Time is counted only between calls with
 * `training`.  If the task of a fault is not running, or already frozen, the
 * next task that can be hit is taken. */
int pl_chaos_due(pl_chaos *chaos, const pl_job_task *tasks, bool training,
                 int64_t now_ns);
/* Hit it, and log that. */
void pl_chaos_hit(pl_chaos *chaos, const pl_job_task *tasks, int task,
                  int64_t now_ns);
/* Continue tasks whose freeze is over; `all`: all frozen tasks. */
void pl_chaos_thaw(pl_chaos *chaos, const pl_job_task *tasks, bool all,
                   int64_t now_ns);

/* The process of `task` has ended; true: it was hit. */
bool pl_chaos_ended(pl_chaos *chaos, int task);
/* Faults so far. */
int64_t pl_chaos_faults(const pl_chaos *chaos);

#endif
