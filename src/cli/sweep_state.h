/* sweep_state.h - sweep.json: what became of the cells of a sweep.
 *
 * Threads: one. */
#ifndef PL_CLI_SWEEP_STATE_H
#define PL_CLI_SWEEP_STATE_H

#include "base/json.h"

/* The states of a cell, in the order of their names in the file. */
typedef enum pl_cell_state {
    PL_CELL_WAITING,
    PL_CELL_RUNNING, /* was begun: goes on from its last checkpoint */
    PL_CELL_DONE,
    PL_CELL_FAILED,
} pl_cell_state;

typedef struct pl_sweep_cell {
    const pl_json *plan; /* of pl_sweep_plan; borrowed */
    const char *name;
    pl_cell_state state;
    double seconds; /* that it took, in all */
    char *error;    /* of one that failed */
} pl_sweep_cell;

typedef struct pl_sweep_state {
    char *path; /* of the file */
    const char *model;
    pl_sweep_cell *cells;
    size_t count;
    pl_json *others; /* cells in the file that are not of this plan */
} pl_sweep_state;

/* Take the plan's cells, and their states from the file where it is there.
 * PL_USAGE when a cell was run with other flags, or its folder is not the
 * sweep's. */
pl_status pl_sweep_state_init(pl_sweep_state *state, const char *out,
                              const char *model,
                              const pl_json *plan) PL_MUST_CHECK;
void pl_sweep_state_close(pl_sweep_state *state); /* a zeroed one is fine */

pl_status pl_sweep_state_save(const pl_sweep_state *state) PL_MUST_CHECK;

#endif
