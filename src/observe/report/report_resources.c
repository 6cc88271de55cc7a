/* report_resources.c - the table of what each host used during a run:
 * processor, memory, network, disk. */
#include "observe/report/report_priv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Mean and maximum of these are in the table; the mean is that of the tasks'
 * own counters if they have one.  Memory has none: its mean is over the samples
 * that include all tasks of the host, and empty if there are none. */
static const struct column {
    const char *column, *key, *label, *unit;
    double scale;
} columns[] = {
    { "job_cpu", "job_cpu", "CPU", "% of a core", 1 },
    { "cpu", "cpu", "CPU of host", "% of all", 1 },
    { "job_rss_mb", "job_rss_mb", "memory", "MB", 1 },
    { "memory_mb", "memory_mb", "memory of host", "MB", 1 },
    { "job_sent_bytes_per_s", "sent_mb_per_s", "sent", "MB/s", 1e-6 },
    { "job_received_bytes_per_s", "received_mb_per_s", "received", "MB/s",
      1e-6 },
    { "job_read_bytes_per_s", "read_mb_per_s", "read", "MB/s", 1e-6 },
    { "job_written_bytes_per_s", "written_mb_per_s", "written", "MB/s", 1e-6 },
};

#define COLUMNS (sizeof columns / sizeof *columns)

static pl_status begin_table(pl_table **out)
{
    pl_table *table;
    PL_TRY(pl_table_new(&table, "resources", "Means and peaks of each host"));
    pl_table_add_column(table, &(pl_table_column) { .key = "run" });
    pl_table_add_column(table, &(pl_table_column) { .key = "host" });
    for (size_t i = 0; i < COLUMNS; i++) {
        const struct column *c = &columns[i];
        char key[64], label[64];
        snprintf(key, sizeof key, "%s_mean", c->key);
        pl_table_add_column(table, &(pl_table_column) { .key = key,
                                                        .label = c->label,
                                                        .unit = c->unit,
                                                        .digits = 1 });
        snprintf(key, sizeof key, "%s_peak", c->key);
        snprintf(label, sizeof label, "%s peak", c->label);
        pl_table_add_column(table, &(pl_table_column) { .key = key,
                                                        .label = label,
                                                        .unit = c->unit,
                                                        .digits = 1 });
    }
    *out = table;
    return PL_OK;
}

/* Resources of a host's tasks, each during its life, added up. */
typedef struct counted {
    size_t tasks;
    double cpu, sent, received, read, written; /* percent, bytes a second */
    double peak_mb;                            /* memory */
} counted;

static void count_task(counted *c, const char *host, const char *at,
                       const pl_task_usage *usage)
{
    if (strcmp(host, at) != 0)
        return;
    double alive = usage->alive_seconds;
    c->tasks++;
    c->cpu += pl_task_usage_cpu(usage);
    c->sent += usage->bytes_sent >= 0 ? (double)usage->bytes_sent / alive : 0;
    c->received +=
        usage->bytes_received >= 0 ? (double)usage->bytes_received / alive : 0;
    c->read += (double)usage->disk_read_bytes / alive;
    c->written += (double)usage->disk_written_bytes / alive;
    c->peak_mb += usage->peak_rss_mb > 0 ? (double)usage->peak_rss_mb : 0;
}

static counted count_host(const pl_summary *summary, const char *host)
{
    counted c = { 0 };
    for (size_t i = 0; i < summary->worker_count; i++)
        count_task(&c, host, summary->per_worker[i].host,
                   &summary->per_worker[i].usage);
    for (size_t i = 0; i < summary->server_count; i++)
        count_task(&c, host, summary->per_server[i].host,
                   &summary->per_server[i].usage);
    if (summary->has_evaluator)
        count_task(&c, host, summary->evaluator.host,
                   &summary->evaluator.usage);
    return c;
}

/* NAN: use the samples. */
static double counted_mean(const counted *c, const char *column)
{
    const struct {
        const char *column;
        double value;
    } known[] = {
        { "job_cpu", c->cpu },
        { "job_sent_bytes_per_s", c->sent },
        { "job_received_bytes_per_s", c->received },
        { "job_read_bytes_per_s", c->read },
        { "job_written_bytes_per_s", c->written },
    };
    for (size_t i = 0; c->tasks > 0 && i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].column, column) == 0)
            return known[i].value;
    return NAN;
}

/* The number of tasks of the host in the sample at `x`; 0: not known. */
static double tasks_at(const pl_curve *tasks, size_t *from, double x)
{
    while (*from < tasks->count && tasks->points[*from].x < x)
        ++*from;
    return *from < tasks->count && tasks->points[*from].x <= x
               ? tasks->points[*from].y
               : 0;
}

/* A task that starts late in a short job may be missing in all samples. */
static pl_curve_stats measure_memory(const pl_curves *curves,
                                     const counted *own)
{
    const pl_curve *memory = pl_curves_find(curves, "job_rss_mb");
    const pl_curve *tasks = pl_curves_find(curves, "job_tasks");
    pl_curve_stats stats = pl_curve_measure(memory);
    double sum = 0;
    size_t seen = 0, at = 0;
    if (memory == NULL || tasks == NULL || own->tasks == 0)
        return stats;
    for (size_t i = 0; i < memory->count; i++)
        if (tasks_at(tasks, &at, memory->points[i].x) >= (double)own->tasks) {
            sum += memory->points[i].y;
            seen++;
        }
    stats.mean = seen > 0 ? sum / (double)seen : (double)NAN;
    if (seen == 0)
        stats.most = fmax(stats.most, own->peak_mb);
    return stats;
}

static pl_curve_stats measure(const pl_curves *curves, const char *column,
                              const counted *own)
{
    return strcmp(column, "job_rss_mb") == 0
               ? measure_memory(curves, own)
               : pl_curve_measure(pl_curves_find(curves, column));
}

static void add_row(pl_table *table, const pl_record *record, const char *host,
                    const pl_curves *curves)
{
    counted own = count_host(&record->summary, host);
    pl_table_add_row(table);
    pl_table_put_text(table, record->name);
    pl_table_put_text(table, host);
    for (size_t i = 0; i < COLUMNS; i++) {
        pl_curve_stats stats = measure(curves, columns[i].column, &own);
        double mean = counted_mean(&own, columns[i].column);
        mean = isfinite(mean) ? mean : stats.mean;
        pl_table_put_number(table, columns[i].scale * mean);
        /* Few samples of a short run may all miss its peak. */
        pl_table_put_number(table, columns[i].scale * fmax(stats.most, mean));
    }
}

pl_status pl_report_resources(pl_report *report)
{
    const pl_records *records = report->records;
    pl_table *table;
    PL_TRY(begin_table(&table));
    for (size_t i = 0; i < records->count; i++) {
        const pl_model_run *run = &report->model.runs[i];
        for (size_t t = 0; t < run->count; t++)
            if (run->tasks[t].host && !run->tasks[t].sum &&
                run->tasks[t].curves.count > 0)
                add_row(table, &records->list[i], run->tasks[t].name,
                        &run->tasks[t].curves);
    }
    if (pl_table_rows(table) > 0)
        pl_page_heading(report->page, "Hosts");
    pl_page_take_table(report->page, table);
    return PL_OK;
}
