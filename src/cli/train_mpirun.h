/* train_mpirun.h - the supervisor of an MPI job on this machine: mpirun with
 * all ranks, again and again until it ends well.
 *
 * Threads: one. */
#ifndef PL_CLI_TRAIN_MPIRUN_H
#define PL_CLI_TRAIN_MPIRUN_H

#include "cli/commands.h"
#include "cli/options.h"

/* A job that failed goes on from its last checkpoint, up to --restarts times,
 * with one worker less each time down to --min-workers. */
pl_status pl_train_mpirun(const pl_app *app, pl_options *options) PL_MUST_CHECK;

#endif
