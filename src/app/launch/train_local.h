/* train_local.h - start all tasks of a job on this machine and watch them.
 *
 * Threads: one. */
#ifndef PL_APP_LAUNCH_TRAIN_LOCAL_H
#define PL_APP_LAUNCH_TRAIN_LOCAL_H

#include "app/app.h"
#include "app/options/options.h"
#include "job/cluster/cluster.h"

/* Create and lock the run folder, start the tasks of `cluster`, and wait until
 * the job is over. */
pl_status pl_train_local(const pl_app *app, pl_options *options,
                         const pl_cluster *cluster) PL_MUST_CHECK;

#endif
