/* status.h - a supervised worker reports its progress to its supervisor.
 *
 * Threads: its own; the functions are called from one. */
#ifndef PL_APP_TASK_STATUS_H
#define PL_APP_TASK_STATUS_H

#include "base/record/metric.h"
#include "job/supervise/control.h"

#include <stdatomic.h>

typedef struct pl_status_line pl_status_line;

typedef struct pl_status_opts {
    pl_metrics *metrics; /* required, like the next one; borrowed */
    pl_control *control;
    bool chief;             /* reports epochs too; default false */
    atomic_bool *interrupt; /* set when the supervisor requests the end */
} pl_status_opts;

pl_status pl_status_start(pl_status_line **out,
                          const pl_status_opts *opts) PL_MUST_CHECK;
/* The worker has joined the job: report now, and regularly from now on. */
void pl_status_joined(pl_status_line *line);
void pl_status_stop(pl_status_line *line); /* reports once more; NULL is fine */

#endif
