/* sweep.h - run the cells of a sweep, one after another.
 *
 * Each cell is a `train` process, or a `launch` that trains over hosts, with a
 * run folder of its own, OUT/<cell>, and a log, OUT/log/<cell>.log.
 * OUT/sweep.json has the state of each (docs/formats/sweep.md), so the same
 * command resumes an interrupted sweep.
 *
 * Threads: one. */
#ifndef PL_APP_SWEEP_SWEEP_H
#define PL_APP_SWEEP_SWEEP_H

#include "base/json/json.h"

/* The cells of all sweeps of a series. */
typedef struct pl_sweep_total {
    size_t cells;
    size_t done, failed;
    double took_s; /* run time of `took_count` cells */
    size_t took_count;
} pl_sweep_total;

typedef struct pl_sweep_opts {
    const char *program;       /* required: for messages and process lists */
    const char *model;         /* required */
    const pl_json *cells;      /* required; from pl_sweep_plan */
    const pl_json *about;      /* the description of the sweep; or NULL */
    const char *out;           /* required; created if missing */
    const char *const *launch; /* words before `train`, NULL-terminated: "launch
                                  --hosts a,b --"; NULL: train on this
                                  machine */
    bool quiet;                /* no progress */
    const char *name;          /* of one of several sweeps; or NULL */
    pl_sweep_total *total;     /* of all sweeps, updated here; or NULL */
} pl_sweep_opts;

/* Run the cells that are not done.  A failed cell is reported, and the others
 * are run; the result is then PL_IO and has the number of failed cells.
 * PL_INTERRUPTED after Ctrl-C, with the running cell saved.  PL_USAGE when
 * `out` holds another sweep. */
pl_status pl_sweep_run(const pl_sweep_opts *opts) PL_MUST_CHECK;

#endif
