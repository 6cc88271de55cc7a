/* mpi.h - the engine `mpi`: sums with the site's MPI library.
 *
 * Used where a launcher (mpirun, srun) started the ranks.  MPI cannot readmit a
 * rank: a lost rank ends the job, and the launcher or our supervisor restarts
 * it from its last checkpoint.  The launcher detects a rank that died; a frozen
 * rank is detected by a roll call of the ranks that wait for it.
 *
 * The traffic is neither authenticated nor encrypted by us.
 *
 * Threads: as collective.h; a thread of its own drives MPI while the caller
 * computes. */
#ifndef PL_SYNC_ALLREDUCE_MPI_MPI_H
#define PL_SYNC_ALLREDUCE_MPI_MPI_H

#include "sync/allreduce/collective.h"

typedef struct pl_mpi_opts {
    int64_t floats;       /* of the memory that is summed; required */
    int32_t workers;      /* expected number of ranks; required */
    int64_t heartbeat_ms; /* silence that means lost; default 5000 */
    int64_t join_ms;      /* until all ranks have joined; default 60000 */
    const char *module;   /* its file; NULL: next to the program, or where it is
                             installed */
} pl_mpi_opts;

/* PL_NOTFOUND, with the reason, if MPI is not installed. */
pl_status pl_mpi_new(pl_collective **out,
                     const pl_mpi_opts *opts) PL_MUST_CHECK;

/* PL_OK if pl_mpi_new could load MPI; otherwise the reason. */
pl_status pl_mpi_check(void) PL_MUST_CHECK;

/* What the launcher set in the environment: known before MPI is loaded. */
typedef struct pl_mpi_place {
    int32_t rank, size;
    int32_t local; /* ranks on this host; `size` if unknown */
} pl_mpi_place;

/* False: this process was not started by an MPI launcher. */
bool pl_mpi_launched(pl_mpi_place *out);

#endif
