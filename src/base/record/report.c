/* The field tables of what tasks report: the numbers of a row, their ranges,
 * and the fields that a lost worker's row lacks. */
#include "base/record/report.h"

#include "base/host/counters.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

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
    { "test_top5_accuracy", PL_FIELD_REAL(pl_test_result, top5),
      .when = PL_WHEN_SET, .or_null = true },
    { "test_rmse", PL_FIELD_REAL(pl_test_result, rmse), .when = PL_WHEN_SET,
      .or_null = true },
    { "test_mae", PL_FIELD_REAL(pl_test_result, mae), .when = PL_WHEN_SET,
      .or_null = true },
    { "test_r2", PL_FIELD_REAL(pl_test_result, r2), .when = PL_WHEN_SET,
      .or_null = true },
};
const pl_fields pl_test_result_fields =
    PL_FIELDS(pl_test_result, test_result_rows);

/* Numbers that are left out where they are not known. */
#define COUNT_OF(type, member)                                                 \
    PL_FIELD_INT(type, member), .when = PL_WHEN_SET, .or_null = true,          \
                                .most = COUNT_MAX
#define REAL_OF(type, member)                                                  \
    PL_FIELD_REAL(type, member), .when = PL_WHEN_SET, .or_null = true

#define USED(member) COUNT_OF(pl_task_usage, member)

static const pl_field usage_rows[] = {
    { "bytes_sent", USED(bytes_sent) },
    { "bytes_received", USED(bytes_received) },
    { "messages_sent", USED(messages_sent) },
    { "messages_received", USED(messages_received) },
    { "peak_rss_mb", USED(peak_rss_mb) },
    { "alive_seconds", REAL_OF(pl_task_usage, alive_seconds) },
    { "user_seconds", REAL_OF(pl_task_usage, user_seconds) },
    { "system_seconds", REAL_OF(pl_task_usage, system_seconds) },
    { "queued_seconds", REAL_OF(pl_task_usage, queued_seconds) },
    { "disk_read_bytes", USED(disk_read_bytes) },
    { "disk_written_bytes", USED(disk_written_bytes) },
};
const pl_fields pl_task_usage_fields = PL_FIELDS(pl_task_usage, usage_rows);

static const pl_field peer_rows[] = {
    { "peer", PL_FIELD_CHARS(pl_peer_usage, peer) },
    { "bytes_sent", COUNT_OF(pl_peer_usage, bytes_sent) },
    { "bytes_received", COUNT_OF(pl_peer_usage, bytes_received) },
    { "messages_sent", COUNT_OF(pl_peer_usage, messages_sent) },
    { "messages_received", COUNT_OF(pl_peer_usage, messages_received) },
};
static const pl_fields peer_fields = PL_FIELDS(pl_peer_usage, peer_rows);

#define COUNT(member) COUNT_OF(pl_worker_report, member)
#define REAL(member)  REAL_OF(pl_worker_report, member)

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
    { "usual_step_seconds", REAL(usual_step_seconds) },
    { "throttled_seconds", REAL(throttled_seconds) },
    { "stolen_share", REAL(stolen_share) },
    { "held_seconds", REAL(held_seconds) },
    { "held_steps", REAL(held_steps) },
    { "link_busy_seconds", REAL(link_busy_seconds) },
    { "train_loss", REAL(train_loss) },
    { "train_loss_examples", COUNT(train_loss_examples) },
    { "dropped", COUNT(dropped) },
    { NULL, PL_FIELD_INLINE(pl_worker_report, usage, &pl_task_usage_fields) },
    { "events_dropped", COUNT(events_dropped) },
    { NULL, PL_FIELD_INLINE(pl_worker_report, test, &pl_test_result_fields),
      PL_FIELD_GIVEN(pl_worker_report, reported) },
    { "peers", PL_FIELD_LIST(pl_worker_report, peers, peer_count, &peer_fields),
      .when = PL_WHEN_SET, .most = PL_REPORT_PEERS_MAX },
    { "lost", PL_FIELD_BOOL(pl_worker_report, lost), .when = PL_WHEN_SET },
};
const pl_fields pl_worker_report_fields =
    PL_FIELDS(pl_worker_report, worker_rows);

#define HOST_AND_USAGE                                                         \
    { "host", PL_FIELD_CHARS(pl_task_report, host), .when = PL_WHEN_SET },     \
    {                                                                          \
        NULL, PL_FIELD_INLINE(pl_task_report, usage, &pl_task_usage_fields)    \
    }

static const pl_field server_rows[] = {
    { "index", PL_FIELD_INT(pl_task_report, index), .when = PL_WHEN_KNOWN },
    HOST_AND_USAGE,
};
const pl_fields pl_server_report_fields =
    PL_FIELDS(pl_task_report, server_rows);

static const pl_field evaluator_rows[] = { HOST_AND_USAGE };
const pl_fields pl_evaluator_report_fields =
    PL_FIELDS(pl_task_report, evaluator_rows);

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

double pl_task_usage_cpu(const pl_task_usage *usage)
{
    if (!(usage->alive_seconds >= PL_USAGE_LEAST_S))
        return NAN;
    return 100 * (usage->user_seconds + usage->system_seconds) /
           usage->alive_seconds;
}

pl_task_usage pl_task_usage_read(void)
{
    pl_counters counters = pl_counters_read();
    return (pl_task_usage) {
        .bytes_sent = -1,
        .bytes_received = -1,
        .messages_sent = -1,
        .messages_received = -1,
        .peak_rss_mb = pl_report_mb(counters.peak_bytes),
        .alive_seconds = counters.alive_s,
        .user_seconds = counters.user_s,
        .system_seconds = counters.system_s,
        .queued_seconds = counters.queued_s,
        .disk_read_bytes = counters.read_bytes,
        .disk_written_bytes = counters.written_bytes,
    };
}

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

void pl_task_report_read(pl_task_report *out)
{
    *out = (pl_task_report) { .usage = pl_task_usage_read() };
    gethostname(out->host, sizeof out->host - 1);
}

void pl_task_report_clear(pl_task_report *out)
{
    pl_fields_clear(&pl_server_report_fields, out);
}

int64_t pl_report_mb(int64_t bytes)
{
    int64_t mb = (int64_t)1 << 20;
    return bytes > 0 ? bytes / mb + (bytes % mb != 0) : -1;
}
