/* metric.c - the table of metrics: a number to be shown with a unit has a row
 * here, which every figure, table of choices and file uses. */
#include "observe/model/metric.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const pl_metric rows[] = {
    { "test_accuracy", "test accuracy", "%", 100, true },
    { "test_auc", "test AUC", "", 1, true },
    { "test_loss", "test loss", "", 1, true },
    { "test_rmse", "test RMSE", "", 1, true },
    { "test_mae", "test MAE", "", 1, true },
    { "test_r2", "test R2", "", 1, true },
    { "test_top5_accuracy", "test top-5 accuracy", "%", 100, true },
    { "test_precision", "test precision", "%", 100, true },
    { "test_recall", "test recall", "%", 100, true },
    { "loss", "training loss", "", 1, false },
    { "train_loss", "training loss", "", 1, true },
    { "accuracy", "training accuracy", "%", 100, false },
    { "seconds", "training time", "s", 1, true },
    { "steps", "steps", "", 1, true },
    { "epochs", "epochs", "", 1, true },
    { "target_step", "step of the target", "", 1, true },
    { "target_seconds", "time to the target", "s", 1, true },
    { "examples_per_s", "throughput", "examples/s", 1, true },
    { "seconds_per_step", "time per step", "s", 1, true },
    { "steps_per_s", "steps per second", "1/s", 1, true },
    { "computing_share", "computing", "% of time", 100, true },
    { "waiting_share", "waiting", "% of time", 100, true },
    { "sending_share", "sending", "% of time", 100, true },
    { "input_share", "reading data", "% of time", 100, true },
    { "cpu_percent", "CPU of all tasks", "% of a core", 1, true },
    { "peak_rss_mb", "peak memory, largest task", "MB", 1, true },
    { "total_rss_mb", "peak memory, all tasks", "MB", 1, true },
    { "bytes_sent", "sent", "MB", 1e-6, true },
    { "bytes_received", "received", "MB", 1e-6, true },
    { "worker_cpu_percent", "CPU of a worker", "% of a core", 1, true },
    { "ps_cpu_percent", "CPU of a server", "% of a core", 1, true },
    { "evaluator_cpu_percent", "CPU of the evaluator", "% of a core", 1, true },
    { "worker_rss_mb", "peak memory, largest worker", "MB", 1, true },
    { "ps_rss_mb", "peak memory, largest server", "MB", 1, true },
    { "evaluator_rss_mb", "peak memory, evaluator", "MB", 1, true },
    { "worker_bytes_sent", "sent by a worker", "MB", 1e-6, true },
    { "worker_bytes_received", "received by a worker", "MB", 1e-6, true },
    { "worker_messages_sent", "messages sent by a worker", "", 1, true },
    { "worker_messages_received", "messages received by a worker", "", 1,
      true },
    { "ps_bytes_sent", "sent by a server", "MB", 1e-6, true },
    { "ps_bytes_received", "received by a server", "MB", 1e-6, true },
    { "ps_messages_sent", "messages sent by a server", "", 1, true },
    { "ps_messages_received", "messages received by a server", "", 1, true },
    { "disk_read_bytes", "read from disk", "MB", 1e-6, true },
    { "disk_written_bytes", "written to disk", "MB", 1e-6, true },
    { "startup_seconds", "start-up", "s", 1, true },
    { "eval_seconds", "testing", "s", 1, true },
    { "checkpoint_seconds", "checkpoints", "s", 1, true },
    { "restarts", "restarts", "", 1, true },
    { "rolled_back", "steps rolled back", "", 1, true },
    { "dropped_gradients", "dropped gradients", "", 1, true },
    { "learning_rate", "learning rate", "", 1, false },
    { "gradient_norm", "gradient norm", "", 1, false },
    { "staleness", "staleness", "updates", 1, false },
    { "updates_per_s", "updates of the server", "1/s", 1, false },
    { "sent_bytes_per_s", "sent", "MB/s", 1e-6, false },
    { "received_bytes_per_s", "received", "MB/s", 1e-6, false },
    { "job_cpu", "CPU of the job", "% of a core", 1, false },
    { "worker_cpu", "CPU of the workers", "% of a core", 1, false },
    { "ps_cpu", "CPU of the servers", "% of a core", 1, false },
    { "cpu", "CPU of the host", "% of all cores", 1, false },
    { "job_rss_mb", "memory of the job", "MB", 1, false },
    { "memory_mb", "memory of the host", "MB", 1, false },
    { "task_cpu", "CPU of the task", "% of a core", 1, false },
    { "rss_mb", "memory of the task", "MB", 1, false },
    { "job_sent_bytes_per_s", "sent by the job", "MB/s", 1e-6, false },
    { "job_received_bytes_per_s", "received by the job", "MB/s", 1e-6, false },
    { "job_read_bytes_per_s", "disk reads of the job", "MB/s", 1e-6, false },
    { "job_written_bytes_per_s", "disk writes of the job", "MB/s", 1e-6,
      false },
    { "disk_read_bytes_per_s", "disk reads of the host", "MB/s", 1e-6, false },
    { "disk_written_bytes_per_s", "disk writes of the host", "MB/s", 1e-6,
      false },
    { "job_switches_per_s", "context switches of the job", "1/s", 1, false },
    { "switches_per_s", "context switches of the host", "1/s", 1, false },
    { "load", "load average", "", 1, false },
};

#define ROWS (sizeof rows / sizeof *rows)

const pl_metric *pl_metrics(size_t *count)
{
    *count = ROWS;
    return rows;
}

const pl_metric *pl_metric_find(const char *key)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].key, key) == 0)
            return &rows[i];
    return NULL;
}

void pl_metric_label(const char *key, char *text, size_t room)
{
    const pl_metric *metric = pl_metric_find(key);
    if (metric == NULL || metric->unit[0] == '\0')
        snprintf(text, room, "%s", metric != NULL ? metric->label : key);
    else
        snprintf(text, room, "%s [%s]", metric->label, metric->unit);
}

/* Workers that were lost before they reported are skipped. */
static double mean_of_workers(const pl_summary *summary, const char *key)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < summary->worker_count; i++) {
        double value = pl_fields_number(&pl_worker_report_fields,
                                        &summary->per_worker[i], key);
        if (isfinite(value)) {
            sum += value;
            count++;
        }
    }
    return count > 0 ? sum / (double)count : NAN;
}

/* --- by role ---------------------------------------------------------- */

/* Sums over the tasks that have the number. */
typedef struct over_tasks {
    const char *key; /* in pl_task_usage */
    double sum, most;
    size_t count;
} over_tasks;

static void put_task(over_tasks *o, const pl_task_usage *usage)
{
    double value = strcmp(o->key, "cpu_percent") == 0
                       ? pl_task_usage_cpu(usage)
                       : pl_fields_number(&pl_task_usage_fields, usage, o->key);
    if (!(value >= 0))
        return;
    o->sum += value;
    o->most = fmax(o->most, value);
    o->count++;
}

/* The rest of a key after the role; NULL: another role. */
static const char *after_role(const char *key, const char *role)
{
    size_t length = strlen(role);
    return strncmp(key, role, length) == 0 ? key + length : NULL;
}

/* "ps_bytes_sent": the mean over the tasks of the role; for memory the largest,
 * as in comparisons.  NAN: the key names no role, or no task has it. */
static double result_of_role(const pl_summary *s, const char *key)
{
    const char *worker = after_role(key, "worker_");
    const char *server = after_role(key, "ps_");
    const char *evaluator = after_role(key, "evaluator_");
    const char *rest = worker != NULL   ? worker
                       : server != NULL ? server
                                        : evaluator;
    if (rest == NULL)
        return NAN;
    bool memory = strcmp(rest, "rss_mb") == 0;
    over_tasks o = { .key = memory ? "peak_rss_mb" : rest, .most = 0 };
    for (size_t i = 0; worker != NULL && i < s->worker_count; i++)
        put_task(&o, &s->per_worker[i].usage);
    for (size_t i = 0; server != NULL && i < s->server_count; i++)
        put_task(&o, &s->per_server[i].usage);
    if (evaluator != NULL && s->has_evaluator)
        put_task(&o, &s->evaluator.usage);
    if (o.count == 0)
        return NAN;
    return memory ? o.most : o.sum / (double)o.count;
}

double pl_metric_result(const pl_record *record, const char *key)
{
    double value = pl_record_number(record, key);
    size_t length = strlen(key), end = strlen("_share");
    if (!record->ended || isfinite(value))
        return value;
    if (length > end && strcmp(key + length - end, "_share") == 0)
        return mean_of_workers(&record->summary, key);
    return result_of_role(&record->summary, key);
}
