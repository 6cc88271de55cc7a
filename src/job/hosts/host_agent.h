/* host_agent.h - a host whose tasks its agent starts.
 *
 * The tasks are started as if by hand: they get the cluster as TF_CONFIG and
 * the job's secret as PACELINE_KEYS, and have no control socket.  Their output
 * is logged here and passed on. */
#ifndef PL_JOB_HOSTS_HOST_AGENT_H
#define PL_JOB_HOSTS_HOST_AGENT_H

#include "job/hosts/remote.h"
#include "job/supervise/host.h"
#include "net/keys.h"

/* In the environment of each task: the launcher keeps its log. */
#define PL_AGENT_LOGS "PACELINE_LAUNCHED"

typedef struct pl_host_agent_opts {
    pl_remote *remote;          /* required; all pointers are borrowed */
    const pl_cluster *cluster;  /* required, with all addresses */
    char *const *argv;          /* required: the command of a task */
    struct pl_run_of_host *run; /* takes the records of its tasks; or NULL */
    const pl_secret *secret;    /* required */
    const char *secret_file;    /* key file with the secret, sent instead; NULL:
                                   none */
    const char *logs;           /* required: a folder for <role>-<index>.log */
    int64_t silent_ms;          /* until it is lost; default 4000 */
    int tasks;                  /* required: of the job */
} pl_host_agent_opts;

pl_status pl_host_agent_new(pl_host **out,
                            const pl_host_agent_opts *opts) PL_MUST_CHECK;
void pl_host_agent_free(pl_host *host); /* may be NULL */

#endif
