/* report.h - what each task of a job reports at its end, as JSON.
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
    double top5;                                /* of more than five classes */
    double rmse, mae, r2; /* of models that predict numbers */
} pl_test_result;
extern const pl_fields pl_test_result_fields;

/* What a task has used since its start: its own counters, the kernel's and
 * those of its connections. */
typedef struct pl_task_usage {
    int64_t bytes_sent, bytes_received;
    int64_t messages_sent, messages_received;
    int64_t peak_rss_mb;
    double alive_seconds;
    double user_seconds, system_seconds; /* of processors */
    double queued_seconds; /* ready to run without a processor (counters.h) */
    int64_t disk_read_bytes, disk_written_bytes;
} pl_task_usage;
extern const pl_fields pl_task_usage_fields;

/* The mean processor use of a task, in percent of one core; NAN: not known, or
 * the task was too short for a clock of 10 ms. */
#define PL_USAGE_LEAST_S 0.05
double pl_task_usage_cpu(const pl_task_usage *usage);

/* What this process has used so far; the caller fills in bytes and messages. */
pl_task_usage pl_task_usage_read(void);

/* Traffic with one other task. */
typedef struct pl_peer_usage {
    char peer[32]; /* "ps 1" */
    int64_t bytes_sent, bytes_received;
    int64_t messages_sent, messages_received;
} pl_peer_usage;

#define PL_REPORT_PEERS_MAX 64 /* further ones are left out */

/* A row of per_worker. */
typedef struct pl_worker_report {
    int32_t index;
    bool reported; /* false: it was lost before it could report */
    bool lost;
    char host[256];
    int64_t steps, examples;
    double seconds;
    double input_share, computing_share, sending_share, waiting_share;
    double usual_step_seconds; /* the median of its steps, without waiting */
    double throttled_seconds;  /* of training, without a processor because a
                                  quota was used up */
    double stolen_share; /* of the processor time that its host wanted while it
                            trained, taken by a hypervisor */
    /* In synchronous mode: seconds in which only its gradient was missing, and
     * the equivalent number of equally long steps. */
    double held_seconds, held_steps;
    /* In a ring: how long its link to the next worker carried bytes. */
    double link_busy_seconds;
    double train_loss;           /* train/losses.h; NAN: no step was made */
    int64_t train_loss_examples; /* in that mean */
    int64_t dropped;             /* gradients */
    pl_task_usage usage;
    int64_t events_dropped; /* records that are not in the event file */
    pl_test_result test;
    pl_peer_usage *peers; /* where the transport counts them separately */
    size_t peer_count;
} pl_worker_report;
extern const pl_fields pl_worker_report_fields;

/* The row of a worker that sent no report. */
pl_worker_report pl_worker_report_lost(int32_t index, int64_t steps,
                                       int64_t dropped);
/* PL_FORMAT: not a report.  Closed by pl_fields_close. */
pl_status pl_worker_report_parse(pl_worker_report *out, const char *text,
                                 size_t bytes) PL_MUST_CHECK;

/* A row of per_server, and the evaluator, which has no index. */
typedef struct pl_task_report {
    int32_t index;
    char host[256];
    pl_task_usage usage;
} pl_task_report;
extern const pl_fields pl_server_report_fields;
extern const pl_fields pl_evaluator_report_fields;

/* The report of this process, without bytes and messages. */
void pl_task_report_read(pl_task_report *out);
/* The report of a task that sent none. */
void pl_task_report_clear(pl_task_report *out);

/* Megabytes, rounded up; -1 for 0 bytes: not known. */
int64_t pl_report_mb(int64_t bytes);

/* All that the chief needs for the summary. */
typedef struct pl_job_reports {
    int32_t restarts;
    bool mixed;      /* the updates are not bitwise reproducible */
    int64_t dropped; /* gradients */
    pl_worker_report *workers;
    size_t worker_count;
    pl_task_report *servers;
    size_t server_count;
    bool has_evaluator;
    pl_task_report evaluator;
} pl_job_reports;
extern const pl_fields pl_job_reports_fields;

#define PL_REPORT_TASKS_MAX 65536 /* rows of a list */

#endif
