/* cluster_launch.h - the tasks of a job on the hosts of a cluster.
 *
 * Asks each host whether it can do its part, finds ports, then supervises the
 * job over the hosts (job/supervise/supervisor.h), whose tasks get the cluster
 * as TF_CONFIG.  Hosts that do not see the run folder keep one of their own,
 * and what their tasks record is sent to the launcher's while the job runs
 * (records/).
 *
 * Threads: one, which stays. */
#ifndef PL_JOB_HOSTS_CLUSTER_LAUNCH_H
#define PL_JOB_HOSTS_CLUSTER_LAUNCH_H

#include "job/hosts/hosts.h"
#include "job/supervise/supervisor.h"

typedef struct pl_cluster_launch_opts {
    pl_hosts *hosts;           /* required; all are borrowed */
    const pl_cluster *cluster; /* required; without addresses, tasks are dealt
                                  to the hosts in turn */
    char *const *argv;         /* required: "paceline train ..." of each task,
                                  without --role, --index and --cluster */
    const char *folder;        /* required: to work in, where it is there */
    const char *run;           /* the run folder, where what hosts record comes
                                  together; NULL: none, for a check alone */
    const pl_secret *secret;   /* required */
    const char *secret_file;   /* the secret is in this key file, which all
                                  hosts see, and is not sent; NULL: it is sent
                                  to the agents */
    const char *logs;          /* required: a folder for <role>-<index>.log */
    int32_t restarts;          /* of each task */
    bool go_on;                /* without a worker that is lost */
    int64_t try_ms;    /* for hosts to look at the data; default 300 s */
    int64_t silent_ms; /* until a host is lost; default 4000 */
    int64_t end_ms;    /* for tasks to end; default 20000 */
    const atomic_bool *interrupt; /* end all; or NULL */
    /* A line that a task has printed. */
    void (*print)(void *context, const pl_job_task *task, bool error,
                  const char *line);
    void *context;
} pl_cluster_launch_opts;

/* Only ask each host whether it can do its part. */
pl_status pl_cluster_launch_check(const pl_cluster_launch_opts *opts)
    PL_MUST_CHECK;

/* As pl_supervisor_run. */
pl_status pl_cluster_launch_run(const pl_cluster_launch_opts *opts)
    PL_MUST_CHECK;

#endif
