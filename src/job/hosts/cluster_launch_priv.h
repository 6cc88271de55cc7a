/* cluster_launch_priv.h - what the files of a cluster launch share. */
#ifndef PL_JOB_HOSTS_CLUSTER_LAUNCH_PRIV_H
#define PL_JOB_HOSTS_CLUSTER_LAUNCH_PRIV_H

#include "base/clock.h"
#include "job/hosts/cluster_launch.h"
#include "job/hosts/records/sink.h"

/* The run folder of a host's tasks. */
typedef struct pl_run_of_host {
    char *run;
    bool shared;          /* it is the launcher's */
    pl_record_sink *sink; /* not shared: takes the host's records; NULL: it
                             failed */
    bool warned;          /* ... about a record that it could not take */
    int64_t taken;        /* records */
    pl_deadline limit;    /* for the next record, at the end */
    bool over;            /* the host has sent all */
    char **argv;          /* command of tasks there: the launch's, and from
                             `first` on its own words, with the run folder */
    size_t first;
} pl_run_of_host;

typedef struct pl_cluster_launch {
    const pl_cluster_launch_opts *opts;
    pl_hosts *hosts;
    pl_cluster cluster;   /* with all addresses */
    int count;            /* of tasks: servers, workers, evaluator */
    int32_t *host_of;     /* [count] */
    pl_run_of_host *runs; /* [hosts]; NULL: without a run folder */
    pl_host **places;     /* [hosts]; NULL: not yet supervised */
} pl_cluster_launch;

/* placement.c: on which host a task runs, and at which address. */
pl_status pl_cluster_launch_place(pl_cluster_launch *l) PL_MUST_CHECK;

/* records/collect.c: which hosts share the run folder.  All hosts use the
 * launch's folder, or another if they do not have it. */
pl_status pl_cluster_launch_locate(pl_cluster_launch *l) PL_MUST_CHECK;
/* Send the other hosts what a resumed run needs. */
pl_status pl_cluster_launch_restore(pl_cluster_launch *l) PL_MUST_CHECK;
/* Take a record of a host; if one cannot be kept, a warning is logged once. */
void pl_run_of_host_take(pl_run_of_host *run, const char *host,
                         const pl_control_message *message);
/* Wait for the records that hosts have not sent yet, as long as they keep
 * arriving. */
void pl_cluster_launch_collect(pl_cluster_launch *l);

/* Check that the hosts can run their tasks. */
pl_status pl_cluster_launch_try(pl_cluster_launch *l) PL_MUST_CHECK;
pl_status pl_cluster_launch_find_ports(pl_cluster_launch *l) PL_MUST_CHECK;

/* Start all tasks and wait until they have ended. */
pl_status pl_cluster_launch_supervise(pl_cluster_launch *l) PL_MUST_CHECK;

/* Free the launch, but not the hosts, which belong to the caller. */
void pl_cluster_launch_close(pl_cluster_launch *l);

#endif
