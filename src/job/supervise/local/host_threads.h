/* host_threads.h - this process as a host: tasks are threads of it.
 *
 * For the supervisor they are ordinary tasks with a control socket each.  But a
 * thread cannot be killed: every signal asks it to end, as a message does, and
 * freeing the host waits for all threads.
 *
 * Threads: one, the supervisor's, and one for each task. */
#ifndef PL_JOB_SUPERVISE_LOCAL_HOST_THREADS_H
#define PL_JOB_SUPERVISE_LOCAL_HOST_THREADS_H

#include "base/error.h"
#include "job/supervise/host.h"
#include "net/keys.h"

typedef struct pl_host_threads_opts {
    int tasks;               /* in total; required */
    const pl_secret *secret; /* sent to each; NULL: none */
    /* Run a task, on a thread of its own, which owns `control`. */
    pl_status (*run)(void *context, pl_task task, int control);
    void *context;
} pl_host_threads_opts;

pl_status pl_host_threads_new(pl_host **out,
                              const pl_host_threads_opts *opts) PL_MUST_CHECK;
/* Waits for all threads.  If `failed` is a failure of the job, it is replaced
 * by that of the task where it began: the supervisor's message is about
 * processes and their logs. */
void pl_host_threads_free(pl_host *host, pl_error *failed);

#endif
