/* cluster_launch_priv.h - what the files of a cluster launch share. */
#ifndef PL_JOB_HOSTS_CLUSTER_LAUNCH_PRIV_H
#define PL_JOB_HOSTS_CLUSTER_LAUNCH_PRIV_H

#include "job/hosts/cluster_launch.h"

typedef struct pl_cluster_launch {
    const pl_cluster_launch_opts *opts;
    pl_hosts *hosts;
    pl_cluster cluster; /* with all addresses */
    int count;          /* of tasks: servers, workers, evaluator */
    int32_t *host_of;   /* [count] */
    pl_host **places;   /* [hosts]; NULL: not supervised yet */
} pl_cluster_launch;

/* placement.c: on which host a task runs, and at which address. */
pl_status pl_cluster_launch_place(pl_cluster_launch *l) PL_MUST_CHECK;
/* Whether the hosts can do their part. */
pl_status pl_cluster_launch_try(pl_cluster_launch *l) PL_MUST_CHECK;
pl_status pl_cluster_launch_find_ports(pl_cluster_launch *l) PL_MUST_CHECK;

/* Start all tasks and stay until they have ended. */
pl_status pl_cluster_launch_supervise(pl_cluster_launch *l) PL_MUST_CHECK;

/* Free what the launch needed; the hosts are its caller's. */
void pl_cluster_launch_close(pl_cluster_launch *l);

#endif
