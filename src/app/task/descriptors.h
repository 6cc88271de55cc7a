/* descriptors.h - the open files that the tasks of a job need.
 *
 * They are checked before anything starts: a job that would run out of
 * descriptors later, for example at its last checkpoint, is refused.
 *
 * Threads: the main one, before others. */
#ifndef PL_APP_TASK_DESCRIPTORS_H
#define PL_APP_TASK_DESCRIPTORS_H

#include "job/cluster/cluster.h"

/* The most that one task of the cluster needs. */
int64_t pl_descriptors_of_task(const pl_cluster *cluster, pl_task task);
/* The most that any task needs, the supervisor included. */
int64_t pl_descriptors_of_job(const pl_cluster *cluster);

/* Raise the limit of this process, and so of the processes it starts, to
 * `count`. PL_USAGE when it may not be raised that far. */
pl_status pl_descriptors_ensure(const pl_cluster *cluster,
                                int64_t count) PL_MUST_CHECK;
/* The same for a training in one process. */
pl_status pl_descriptors_ensure_alone(void) PL_MUST_CHECK;
/* The same for a matrix product: for each worker and for its starter. */
pl_status pl_descriptors_ensure_product(int32_t workers) PL_MUST_CHECK;

#endif
