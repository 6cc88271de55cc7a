/* many.h - the launcher: the tasks of a job on many hosts.
 *
 * Asks each host whether it can do its part, finds ports, gives each task the
 * cluster (TF_CONFIG) and the job's secret, starts all, passes on what they
 * print, and stays until the job is over.  A task that was killed is started
 * again; a host that is silent is named.  However it ends, no task stays
 * behind on any host.
 *
 * Threads: one, which stays. */
#ifndef PL_DIST_LAUNCH_MANY_H
#define PL_DIST_LAUNCH_MANY_H

#include "dist/launch/crew.h"
#include "net/keys.h"

/* In the environment of each task: the launcher keeps its log. */
#define PL_AGENT_LOGS "PACELINE_LAUNCHED"

typedef struct pl_many_task {
    pl_task task;
    int32_t worker; /* 0 .. workers - 1; -1: none */
    int32_t host;   /* of the hosts */
    int32_t starts;
    bool running;
} pl_many_task;

typedef struct pl_many_opts {
    pl_crew *crew;             /* required; all are borrowed */
    const pl_cluster *cluster; /* required; without addresses, tasks are dealt
                                  to the hosts in turns */
    char *const *argv;         /* required: "paceline train ..." of each task,
                                  without --role, --index and --cluster */
    const char *folder;        /* required: to work in, where it is there */
    const pl_secret *secret;   /* required */
    const char *secret_file;   /* the secret is in this key file, which all
                                  hosts see, and is not sent; NULL: it is sent
                                  to the agents */
    const char *logs;          /* required: a folder for <role>-<index>.log */
    int32_t restarts;          /* of each task that was killed */
    bool go_on;                /* without a worker that is lost */
    int64_t try_ms;    /* for hosts to look at the data; default 300 s */
    int64_t silent_ms; /* until a host is lost; default 4000 */
    int64_t end_ms;    /* for tasks to end; default 20000 */
    const atomic_bool *interrupt; /* end all; or NULL */
    /* A line that a task has printed. */
    void (*print)(void *context, const pl_many_task *task, const char *host,
                  bool error, const char *line);
    void *context;
} pl_many_opts;

/* Only ask each host whether it can do its part. */
pl_status pl_many_check(const pl_many_opts *opts) PL_MUST_CHECK;

/* PL_OK: the chief ended with status 0; PL_INTERRUPTED; PL_USAGE when a task
 * refused its command line; otherwise the message says which task or host
 * failed, how, and where the log is. */
pl_status pl_many_run(const pl_many_opts *opts) PL_MUST_CHECK;

#endif
