/* mpi.h - the engine `mpi`: sums by the MPI library of this site.
 *
 * Used where a launcher (mpirun, srun) started the ranks.  MPI cannot take a
 * rank back: a lost rank ends the job, and the launcher or our supervisor
 * starts it again from its last checkpoint.  A rank that died is noticed by
 * the launcher; one that is frozen is found by a roll call of those who wait
 * for it.
 *
 * What travels is neither authenticated nor encrypted by us.
 *
 * Threads: as collective.h; a thread of its own keeps MPI going while the
 * caller computes. */
#ifndef PL_SYNC_ALLREDUCE_MPI_MPI_H
#define PL_SYNC_ALLREDUCE_MPI_MPI_H

#include "sync/allreduce/collective.h"

typedef struct pl_mpi_opts {
    int64_t floats;       /* of the memory that is summed; required */
    int32_t workers;      /* ranks there must be; required */
    int64_t heartbeat_ms; /* silence that means lost; default 5000 */
    int64_t join_ms;      /* until all ranks have come; default 60000 */
    const char *module;   /* its file; NULL: beside the program, or where it
                             is installed */
} pl_mpi_opts;

/* PL_NOTFOUND, with the reason, where MPI is not installed. */
pl_status pl_mpi_new(pl_collective **out,
                     const pl_mpi_opts *opts) PL_MUST_CHECK;

/* PL_OK where pl_mpi_new could load MPI; else why it could not. */
pl_status pl_mpi_check(void) PL_MUST_CHECK;

/* What the launcher has told this process: known before MPI is loaded. */
typedef struct pl_mpi_place {
    int32_t rank, size;
    int32_t local; /* ranks on this host; `size` where it was not told */
} pl_mpi_place;

/* False: no launcher of MPI started this process. */
bool pl_mpi_launched(pl_mpi_place *out);

#endif
