/* summary.h - the result of a run: as JSON and as text.
 *
 * Threads: one. */
#ifndef PL_CLI_SUMMARY_H
#define PL_CLI_SUMMARY_H

#include "base/json.h"
#include "cli/job.h"
#include "dist/cluster.h"
#include "train/loop.h"

#include <stdio.h>

/* The numbers of a test, as "test_loss" and so on; of one that was not made,
 * null. */
pl_status pl_summary_score(pl_json *object, const pl_score *score,
                           bool tested) PL_MUST_CHECK;

/* One row of per_worker. */
typedef struct pl_summary_row_opts {
    const pl_loop_result *result;
    int32_t index; /* of the worker */
    int64_t bytes_sent, bytes_received;
    int64_t events_dropped; /* records that are not in the event file */
} pl_summary_row_opts;
pl_status pl_summary_row(pl_json **out,
                         const pl_summary_row_opts *opts) PL_MUST_CHECK;

typedef struct pl_summary_opts {
    const pl_job *job;
    const pl_loop_result *result;
    const char *hash;     /* of the parameters; NULL: they are the job's */
    const char *run;      /* the run folder */
    int64_t resumed_step; /* 0: not resumed */
    int64_t left_out;     /* examples that no step of an epoch reads */
    double startup_s;     /* from the start of the process to step 1 */
    int64_t events_dropped;
    /* Of a job of several tasks; else NULL and 0. */
    const pl_cluster *cluster;
    const pl_json *reports; /* what server 0 gathered */
    double update_seconds;  /* from the first update to the last */
    double resumed_seconds; /* of training before */
    int64_t faults;         /* made by --chaos */
} pl_summary_opts;

/* The object that --json prints and summary.json holds. */
pl_status pl_summary_make(pl_json **out,
                          const pl_summary_opts *opts) PL_MUST_CHECK;

/* The same for people, a few lines. */
pl_status pl_summary_print(const pl_json *summary, FILE *file) PL_MUST_CHECK;

#endif
