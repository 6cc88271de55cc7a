/* run.h - the records in a run folder, also while the training writes them.
 *
 * Opening reads everything recorded so far; to see more of a run that is in
 * progress, open it again.  Damaged files are left out, up to the damage.
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

/* Its settings (run.json) and its result (summary.json) as JSON text; the
 * summary of a run that has not ended is NULL.  Both live as long as the
 * run. */
const char *pl_run_settings(const pl_run *run);
const char *pl_run_summary(const pl_run *run);

/* A value recorded over time: of a task ("worker-0", "ps-1") loss,
 * test_accuracy, ...; of a host its resources: cpu, ...  The arrays have
 * `count` numbers and live as long as the run. */
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

/* An event: a start, loss, restart, rollback, checkpoint, test or warning. */
typedef struct pl_run_incident {
    double time;                     /* seconds since 1970 */
    const char *kind;                /* "start", "lost", "checkpoint", ... */
    const char *task;                /* the task concerned; "": the job */
    int64_t step;                    /* -1: none */
    double test_loss, test_accuracy; /* NAN: not a test */
    const char *text;                /* details; "": none */
} pl_run_incident;
int32_t pl_run_incident_count(const pl_run *run);
pl_status pl_run_incident_get(const pl_run *run, int32_t index,
                              pl_run_incident *out) PL_MUST_CHECK;

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
