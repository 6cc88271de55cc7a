/* mpirun.h - the ranks of an MPI job, started by mpirun.
 *
 * mpirun owns the ranks: it starts them, passes on their output, and when one
 * dies it reports it (rank, host, signal) and ends the others.  It is our only
 * child, and ends with us.
 *
 * Threads: run from one that outlives the job. */
#ifndef PL_JOB_SUPERVISE_MPIRUN_H
#define PL_JOB_SUPERVISE_MPIRUN_H

#include "paceline/base.h"

#include <stdatomic.h>

typedef struct pl_mpirun_opts {
    const char *launcher; /* default "mpirun", searched in PATH */
    int32_t ranks;        /* required */
    const char *hosts;    /* "a,b", ranks assigned round-robin; default: this
                             machine, or the nodes of a Slurm allocation */
    const char *ssh;      /* how mpirun reaches them; default: its own choice */
    const char *program;  /* of the ranks; default: this one */
    char *const *argv;    /* required: the command of every rank */
    int64_t end_ms;       /* for ranks to end when asked to; default 60000 */
    const atomic_bool *interrupt; /* ask all ranks to end (SIGUSR1, which
                                     mpirun passes on); or NULL */
    const atomic_bool *hurry;     /* do not wait for that: end them (SIGTERM, by
                                     mpirun, then SIGKILL); or NULL */
} pl_mpirun_opts;

/* Start the ranks and wait until all have ended.  *exit_status as in a shell:
 * 128 + the signal if killed.  PL_NOTFOUND if there is no mpirun. */
pl_status pl_mpirun_run(const pl_mpirun_opts *opts,
                        int *exit_status) PL_MUST_CHECK;

#endif
