/* status.h - a supervised worker tells its supervisor how far it is.
 *
 * Threads: its own; the functions are called from one. */
#ifndef PL_APP_TASK_STATUS_H
#define PL_APP_TASK_STATUS_H

#include "base/record/metric.h"
#include "job/supervise/control.h"

#include <stdatomic.h>

typedef struct pl_status_line pl_status_line;

typedef struct pl_status_opts {
    pl_metrics *metrics; /* required, as what follows; borrowed */
    pl_control *control;
    bool chief;             /* tells of epochs, too; default false */
    atomic_bool *interrupt; /* set when the supervisor wants an end */
} pl_status_opts;

pl_status pl_status_start(pl_status_line **out,
                          const pl_status_opts *opts) PL_MUST_CHECK;
/* It is a member of the job: from now on it tells, and it does so at once. */
void pl_status_joined(pl_status_line *line);
void pl_status_stop(pl_status_line *line); /* tells once more; NULL is fine */

#endif
