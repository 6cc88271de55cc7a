/* job_progress.h - the progress of a job, from what its tasks report.
 *
 * Sums the workers up into metrics, which the usual display shows, and adds
 * each worker's step and rate, and which of them the job waits for.
 *
 * Threads: one, beside the display's own. */
#ifndef PL_APP_VIEW_JOB_PROGRESS_H
#define PL_APP_VIEW_JOB_PROGRESS_H

#include "app/view/progress.h"
#include "job/supervise/supervisor.h"

#include <stdio.h>

typedef struct pl_job_progress pl_job_progress;

typedef struct pl_job_progress_opts {
    int32_t workers; /* required */
    FILE *file;      /* NULL: standard error, not waited for */
    pl_progress_kind kind;
    int64_t end_step; /* 0: not known */
    bool resumed;     /* it does not begin at step 0, but where the tasks say */
    int64_t per_epoch; /* steps; 0: not known */
} pl_job_progress_opts;

pl_status pl_job_progress_start(pl_job_progress **out,
                                const pl_job_progress_opts *opts) PL_MUST_CHECK;
/* Show the last state, end.  NULL is fine. */
void pl_job_progress_stop(pl_job_progress *progress);

/* The present state, and an epoch that has ended, as pl_supervisor_opts.show
 * and .epoch give them; `progress` is the context.  Once the chief says that
 * the job is over nothing more is drawn. */
void pl_job_progress_show(void *progress, const pl_job_task *tasks, int count);
void pl_job_progress_epoch(void *progress, const pl_epoch *epoch);
int64_t pl_job_progress_step(const pl_job_progress *progress);

#endif
