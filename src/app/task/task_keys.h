/* task_keys.h - the keys of a task of a job, and whether it may run without
 * keys.
 *
 * A supervised task gets its secret from the supervisor.  A task started by
 * hand reads a key file; without one, its job must stay on loopback unless
 * --insecure is given.
 *
 * Threads: one. */
#ifndef PL_APP_TASK_TASK_KEYS_H
#define PL_APP_TASK_TASK_KEYS_H

#include "app/options/options.h"
#include "job/cluster/cluster.h"
#include "job/supervise/control.h"
#include "net/keys.h"

typedef struct pl_task_keys_opts {
    const pl_options *options; /* required */
    const pl_cluster *cluster; /* required */
    pl_control *control;       /* NULL: started by hand */
    const char *environment;   /* value of PACELINE_KEYS; NULL: not set */
    const char *program;       /* for messages; required */
} pl_task_keys_opts;

/* *has: whether there are keys.  PL_USAGE when keys are required, or the file
 * cannot be used. */
pl_status pl_task_keys(pl_job_keys *out, bool *has,
                       const pl_task_keys_opts *opts) PL_MUST_CHECK;

#endif
