/* job_progress.h - the progress of a job, from what its tasks report.
 *
 * Sums up the workers in metrics, which the usual display shows, and adds each
 * worker's step and rate, and the task that the job waits for.
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
    FILE *file;      /* NULL: standard error, without blocking */
    pl_progress_kind kind;
    int64_t end_step;  /* 0: not known */
    bool resumed;      /* it starts at the step that the tasks report */
    int64_t per_epoch; /* steps; 0: not known */
} pl_job_progress_opts;

pl_status pl_job_progress_start(pl_job_progress **out,
                                const pl_job_progress_opts *opts) PL_MUST_CHECK;
/* Show the last state and end.  NULL is fine. */
void pl_job_progress_stop(pl_job_progress *progress);

/* The current state, and an epoch that has ended: pl_supervisor_opts.show and
 * .epoch, with `progress` as the context.  After the chief reports the end of
 * the job nothing more is drawn. */
void pl_job_progress_show(void *progress, const pl_job_task *tasks, int count);
void pl_job_progress_epoch(void *progress, const pl_epoch *epoch);
int64_t pl_job_progress_step(const pl_job_progress *progress);

#endif
