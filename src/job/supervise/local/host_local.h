/* host_local.h - this machine as a host: each task is a child with a control
 * socket, whose standard error goes to a log.
 *
 * The tasks end with the thread that started them, however that ends. */
#ifndef PL_JOB_SUPERVISE_LOCAL_HOST_LOCAL_H
#define PL_JOB_SUPERVISE_LOCAL_HOST_LOCAL_H

#include "job/supervise/host.h"
#include "net/keys.h"

/* In the environment of every task: "worker 1".  It detects a program that does
 * not pass its arguments on. */
#define PL_HOST_TASK "PACELINE_TASK"

typedef struct pl_host_local_opts {
    const char *program;     /* file to run; default: this one */
    char *const *argv;       /* required: the command; --role, --index and
                                --control are appended */
    const pl_secret *secret; /* sent first to every task; NULL: none */
    const char *logs;        /* required: a folder for <role>-<index>.log */
    int tasks;               /* required: slots 0 .. tasks - 1 */
} pl_host_local_opts;

pl_status pl_host_local_new(pl_host **out,
                            const pl_host_local_opts *opts) PL_MUST_CHECK;
void pl_host_local_free(pl_host *host); /* may be NULL */

#endif
