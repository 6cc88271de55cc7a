/* live_metrics.c - decides what monitoring systems see of the runs in a folder:
 * the families of OpenMetrics, and which runs are included.
 *
 * A family's samples must be contiguous, but runs are read one at a time, so
 * each family has a buffer until all are read.  A run that ended stays for ten
 * minutes, so that its last numbers are collected; one that was silent for a
 * day without an end is left out. */
#include "observe/live/live.h"

#include "base/error.h"
#include "base/text/quote.h"
#include "observe/live/live_priv.h"

#include <math.h>
#include <string.h>

#define TYPE     "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define ENDED_S  600.0
#define SILENT_S 86400.0
#define TEST     "test_"
#define MIB      1048576.0

typedef enum family {
    RUN,
    RUNNING,
    STEP,
    END_STEP,
    RATE,
    LOSS,
    TEST_RESULT,
    AGE,
    TASK_UP,
    TASK_STEP,
    TASK_AGE,
    TASK_RATE,
    TASK_WAITING,
    TASK_RESTARTS,
    TASK_SENT,
    TASK_RECEIVED,
    TASK_MEMORY,
    FAMILIES,
} family;

static const struct {
    const char *name, *type, *unit, *help;
} families[FAMILIES] = {
    [RUN] = { "paceline_run", "info", "", "What is trained, and how." },
    [RUNNING] = { "paceline_running", "gauge", "",
                  "1 while the run is in progress, 0 when it has ended or is "
                  "silent." },
    [STEP] = { "paceline_step", "gauge", "",
               "Updates of the model; a rollback lowers it." },
    [END_STEP] = { "paceline_end_step", "gauge", "",
                   "Updates at which the run ends." },
    [RATE] = { "paceline_examples_per_second", "gauge", "",
               "Examples per second of all workers together." },
    [LOSS] = { "paceline_loss", "gauge", "", "Training loss." },
    [TEST_RESULT] = { "paceline_test", "gauge", "",
                      "Result of the last test, by metric." },
    [AGE] = { "paceline_last_step_age_seconds", "gauge", "seconds",
              "Time since the newest step of any task." },
    [TASK_UP] = { "paceline_task_up", "gauge", "",
                  "1 while the task is up, 0 when it is lost or silent." },
    [TASK_STEP] = { "paceline_task_step", "gauge", "",
                    "Step of the job as the task knows it." },
    [TASK_AGE] = { "paceline_task_last_step_age_seconds", "gauge", "seconds",
                   "Time since the task recorded a step." },
    [TASK_RATE] = { "paceline_task_examples_per_second", "gauge", "",
                    "Examples per second of the worker." },
    [TASK_WAITING] = { "paceline_task_waiting_ratio", "gauge", "ratio",
                       "Share of its time in which the task waits." },
    [TASK_RESTARTS] = { "paceline_task_restarts", "counter", "",
                        "Number of restarts of the task." },
    [TASK_SENT] = { "paceline_task_sent_bytes", "counter", "bytes",
                    "Bytes that the task sent to others of its job." },
    [TASK_RECEIVED] = { "paceline_task_received_bytes", "counter", "bytes",
                        "Bytes that the task received from them." },
    [TASK_MEMORY] = { "paceline_task_memory_bytes", "gauge", "bytes",
                      "Resident memory of the task." },
};

/* One buffer per family, and the current run and task. */
typedef struct export
{
    pl_buffer samples[FAMILIES];
    const char *run;
    const pl_live_task *task; /* NULL: the run itself */
    double now;
}
export;

static void put_label(pl_buffer *out, const char *name, const char *value)
{
    pl_buffer_format(out, ",%s=", name);
    pl_quote_label(out, value);
}

/* Begin a sample; its labels stay open. */
static pl_buffer *begin(export *e, family of)
{
    pl_buffer *out = &e->samples[of];
    const char *type = families[of].type;
    const char *ending = strcmp(type, "counter") == 0 ? "_total"
                         : strcmp(type, "info") == 0  ? "_info"
                                                      : "";
    pl_buffer_format(out, "%s%s{run=", families[of].name, ending);
    pl_quote_label(out, e->run);
    if (e->task != NULL) {
        put_label(out, "task", e->task->name);
        put_label(out, "host", e->task->host);
    }
    return out;
}

/* An unknown number has no sample. */
static void put(export *e, family of, double value)
{
    if (isfinite(value))
        pl_buffer_format(begin(e, of), "} %.15g\n", value);
}

/* The last point of each test curve. */
static void put_tests(export *e, const pl_curves *curves)
{
    for (size_t i = 0; i < curves->count; i++) {
        const pl_curve *curve = &curves->list[i];
        if (strncmp(curve->name, TEST, strlen(TEST)) != 0 || curve->count == 0)
            continue;
        double value = curve->points[curve->count - 1].y;
        if (!isfinite(value))
            continue;
        pl_buffer *out = begin(e, TEST_RESULT);
        put_label(out, "metric", curve->name + strlen(TEST));
        pl_buffer_format(out, "} %.15g\n", value);
    }
}

static void put_task(export *e, const pl_live_task *task, bool ended)
{
    e->task = task;
    put(e, TASK_UP, !ended && !task->lost);
    put(e, TASK_STEP, task->step);
    if (!ended)
        put(e, TASK_AGE, e->now - task->stepped);
    put(e, TASK_RATE, ended ? NAN : task->rate);
    put(e, TASK_WAITING, task->waiting);
    put(e, TASK_RESTARTS, task->restarts);
    put(e, TASK_SENT, task->sent_bytes);
    put(e, TASK_RECEIVED, task->received_bytes);
    put(e, TASK_MEMORY, task->memory_mb * MIB);
    e->task = NULL;
}

static void put_info(export *e, const pl_record *record)
{
    const char *const labels[][2] = {
        { "model", record->run.model != NULL ? record->run.model : "" },
        { "strategy", pl_record_arg(record, "strategy") },
        { "stopped_by", pl_record_stopped_by(record) },
    };
    pl_buffer *out = begin(e, RUN);
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        put_label(out, labels[i][0], labels[i][1]);
    pl_buffer_text(out, "} 1\n");
}

static void put_run(export *e, const pl_live_run *run)
{
    const pl_record *record = run->record;
    double newest = NAN;
    put_info(e, record);
    put(e, RUNNING, run->running);
    put(e, STEP, run->step);
    put(e, END_STEP,
        record->run.end_step > 0 ? (double)record->run.end_step : NAN);
    put(e, RATE, run->rate);
    put(e, LOSS, run->loss);
    put_tests(e, &run->curves);
    for (size_t i = 0; i < run->tasks.count; i++) {
        const pl_live_task *task = &run->tasks.list[i];
        put_task(e, task, record->ended);
        newest = fmax(newest, task->stepped);
        if (strncmp(task->name, "evaluator-", 10) == 0)
            put_tests(e, &task->curves);
    }
    if (!record->ended)
        put(e, AGE, e->now - newest);
}

static pl_status put_record(export *e, const pl_record *record)
{
    time_t written = 0;
    pl_live_run run;
    PL_TRY(pl_live_written(record->path, 2, &written));
    if (e->now - (double)written > (record->ended ? ENDED_S : SILENT_S))
        return PL_OK;
    PL_TRY(pl_live_run_init(&run, record, PL_LIVE_TASKS));
    e->run = record->name;
    put_run(e, &run);
    pl_live_run_close(&run);
    return PL_OK;
}

/* Write all families that have samples, and the end mark. */
static void put_families(export *e, pl_buffer *body)
{
    for (int f = 0; f < FAMILIES; f++) {
        if (e->samples[f].bytes == 0)
            continue;
        pl_buffer_format(body, "# TYPE %s %s\n", families[f].name,
                         families[f].type);
        if (families[f].unit[0] != '\0')
            pl_buffer_format(body, "# UNIT %s %s\n", families[f].name,
                             families[f].unit);
        pl_buffer_format(body, "# HELP %s %s\n", families[f].name,
                         families[f].help);
        pl_buffer_put(body, e->samples[f].data, e->samples[f].bytes);
    }
    pl_buffer_text(body, "# EOF\n");
}

pl_status pl_live_metrics(void *context, const char *path, pl_buffer *body,
                          const char **type)
{
    const pl_live *live = context;
    char *const paths[] = { live->folder };
    export e = { .now = (double)time(NULL) };
    pl_records records = { 0 };
    (void)path;
    *type = TYPE;
    pl_status status = pl_records_init(&records, paths, 1);
    if (status == PL_NOTFOUND) /* a job that is about to begin */
        status = PL_OK;
    for (size_t i = 0; i < records.count && status == PL_OK; i++)
        status = put_record(&e, &records.list[i]);
    if (status == PL_OK)
        put_families(&e, body);
    for (int f = 0; f < FAMILIES; f++) {
        if (status == PL_OK)
            status = pl_buffer_status(&e.samples[f]);
        pl_buffer_close(&e.samples[f]);
    }
    pl_records_close(&records);
    return status;
}
