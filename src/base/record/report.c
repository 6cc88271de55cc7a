/* The field tables of what tasks report: which numbers a row has, how large
 * they may be, and what a lost worker's row leaves out. */
#include "base/record/report.h"

#include <math.h>
#include <stdio.h>

/* Sums over all rows do not overflow. */
#define COUNT_MAX (INT64_MAX / PL_REPORT_TASKS_MAX)

static const pl_field test_result_rows[] = {
    { "test_loss", PL_FIELD_REAL(pl_test_result, loss), .when = PL_WHEN_KNOWN,
      .or_null = true },
    { "test_accuracy", PL_FIELD_REAL(pl_test_result, accuracy),
      .when = PL_WHEN_KNOWN, .or_null = true },
    { "test_auc", PL_FIELD_REAL(pl_test_result, auc), .when = PL_WHEN_SET,
      .or_null = true },
    { "test_precision", PL_FIELD_REAL(pl_test_result, precision),
      .when = PL_WHEN_SET, .or_null = true },
    { "test_recall", PL_FIELD_REAL(pl_test_result, recall), .when = PL_WHEN_SET,
      .or_null = true },
    { "test_calibration", PL_FIELD_REAL(pl_test_result, calibration),
      .when = PL_WHEN_SET, .or_null = true },
};
const pl_fields pl_test_result_fields =
    PL_FIELDS(pl_test_result, test_result_rows);

/* A number that a lost worker's row leaves out. */
#define COUNT(member)                                                          \
    PL_FIELD_INT(pl_worker_report, member), .when = PL_WHEN_SET,               \
                                            .or_null = true, .most = COUNT_MAX
#define REAL(member)                                                           \
    PL_FIELD_REAL(pl_worker_report, member), .when = PL_WHEN_SET,              \
                                             .or_null = true

static const pl_field worker_rows[] = {
    { "index", PL_FIELD_INT(pl_worker_report, index), .when = PL_WHEN_KNOWN },
    { "host", PL_FIELD_CHARS(pl_worker_report, host),
      PL_FIELD_GIVEN(pl_worker_report, reported) },
    { "steps", COUNT(steps) },
    { "examples", COUNT(examples) },
    { "seconds", REAL(seconds) },
    { "input_share", REAL(input_share) },
    { "computing_share", REAL(computing_share) },
    { "sending_share", REAL(sending_share) },
    { "waiting_share", REAL(waiting_share) },
    { "dropped", COUNT(dropped) },
    { "bytes_sent", COUNT(bytes_sent) },
    { "bytes_received", COUNT(bytes_received) },
    { "peak_rss_mb", COUNT(peak_rss_mb) },
    { "events_dropped", COUNT(events_dropped) },
    { NULL, PL_FIELD_INLINE(pl_worker_report, test, &pl_test_result_fields),
      PL_FIELD_GIVEN(pl_worker_report, reported) },
    { "lost", PL_FIELD_BOOL(pl_worker_report, lost), .when = PL_WHEN_SET },
};
const pl_fields pl_worker_report_fields =
    PL_FIELDS(pl_worker_report, worker_rows);

#define PEAK                                                                   \
    PL_FIELD_INT(pl_memory_report, peak_rss_mb),                               \
        .when = PL_WHEN_KNOWN, .or_null = true, .most = COUNT_MAX

static const pl_field server_rows[] = {
    { "index", PL_FIELD_INT(pl_memory_report, index), .when = PL_WHEN_KNOWN },
    { "peak_rss_mb", PEAK },
};
const pl_fields pl_server_report_fields =
    PL_FIELDS(pl_memory_report, server_rows);

static const pl_field evaluator_rows[] = {
    { "peak_rss_mb", PEAK },
};
const pl_fields pl_evaluator_report_fields =
    PL_FIELDS(pl_memory_report, evaluator_rows);

static const pl_field job_rows[] = {
    { "restarts", PL_FIELD_INT(pl_job_reports, restarts) },
    { "mixed", PL_FIELD_BOOL(pl_job_reports, mixed) },
    { "dropped", PL_FIELD_INT(pl_job_reports, dropped) },
    { "workers",
      PL_FIELD_LIST(pl_job_reports, workers, worker_count,
                    &pl_worker_report_fields),
      .most = PL_REPORT_TASKS_MAX },
    { "servers",
      PL_FIELD_LIST(pl_job_reports, servers, server_count,
                    &pl_server_report_fields),
      .when = PL_WHEN_SET, .most = PL_REPORT_TASKS_MAX },
    { "evaluator",
      PL_FIELD_OBJECT(pl_job_reports, evaluator, &pl_evaluator_report_fields),
      PL_FIELD_GIVEN(pl_job_reports, has_evaluator) },
};
const pl_fields pl_job_reports_fields = PL_FIELDS(pl_job_reports, job_rows);

pl_worker_report pl_worker_report_lost(int32_t index, int64_t steps,
                                       int64_t dropped)
{
    pl_worker_report report;
    pl_fields_clear(&pl_worker_report_fields, &report);
    report.index = index;
    report.steps = steps;
    report.dropped = dropped;
    report.lost = true;
    return report;
}

pl_status pl_worker_report_parse(pl_worker_report *out, const char *text,
                                 size_t bytes)
{
    return pl_fields_parse(&pl_worker_report_fields, text, bytes, "report",
                           out);
}

int64_t pl_report_mb(int64_t bytes)
{
    int64_t mb = (int64_t)1 << 20;
    return bytes > 0 ? bytes / mb + (bytes % mb != 0) : -1;
}
