/* task_keys.h - which keys a task of a job has, and whether it may do without.
 *
 * A supervised task gets its secret from the supervisor.  One started by hand
 * reads a key file; without, its job must stay on loopback unless the user
 * says --insecure.
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
    const char *environment;   /* of PACELINE_KEYS; NULL: not set */
    const char *program;       /* for messages; required */
} pl_task_keys_opts;

/* *has tells whether there are any.  PL_USAGE when there must be, or the file
 * cannot be used. */
pl_status pl_task_keys(pl_job_keys *out, bool *has,
                       const pl_task_keys_opts *opts) PL_MUST_CHECK;

#endif
