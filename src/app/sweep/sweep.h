/* sweep.h - run the cells of a sweep, one after another.
 *
 * Each cell is a `train` process, or a `launch` that trains over hosts, with a
 * run folder of its own, OUT/<cell>, and a log, OUT/log/<cell>.log.
 * OUT/sweep.json says what became of each (docs/formats/sweep.md), so the same
 * command goes on where it was ended.
 *
 * Threads: one. */
#ifndef PL_APP_SWEEP_SWEEP_H
#define PL_APP_SWEEP_SWEEP_H

#include "base/json/json.h"

/* Cells of all sweeps that run one after another. */
typedef struct pl_sweep_total {
    size_t cells;
    size_t done, failed;
    double took_s; /* what `took_count` cells took */
    size_t took_count;
} pl_sweep_total;

typedef struct pl_sweep_opts {
    const char *program;       /* required: for messages and process lists */
    const char *model;         /* required */
    const pl_json *cells;      /* required: of pl_sweep_plan */
    const pl_json *about;      /* what the sweep is about; or NULL */
    const char *out;           /* required: made when missing */
    const char *const *launch; /* words before `train`, NULL at the end: "launch
                                  --hosts a,b --"; NULL: train on this machine
                                */
    bool quiet;                /* no progress */
    const char *name;          /* of one among several sweeps; or NULL */
    pl_sweep_total *total;     /* of the several, counted up; or NULL */
} pl_sweep_opts;

/* Run what is not done.  A cell that fails is reported, and the others are
 * run; then the result is PL_IO and says how many.  PL_INTERRUPTED after
 * Ctrl-C, with the cell that was running saved.  PL_USAGE when `out` holds
 * another sweep. */
pl_status pl_sweep_run(const pl_sweep_opts *opts) PL_MUST_CHECK;

#endif
