/* chaos.h - faults on purpose: kill and freeze the tasks of a job.
 *
 * Faults come at random moments, `rate` a second on average whatever the
 * number of tasks (a Poisson process).  Half of them kill a task, half freeze
 * it for a random time of up to `freeze_ms`.  When, whom and how depends on
 * the seed alone; on what work it falls, on the machine.
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
    int tasks;         /* required: how many there are */
} pl_chaos_opts;

pl_status pl_chaos_new(pl_chaos **out, const pl_chaos_opts *opts) PL_MUST_CHECK;
void pl_chaos_free(pl_chaos *chaos); /* NULL is fine */

/* The task that is to be hit now; -1: none.  Time passes only between calls
 * with `training`.  A fault whose task does not run, or is frozen already,
 * hits the next one that can be hit. */
int pl_chaos_due(pl_chaos *chaos, const pl_job_task *tasks, bool training,
                 int64_t now_ns);
/* Hit it, and say so. */
void pl_chaos_hit(pl_chaos *chaos, const pl_job_task *tasks, int task,
                  int64_t now_ns);
/* Let those go on whose time is over; `all`: everyone. */
void pl_chaos_thaw(pl_chaos *chaos, const pl_job_task *tasks, bool all,
                   int64_t now_ns);

/* The process of `task` has ended; true: it had been hit. */
bool pl_chaos_ended(pl_chaos *chaos, int task);
/* Faults so far. */
int64_t pl_chaos_faults(const pl_chaos *chaos);

#endif
