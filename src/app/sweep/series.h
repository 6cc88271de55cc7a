/* series.h - several sweeps, planned together and run one after another.
 *
 * Threads: one. */
#ifndef PL_APP_SWEEP_SERIES_H
#define PL_APP_SWEEP_SERIES_H

#include "app/app.h"
#include "base/json/json.h"

typedef struct pl_series_opts {
    const pl_app *app;  /* required */
    char *const *files; /* sweep files, or folders of *.sweep */
    size_t file_count;
    const char *grid; /* instead of files: a grid for `model` */
    const char *model;
    const char *out;  /* NULL: sweeps, or sweeps/quick */
    const char *data; /* the next five as in pl_sweep_plan_opts */
    char *const *flags;
    int flag_count;
    int64_t repeat;
    bool quick;
    bool quiet;                /* no progress */
    const char *const *launch; /* as in pl_sweep_opts */
} pl_series_opts;

typedef struct pl_series_sweep {
    char *file, *name, *out;
    const char *model; /* the spec's */
    pl_json *spec, *cells, *about;
} pl_series_sweep;

typedef struct pl_series {
    const pl_series_opts *opts;
    pl_series_sweep *list;
    size_t count;
    bool many; /* each has its own folder below `out` */
    char *out; /* the folder of all sweeps */
} pl_series;

/* Read and check all sweeps before one runs.  The sweeps of a folder, or of
 * more than one file, go to <out>/<name of the file>/ each; a single file goes
 * to <out>, or if that is NULL also to a folder with its name.  PL_USAGE names
 * the file. */
pl_status pl_series_init(pl_series *series,
                         const pl_series_opts *opts) PL_MUST_CHECK;
void pl_series_close(pl_series *series); /* a zeroed one is fine */

/* Run them in order, with one estimate of the time left.  A failed cell does
 * not stop the others; the result is then PL_IO and has the number of failed
 * cells. PL_INTERRUPTED after Ctrl-C; the same call resumes. */
pl_status pl_series_run(const pl_series *series) PL_MUST_CHECK;

#endif
