/* module.h - what the program knows of MPI: a table of functions.
 *
 * The table comes from a module, paceline-mpi.so, the only code that is linked
 * to an MPI library; it is loaded when the engine is asked for (mpi.c).  So
 * the program starts where no MPI is installed, and a site builds this one
 * file (module.c) against the MPI it has.  The module uses nothing of the
 * program: plain C types go in and out.
 *
 * Functions return MPI's own codes, 0 for success; `text` tells what a code
 * means.
 *
 * Threads: one call at a time, from any thread (MPI_THREAD_SERIALIZED). */
#ifndef PL_SYNC_ALLREDUCE_MPI_MODULE_H
#define PL_SYNC_ALLREDUCE_MPI_MODULE_H

#include <stdint.h>

#define PL_MPI_TABLE  1 /* changes with the table below */
#define PL_MPI_SYMBOL "paceline_mpi_table"

typedef struct pl_mpi_world pl_mpi_world;

typedef struct pl_mpi_table {
    int32_t version; /* PL_MPI_TABLE */

    /* Join the world, once a process. */
    int (*init)(pl_mpi_world **out);
    /* Leave it; waits for the others. */
    int (*finish)(pl_mpi_world *world);
    /* Free the memory only: a lost rank would be waited for. */
    void (*forget)(pl_mpi_world *world);
    int (*rank)(const pl_mpi_world *world);
    int (*size)(const pl_mpi_world *world);

    /* Begin to replace `data` by its sum over all ranks, as operation `slot`,
     * 0 .. PL_MPI_SLOTS - 1. */
    int (*sum)(pl_mpi_world *world, int slot, float *data, int count);
    int (*sum_done)(pl_mpi_world *world, int slot, int *done);
    /* Begin to collect `bytes` bytes of each rank, at all; both stay. */
    int (*gather)(pl_mpi_world *world, const void *mine, void *all, int bytes);
    int (*gather_done)(pl_mpi_world *world, int *done);

    /* A note to another rank, at most PL_MPI_NOTE bytes: copied, and dropped
     * when earlier ones still wait. */
    int (*send)(pl_mpi_world *world, int to, const void *note, int bytes);
    /* The next note; *from is -1 when there is none. */
    int (*receive)(pl_mpi_world *world, int *from, void *note, int *bytes);

    void (*text)(int code, char *out, int room);
    void (*library)(char *out, int room); /* "Open MPI v4.1.4" */
} pl_mpi_table;

#define PL_MPI_SLOTS 256
#define PL_MPI_NOTE  1024

typedef const pl_mpi_table *pl_mpi_table_fn(void);

#endif
