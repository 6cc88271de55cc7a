/* module.h - the interface between the program and MPI: a table of functions.
 *
 * The table comes from a module, paceline-mpi.so, the only code that is linked
 * to an MPI library; it is loaded when the engine is requested (mpi.c).  So the
 * program starts on hosts without MPI, and a site builds this one file
 * (module.c) against its own MPI.  The module uses no code of the program, and
 * its interface has plain C types only.
 *
 * Functions return MPI's own codes, 0 for success; `text` describes a code.
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

    /* Join the world, once per process. */
    int (*init)(pl_mpi_world **out);
    /* Leave the world; waits for the other ranks. */
    int (*finish)(pl_mpi_world *world);
    /* Free the memory only: `finish` would wait for a lost rank. */
    void (*forget)(pl_mpi_world *world);
    int (*rank)(const pl_mpi_world *world);
    int (*size)(const pl_mpi_world *world);

    /* Begin to replace `data` by its sum over all ranks, as operation `slot`,
     * 0 .. PL_MPI_SLOTS - 1. */
    int (*sum)(pl_mpi_world *world, int slot, float *data, int count);
    int (*sum_done)(pl_mpi_world *world, int slot, int *done);
    /* Begin to collect `bytes` bytes of each rank at every rank; `mine` and
     * `all` must stay valid until it is done. */
    int (*gather)(pl_mpi_world *world, const void *mine, void *all, int bytes);
    int (*gather_done)(pl_mpi_world *world, int *done);

    /* Send a note of at most PL_MPI_NOTE bytes to another rank: it is copied,
     * and dropped when too many earlier notes are still pending. */
    int (*send)(pl_mpi_world *world, int to, const void *note, int bytes);
    /* Receive the next note; *from is -1 when there is none. */
    int (*receive)(pl_mpi_world *world, int *from, void *note, int *bytes);

    void (*text)(int code, char *out, int room);
    void (*library)(char *out, int room); /* "Open MPI v4.1.4" */
} pl_mpi_table;

#define PL_MPI_SLOTS 256
#define PL_MPI_NOTE  1024

typedef const pl_mpi_table *pl_mpi_table_fn(void);

#endif
