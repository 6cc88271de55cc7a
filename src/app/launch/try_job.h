/* try_job.h - open the data and the model of a job before its tasks do.
 *
 * Threads: one. */
#ifndef PL_APP_LAUNCH_TRY_JOB_H
#define PL_APP_LAUNCH_TRY_JOB_H

#include "app/options/options.h"
#include "job/cluster/cluster.h"

/* Fails where every task would.  *per_epoch: the updates of an epoch; unchanged
 * if not known. */
pl_status pl_try_job(const pl_options *options, const pl_cluster *cluster,
                     int64_t *per_epoch) PL_MUST_CHECK;

#endif
