/* run.h - what a training left in its run folder, and what it is writing.
 *
 * Opening reads everything there is at that moment; to see more of a run that
 * still goes on, open it again.  Damaged files are left out, up to the damage.
 *
 * Threads: a run is read by one thread at a time. */
#ifndef PACELINE_RUN_H
#define PACELINE_RUN_H

#include <paceline/base.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct pl_run pl_run;

/* PL_NOTFOUND where there is no run. */
pl_status pl_run_open(pl_run **out, const char *folder) PL_MUST_CHECK;
void pl_run_free(pl_run *run); /* NULL is fine */

/* What it was started with (run.json) and what came of it (summary.json), as
 * JSON text; the summary of a run that has not ended is NULL.  Both live as
 * long as the run. */
const char *pl_run_settings(const pl_run *run);
const char *pl_run_summary(const pl_run *run);

/* A value that was recorded over time, of one task ("worker-0", "ps-1") or of
 * one host: loss, test_accuracy, ...; of a host its resources: cpu, ... The
 * arrays have `count` numbers and live as long as the run. */
typedef struct pl_run_series {
    const char *task;
    const char *name;
    bool host; /* `task` is a host, and `step` counts seconds */
    int64_t count;
    const double *step;
    const double *time; /* seconds since 1970; 0: not known */
    const double *value;
} pl_run_series;
int32_t pl_run_series_count(const pl_run *run);
pl_status pl_run_series_get(const pl_run *run, int32_t index,
                            pl_run_series *out) PL_MUST_CHECK;

/* Something that happened: starts, losses, restarts, rollbacks, checkpoints,
 * tests, warnings. */
typedef struct pl_run_incident {
    double time;                     /* seconds since 1970 */
    const char *kind;                /* "start", "lost", "checkpoint", ... */
    const char *task;                /* that it happened to; "": the job */
    int64_t step;                    /* -1: of no step */
    double test_loss, test_accuracy; /* NAN: not a test */
    const char *text;                /* in words; "": nothing to add */
} pl_run_incident;
int32_t pl_run_incident_count(const pl_run *run);
pl_status pl_run_incident_get(const pl_run *run, int32_t index,
                              pl_run_incident *out) PL_MUST_CHECK;

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
