/* cluster_reach.h - can the other tasks reach this one at its address?
 *
 * On many systems the host's own name means 127.0.1.1 in /etc/hosts: a server
 * named by it would listen on loopback and the other hosts would wait for it
 * in vain.
 *
 * Threads: any. */
#ifndef PL_JOB_CLUSTER_CLUSTER_REACH_H
#define PL_JOB_CLUSTER_CLUSTER_REACH_H

#include "job/cluster/cluster.h"
#include "net/address.h"

/* pl_address_resolve, or what a test puts in its place. */
typedef pl_status pl_cluster_resolver(pl_address *address);

/* PL_USAGE, with the cure, when the task is to listen at a name that means
 * loopback here while a task of the cluster is on another host.  *only_here:
 * it is such a name, but no other host is known to take part. */
pl_status pl_cluster_check_reach(const pl_cluster *cluster, pl_task task,
                                 pl_cluster_resolver *resolve,
                                 bool *only_here) PL_MUST_CHECK;

#endif
