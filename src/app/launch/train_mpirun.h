/* train_mpirun.h - the supervisor of an MPI job: runs mpirun with all ranks
 * until the job succeeds.
 *
 * Threads: one. */
#ifndef PL_APP_LAUNCH_TRAIN_MPIRUN_H
#define PL_APP_LAUNCH_TRAIN_MPIRUN_H

#include "app/app.h"
#include "app/options/options.h"

/* A failed job resumes from its last checkpoint, up to --restarts times, each
 * time with one worker less, down to --min-workers. */
typedef struct pl_train_mpirun_opts {
    const pl_app *app;   /* required */
    pl_options *options; /* required */
    /* The hosts of the ranks, as in mpirun.h; NULL: this machine. */
    const char *hosts, *ssh, *program;
} pl_train_mpirun_opts;
pl_status pl_train_mpirun(const pl_train_mpirun_opts *opts) PL_MUST_CHECK;

#endif
