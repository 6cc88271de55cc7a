/* train_mpirun.h - the supervisor of an MPI job: mpirun with all ranks, again
 * and again until it ends well.
 *
 * Threads: one. */
#ifndef PL_APP_LAUNCH_TRAIN_MPIRUN_H
#define PL_APP_LAUNCH_TRAIN_MPIRUN_H

#include "app/app.h"
#include "app/options/options.h"

/* A job that failed goes on from its last checkpoint, up to --restarts times,
 * with one worker less each time down to --min-workers. */
typedef struct pl_train_mpirun_opts {
    const pl_app *app;   /* required */
    pl_options *options; /* required */
    /* Where the ranks run, as mpirun.h has it; NULL: on this machine. */
    const char *hosts, *ssh, *program;
} pl_train_mpirun_opts;
pl_status pl_train_mpirun(const pl_train_mpirun_opts *opts) PL_MUST_CHECK;

#endif
