/* cluster_launch.h - the tasks of a job on the hosts of a cluster.
 *
 * Checks that each host can run its tasks, finds ports, then supervises the job
 * on the hosts (job/supervise/supervisor.h), whose tasks get the cluster as
 * TF_CONFIG.  Hosts that do not see the run folder keep one of their own, and
 * the records of their tasks are sent to the launcher's folder while the job
 * runs (records/).
 *
 * Threads: one, which must not end before the job. */
#ifndef PL_JOB_HOSTS_CLUSTER_LAUNCH_H
#define PL_JOB_HOSTS_CLUSTER_LAUNCH_H

#include "job/hosts/hosts.h"
#include "job/supervise/supervisor.h"

typedef struct pl_cluster_launch_opts {
    pl_hosts *hosts;           /* required; all pointers are borrowed */
    const pl_cluster *cluster; /* required; without addresses, tasks are
                                  assigned to the hosts round-robin */
    char *const *argv;         /* required: "paceline train ..." of each task,
                                  without --role, --index and --cluster */
    const char *folder;        /* required: working directory, if it exists
                                  there */
    const char *run;           /* the run folder, which collects the records of
                                  all hosts; NULL: none, only a check */
    const pl_secret *secret;   /* required */
    const char *secret_file;   /* key file with the secret, which all hosts see,
                                  so it is not sent; NULL: the secret is sent to
                                  the agents */
    const char *logs;          /* required: a folder for <role>-<index>.log */
    int32_t restarts;          /* of each task */
    bool go_on;                /* continue without a lost worker */
    int64_t try_ms;            /* for hosts to check the data; default 300 s */
    int64_t silent_ms;         /* until a host is lost; default 4000 */
    int64_t end_ms;            /* for tasks to end; default 20000 */
    const atomic_bool *interrupt; /* end all; or NULL */
    /* A line that a task has printed. */
    void (*print)(void *context, const pl_job_task *task, bool error,
                  const char *line);
    void *context;
} pl_cluster_launch_opts;

/* Only check that each host can run its tasks. */
pl_status pl_cluster_launch_check(const pl_cluster_launch_opts *opts)
    PL_MUST_CHECK;

/* As pl_supervisor_run. */
pl_status pl_cluster_launch_run(const pl_cluster_launch_opts *opts)
    PL_MUST_CHECK;

#endif
