/* supervisor.h - the supervisor: the tasks of a job on one host or many.
 *
 * A host (host.h) is this machine or one that is reached by its agent.  On this
 * machine servers, and workers if they listen, bind a port of their choice and
 * report it; then all get the cluster with the addresses.  A task that dies, or
 * that ps 0 (without servers: another worker) declares lost, is restarted, and
 * so is ps 0 when it is silent; if that is not possible, the job ends.  With
 * `chaos` the supervisor makes faults itself (chaos.h).  No process is left
 * behind, however the supervisor ends, and every wait has a limit.
 *
 * Threads: run from one that outlives the job; it calls `show`, `epoch` and
 * `print`. */
#ifndef PL_JOB_SUPERVISE_SUPERVISOR_H
#define PL_JOB_SUPERVISE_SUPERVISOR_H

#include "base/record/timeline.h"
#include "job/supervise/local/host_local.h"

#include <stdatomic.h>

/* The hosts of a job with several hosts. */
typedef struct pl_job_hosts {
    pl_host *const *hosts; /* [count] */
    int32_t count;
    const int32_t *host_of; /* [tasks]: servers, workers, evaluator */
} pl_job_hosts;

typedef struct pl_supervisor_opts {
    const pl_cluster *cluster; /* required; on this machine its addresses are
                                  ignored */
    const pl_job_hosts *hosts; /* their tasks know their addresses; NULL: all
                                  tasks are started on this machine */
    pl_host *here;             /* replaces this machine; its tasks report their
                                  addresses, too: host_threads.h; NULL:
                                  processes */
    char *const *argv;         /* required: the command of a task */
    const char *program;       /* on this machine; default: this one */
    const pl_secret *secret;   /* sent to tasks on this machine; NULL: none */
    const char *logs;          /* required: a folder for <role>-<index>.log */
    pl_timeline *timeline; /* records starts, losses and restarts; or NULL */
    int32_t restarts;      /* of each task; default 0 */
    bool workers_listen;   /* they report an address, as servers do */
    double chaos;          /* deliberate faults a second; default 0 */
    uint64_t chaos_seed;
    int64_t freeze_ms;  /* the longest of these; see chaos.h */
    int64_t silence_ms; /* silence of ps 0 that means lost; default: never */
    bool go_on;         /* continue without a worker that cannot be restarted */
    int64_t join_ms;    /* until all addresses are known; default 60000 */
    int64_t end_ms;     /* for tasks to end when asked to; default 60000 */
    int64_t kill_ms;    /* ... from SIGTERM to SIGKILL; default 10000 */
    const atomic_bool *interrupt; /* ask all to end; or NULL */
    void (*show)(void *context, const pl_job_task *tasks,
                 int count); /* a few times a second; or NULL */
    /* The chief has ended an epoch; or NULL. */
    void (*epoch)(void *context, const pl_epoch *epoch);
    /* A task has printed a line, if the host passes them on; or NULL. */
    void (*print)(void *context, const pl_job_task *task, bool error,
                  const char *line);
    void *context; /* of show, epoch and print */
} pl_supervisor_opts;

/* Start the tasks and wait until all have ended.  PL_OK: the chief ended with
 * status 0; PL_INTERRUPTED after an interrupt; PL_USAGE when a task rejected
 * its command line; otherwise the message names the task or host that failed,
 * the reason and the log. */
pl_status pl_supervisor_run(const pl_supervisor_opts *opts) PL_MUST_CHECK;

#endif
