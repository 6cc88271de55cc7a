/* local.h - the supervisor: all tasks of a job on this machine.
 *
 * Every task is a direct child.  Servers, and workers where they listen, bind
 * a port of their own choice and report it; then all get the cluster with the
 * addresses.  A task that dies, or that ps 0 (without servers: another worker)
 * declares lost, is started again, and so is ps 0 when it is silent; when that
 * cannot be, the job ends.  With `chaos` the supervisor makes faults itself
 * (chaos.h), which are not counted as restarts.  No process is left behind,
 * however the supervisor itself ends, and nothing is waited for without a
 * limit.
 *
 * Threads: run from one that stays; `show` is called on it. */
#ifndef PL_DIST_LAUNCH_LOCAL_H
#define PL_DIST_LAUNCH_LOCAL_H

#include "dist/cluster.h"
#include "dist/launch/control.h"

#include <stdatomic.h>
#include <sys/types.h>

/* What is known of a task. */
/* In the environment of every task: "worker 1".  A program that does not pass
 * its arguments on is recognised by it. */
#define PL_LOCAL_TASK "PACELINE_TASK"

typedef struct pl_local_task {
    pl_task task;
    int32_t worker;           /* 0 .. workers - 1; -1: none */
    pid_t pid;                /* 0: not running */
    int32_t starts;           /* processes it has had */
    bool final;               /* said that the job is over */
    bool reported;            /* `status` is of this process */
    pl_task_status status;    /* the last one */
    int64_t earlier_examples; /* of its earlier processes */
    int64_t earlier_dropped;
} pl_local_task;

typedef struct pl_local_opts {
    const pl_cluster *cluster; /* required; its addresses are not looked at */
    const char *program;       /* file to run; default: this one */
    char *const *argv;         /* required: the command; --role, --index and
                                  --control are added behind it */
    const pl_secret *secret;   /* told to every task first; NULL: none */
    const char *logs;          /* required: a folder for <role>-<index>.log */
    int32_t restarts;          /* of each worker; default 0 */
    bool workers_listen;       /* they report an address, as servers do */
    double chaos;              /* faults a second made on purpose; default 0 */
    uint64_t chaos_seed;
    int64_t freeze_ms;  /* the longest of these; see chaos.h */
    int64_t silence_ms; /* of ps 0, after which it is lost; default: never */
    bool go_on;         /* without a worker that cannot be started again */
    int64_t join_ms;    /* until all addresses are known; default 60000 */
    int64_t end_ms;     /* for tasks to end when asked to; default 60000 */
    int64_t kill_ms;    /* ... from SIGTERM to SIGKILL; default 10000 */
    const atomic_bool *interrupt; /* ask all to end; or NULL */
    void (*show)(void *context, const pl_local_task *tasks,
                 int count); /* a few times a second; or NULL */
    void *context;           /* of show */
} pl_local_opts;

/* Start the tasks and stay until all have ended.  PL_OK: the chief ended with
 * status 0; PL_INTERRUPTED after an interrupt; PL_USAGE when a task refused
 * its command line; otherwise the message says which task failed, how, and
 * where its log is. */
pl_status pl_local_run(const pl_local_opts *opts) PL_MUST_CHECK;

#endif
