/* train_task.h - runs one task of a job, in a process with --role.
 *
 * Threads: one. */
#ifndef PL_APP_TASK_TRAIN_TASK_H
#define PL_APP_TASK_TRAIN_TASK_H

#include "app/train/trainer.h"

/* `control` is NULL when the task was started by hand.  With it, `cluster` has
 * no addresses yet: a server binds a port and reports it with
 * pl_control_address, and every task gets the cluster from
 * pl_control_cluster. */
pl_status pl_train_task(const pl_trainer_opts *opts) PL_MUST_CHECK;

#endif
