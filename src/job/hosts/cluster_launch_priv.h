/* cluster_launch_priv.h - what the files of a cluster launch share. */
#ifndef PL_JOB_HOSTS_CLUSTER_LAUNCH_PRIV_H
#define PL_JOB_HOSTS_CLUSTER_LAUNCH_PRIV_H

#include "base/clock.h"
#include "job/hosts/cluster_launch.h"
#include "job/hosts/records/sink.h"

/* The run folder as the tasks of a host have it. */
typedef struct pl_run_of_host {
    char *run;
    bool shared;          /* it is the launcher's */
    pl_record_sink *sink; /* not shared: takes what the host sends; NULL: it
                             could not */
    bool warned;          /* ... of something it could not take */
    int64_t taken;        /* records */
    pl_deadline limit;    /* for the next one, at the end */
    bool over;            /* the host has sent all */
    char **argv;          /* of tasks there: the launch's, and from `first` on
                             words of its own, with the run folder */
    size_t first;
} pl_run_of_host;

typedef struct pl_cluster_launch {
    const pl_cluster_launch_opts *opts;
    pl_hosts *hosts;
    pl_cluster cluster;   /* with all addresses */
    int count;            /* of tasks: servers, workers, evaluator */
    int32_t *host_of;     /* [count] */
    pl_run_of_host *runs; /* [hosts]; NULL: without a run folder */
    pl_host **places;     /* [hosts]; NULL: not supervised yet */
} pl_cluster_launch;

/* placement.c: on which host a task runs, and at which address. */
pl_status pl_cluster_launch_place(pl_cluster_launch *l) PL_MUST_CHECK;

/* records/collect.c: which hosts share the run folder.  All go to the launch's
 * folder, or to another where they do not have it. */
pl_status pl_cluster_launch_locate(pl_cluster_launch *l) PL_MUST_CHECK;
/* Send the others what a resumed run needs. */
pl_status pl_cluster_launch_restore(pl_cluster_launch *l) PL_MUST_CHECK;
/* A record that a host sends; one that cannot be kept is said once. */
void pl_run_of_host_take(pl_run_of_host *run, const char *host,
                         const pl_control_message *message);
/* Wait for the records that hosts have not sent yet, as long as they come. */
void pl_cluster_launch_collect(pl_cluster_launch *l);

/* Whether the hosts can do their part. */
pl_status pl_cluster_launch_try(pl_cluster_launch *l) PL_MUST_CHECK;
pl_status pl_cluster_launch_find_ports(pl_cluster_launch *l) PL_MUST_CHECK;

/* Start all tasks and stay until they have ended. */
pl_status pl_cluster_launch_supervise(pl_cluster_launch *l) PL_MUST_CHECK;

/* Free what the launch needed; the hosts are its caller's. */
void pl_cluster_launch_close(pl_cluster_launch *l);

#endif
