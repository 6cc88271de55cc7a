/* report.h - what the tasks of a job report of themselves at its end, as JSON.
 *
 * A worker writes its row (app), server 0 or the first worker of a ring gathers
 * the rows (sync), the chief puts them into the summary (app), and reports are
 * drawn from them later (observe).  The structs and their field tables are
 * here, below all of these.
 *
 * A number that is not known is -1 or NAN.
 *
 * Threads: none of its own. */
#ifndef PL_BASE_RECORD_REPORT_H
#define PL_BASE_RECORD_REPORT_H

#include "base/json/fields.h"

/* The result of a test; NAN: not measured, or not for this model. */
typedef struct pl_test_result {
    double loss, accuracy;
    double auc, precision, recall, calibration; /* of yes-or-no models */
} pl_test_result;
extern const pl_fields pl_test_result_fields;

/* A row of per_worker. */
typedef struct pl_worker_report {
    int32_t index;
    bool reported; /* false: it was lost before it could report */
    bool lost;
    char host[256];
    int64_t steps, examples;
    double seconds;
    double input_share, computing_share, sending_share, waiting_share;
    int64_t dropped; /* gradients */
    int64_t bytes_sent, bytes_received;
    int64_t peak_rss_mb;
    int64_t events_dropped; /* records that are not in the event file */
    pl_test_result test;
} pl_worker_report;
extern const pl_fields pl_worker_report_fields;

/* The row of a worker that made no report. */
pl_worker_report pl_worker_report_lost(int32_t index, int64_t steps,
                                       int64_t dropped);
/* PL_FORMAT: not a report. */
pl_status pl_worker_report_parse(pl_worker_report *out, const char *text,
                                 size_t bytes) PL_MUST_CHECK;

/* A row of per_server, and the evaluator, which has no index. */
typedef struct pl_memory_report {
    int32_t index;
    int64_t peak_rss_mb;
} pl_memory_report;
extern const pl_fields pl_server_report_fields;
extern const pl_fields pl_evaluator_report_fields;

/* Megabytes, rounded up; -1 for 0 bytes: not known. */
int64_t pl_report_mb(int64_t bytes);

/* All that the chief needs for the summary. */
typedef struct pl_job_reports {
    int32_t restarts;
    bool mixed;      /* the updates do not repeat bit by bit */
    int64_t dropped; /* gradients */
    pl_worker_report *workers;
    size_t worker_count;
    pl_memory_report *servers;
    size_t server_count;
    bool has_evaluator;
    pl_memory_report evaluator;
} pl_job_reports;
extern const pl_fields pl_job_reports_fields;

#define PL_REPORT_TASKS_MAX 65536 /* rows of a list */

#endif
