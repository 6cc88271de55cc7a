/* cluster_reach.h - whether other tasks can reach this one at its address.
 *
 * On many systems /etc/hosts maps the host's own name to 127.0.1.1: a server
 * with that name would listen on loopback, and other hosts could not reach it.
 *
 * Threads: any. */
#ifndef PL_JOB_CLUSTER_CLUSTER_REACH_H
#define PL_JOB_CLUSTER_CLUSTER_REACH_H

#include "job/cluster/cluster.h"
#include "net/address.h"

/* pl_address_resolve, or a replacement by a test. */
typedef pl_status pl_cluster_resolver(pl_address *address);

/* PL_USAGE, with the remedy, when the task should listen at a name that means
 * loopback here while a task of the cluster is on another host.  *only_here: it
 * is such a name, but no other host is known to take part. */
pl_status pl_cluster_check_reach(const pl_cluster *cluster, pl_task task,
                                 pl_cluster_resolver *resolve,
                                 bool *only_here) PL_MUST_CHECK;

#endif
