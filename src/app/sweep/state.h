/* state.h - sweep.json: the states of the cells of a sweep.
 *
 * Threads: one. */
#ifndef PL_APP_SWEEP_STATE_H
#define PL_APP_SWEEP_STATE_H

#include "base/json/fields.h"

/* The states of a cell, in the order of their names in the file. */
typedef enum pl_cell_state {
    PL_CELL_WAITING,
    PL_CELL_RUNNING, /* was started: resumes from its last checkpoint */
    PL_CELL_DONE,
    PL_CELL_FAILED,
} pl_cell_state;

typedef struct pl_sweep_cell {
    const pl_json *args; /* flags: an array of texts; borrowed from the plan,
                            like all fields up to `published` */
    const char *name;
    const pl_json *values; /* {flag: value} of the grid; NULL: not known */
    int64_t repeat;
    const pl_json *published; /* {result: number}; NULL: none */
    pl_cell_state state;
    double seconds; /* run time in total */
    char *error;    /* of a failed cell */
} pl_sweep_cell;
extern const pl_fields pl_sweep_cell_fields;

#define PL_SWEEP_FILE_CELLS_MAX 1000000

/* The contents of the file. */
typedef struct pl_sweep_file {
    int64_t format;
    const char *model;
    const pl_json *about; /* observe/runs/experiment.h; NULL: none */
    pl_sweep_cell *cells;
    size_t count;
} pl_sweep_file;
extern const pl_fields pl_sweep_file_fields;

typedef struct pl_sweep_state {
    char *path; /* of the file */
    const char *model;
    const pl_json *about;
    pl_sweep_cell *cells;
    size_t count;
    pl_sweep_file others; /* cells in the file that this plan does not have */
    pl_json *own_json;    /* the memory that they point into */
} pl_sweep_state;

/* Take the plan's cells, and their states from the file if it exists; `about`
 * (or NULL) goes into the file.  Both must outlive the state.  PL_USAGE when a
 * cell was run with other flags, or its folder is not the sweep's. */
pl_status pl_sweep_state_init(pl_sweep_state *state, const char *out,
                              const char *model, const pl_json *about,
                              const pl_json *plan) PL_MUST_CHECK;
void pl_sweep_state_close(pl_sweep_state *state); /* a zeroed one is fine */

pl_status pl_sweep_state_save(const pl_sweep_state *state) PL_MUST_CHECK;

#endif
