/* host.h - a place where tasks of a job run, for the supervisor.
 *
 * There are three: this machine (local/host_local.h), whose tasks are our
 * children; this process (local/host_threads.h), whose tasks are threads; and a
 * host on which ssh or srun started an agent (job/hosts/host_agent.h).  A host
 * starts processes, sends them signals and control messages, and reports what
 * happens to them; it makes no decisions.
 *
 * Threads: one, the supervisor's. */
#ifndef PL_JOB_SUPERVISE_HOST_H
#define PL_JOB_SUPERVISE_HOST_H

#include "job/supervise/messages.h"

#include <poll.h>
#include <sys/types.h>

typedef struct pl_host pl_host;

/* The state of a task. */
typedef struct pl_job_task {
    pl_task task;
    int32_t worker; /* 0 .. workers - 1; -1: none */
    int32_t slot;   /* its number in the job: servers first */
    pl_host *host;
    bool running;
    pid_t pid;             /* on this machine; 0: not running, or elsewhere */
    int32_t starts;        /* processes it has had */
    bool final;            /* reported that the job is over */
    bool reported;         /* `status` belongs to this process */
    pl_task_status status; /* the last one */
    int64_t earlier_examples; /* of its earlier processes */
    int64_t earlier_dropped;
} pl_job_task;

#define PL_HOST_SAID 1024 /* bytes of a last line, with the NUL */

/* What happens to a task. */
typedef struct pl_host_events {
    void (*message)(void *context, pl_task task,
                    const pl_control_message *message);
    void (*output)(void *context, pl_task task, bool error, const char *line);
    /* `ended` as waitpid returns it; `said` is the last line of its standard
     * error. */
    void (*ended)(void *context, pl_task task, int ended, const char *said);
    void *context;
} pl_host_events;

typedef struct pl_host_ops {
    /* Start the next process of a task, and set its pid if it has one. */
    pl_status (*start)(pl_host *host, pl_job_task *task) PL_MUST_CHECK;
    void (*signal)(pl_host *host, const pl_job_task *task, int number);
    /* Send to a task's control socket; NULL if tasks have none.  It does not
     * fail for a task that is gone: its end reports that. */
    pl_status (*tell)(pl_host *host, const pl_job_task *task,
                      const pl_control_message *message) PL_MUST_CHECK;
    /* Show the last lines that a task logged; NULL if all lines were already
     * shown. */
    void (*last_lines)(pl_host *host, const pl_job_task *task, int lines,
                       char *text, size_t room);
    /* The descriptors to wait for: at most one per task. */
    int (*descriptors)(const pl_host *host, struct pollfd *polls, int room);
    /* Report events, without blocking.  A failure: the host is lost, and its
     * tasks with it. */
    pl_status (*turn)(pl_host *host,
                      const pl_host_events *events) PL_MUST_CHECK;
} pl_host_ops;

struct pl_host {
    const pl_host_ops *ops;
    const char *name; /* NULL: this machine */
    bool lost;        /* declared by its supervisor */
};

#endif
