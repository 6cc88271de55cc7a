/* train_task.h - be one task of a job: what a process with --role runs.
 *
 * Threads: one. */
#ifndef PL_APP_TASK_TRAIN_TASK_H
#define PL_APP_TASK_TRAIN_TASK_H

#include "app/train/trainer.h"

/* `control` is NULL when the task was started by hand.  With it, `cluster`
 * has no addresses yet: a server binds a port and tells it by
 * pl_control_address, and all wait for the cluster by pl_control_cluster. */
pl_status pl_train_task(const pl_trainer_opts *opts) PL_MUST_CHECK;

#endif
