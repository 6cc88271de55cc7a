/* task_log.h - log/<role>-<index>.log of a task that was started by hand.
 *
 * A task logs before it knows its run folder: lines are kept until then, and
 * are also written to standard error.  Tasks of a supervisor or of `launch`
 * need none: their starter writes their output to that file.
 *
 * Threads: lines come from any; the functions are called from one. */
#ifndef PL_APP_RUN_TASK_LOG_H
#define PL_APP_RUN_TASK_LOG_H

#include "job/cluster/cluster.h"

typedef struct pl_task_log pl_task_log;

/* From now on lines are kept.  Only one log per process at a time. */
pl_status pl_task_log_new(pl_task_log **out) PL_MUST_CHECK;
void pl_task_log_free(pl_task_log *log); /* NULL is fine, also below */

/* Append the kept lines, and all later ones, to the task's file in the run
 * folder.  A file that cannot be written is reported once; the training
 * continues. */
void pl_task_log_open(pl_task_log *log, const char *run, pl_task task);

/* Append a line directly: the reason of a task's failure is not logged
 * elsewhere. */
void pl_task_log_line(pl_task_log *log, const char *line);

#endif
