/* summary.h - the result of a run: as a struct, and as text.
 *
 * Threads: one. */
#ifndef PL_APP_RUN_SUMMARY_H
#define PL_APP_RUN_SUMMARY_H

#include "app/train/coding.h"
#include "app/train/job.h"
#include "base/record/summary.h"
#include "job/cluster/cluster.h"
#include "job/supervise/control.h"
#include "train/loop/loop.h"

#include <stdio.h>

/* The numbers of a test; NAN when it was not made. */
pl_test_result pl_summary_test(const pl_score *score, bool tested);

/* One row of per_worker. */
typedef struct pl_summary_row_opts {
    const pl_loop_result *result;
    int32_t index;          /* of the worker */
    int64_t events_dropped; /* records missing in the event file */
} pl_summary_row_opts;
/* The caller fills in the traffic of connections. */
pl_worker_report pl_summary_row(const pl_summary_row_opts *opts);

typedef struct pl_summary_opts {
    const pl_job *job;
    const pl_loop_result *result;
    const char *hash;     /* of the parameters; NULL: use the job's */
    const char *run;      /* the run folder */
    int64_t resumed_step; /* 0: not resumed */
    int64_t left_out;     /* examples that the steps of an epoch do not read */
    double startup_s;     /* from the start of the process to step 1 */
    int64_t events_dropped;
    /* For a job of several tasks; otherwise NULL and 0. */
    const pl_cluster *cluster;
    pl_job_reports *reports;     /* their lists move into the summary */
    double update_seconds;       /* from the first update to the last */
    double resumed_seconds;      /* of training before the resume */
    const pl_job_counts *counts; /* the supervisor's; NULL: no supervisor */
    bool shared;                 /* shared memory with the first server */
    bool threads;     /* the tasks are threads of one process, whose usage only
                         the chief's row has */
    pl_coding coding; /* the chief's */
} pl_summary_opts;

/* The contents of summary.json, as --json prints them; the texts are borrowed
 * from the options.  The caller closes it (pl_summary_close). */
pl_status pl_summary_make(pl_summary *out,
                          const pl_summary_opts *opts) PL_MUST_CHECK;

/* Print it as text, a few lines. */
void pl_summary_print(const pl_summary *s, FILE *file);

#endif
