/* What each host used while a run lasted: processor, memory, network, disk. */
#include "base/file/file.h"
#include "base/mem.h"
#include "observe/report/report_priv.h"
#include "observe/runs/curve_read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define POINTS_MOST 300               /* of one line */
#define TABLE_MOST  ((size_t)1 << 28) /* bytes of one file */

/* A figure, and the columns of the table that it shows. */
static const struct usage {
    const char *name, *title, *label;
    struct {
        const char *column, *label;
    } lines[5]; /* NULL at the end */
    double scale;
} usages[] = {
    { "cpu",
      "Processor",
      "percent of one core",
      { { "job_cpu", "job" },
        { "worker_cpu", "workers" },
        { "ps_cpu", "servers" },
        { "evaluator_cpu", "evaluator" } },
      1 },
    { "host-cpu",
      "Processor of the host",
      "percent of all cores",
      { { "cpu", "busy" } },
      1 },
    { "memory",
      "Memory",
      "megabytes",
      { { "job_rss_mb", "job" },
        { "worker_rss_mb", "workers" },
        { "ps_rss_mb", "servers" },
        { "memory_mb", "host" } },
      1 },
    { "network",
      "Network of the job",
      "megabytes/s",
      { { "job_sent_bytes_per_s", "sent" },
        { "job_received_bytes_per_s", "received" } },
      1e-6 },
    { "disk",
      "Disk",
      "megabytes/s",
      { { "job_read_bytes_per_s", "job reads" },
        { "job_written_bytes_per_s", "job writes" },
        { "disk_read_bytes_per_s", "host reads" },
        { "disk_written_bytes_per_s", "host writes" } },
      1e-6 },
    { "switches",
      "Context switches",
      "per second",
      { { "job_switches_per_s", "job" }, { "switches_per_s", "host" } },
      1 },
};

#define USAGES (sizeof usages / sizeof *usages)

/* Mean and most of these stand in the table; the mean is that of the tasks'
 * own counters where they have one. */
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

/* What the tasks of a host used, each while it lived, added up. */
typedef struct counted {
    size_t tasks;
    double cpu, sent, received, read, written; /* percent, bytes a second */
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

/* NAN: the samples must do. */
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

static void add_row(pl_table *table, const pl_record *record, const char *host,
                    const pl_curves *curves)
{
    counted own = count_host(&record->summary, host);
    pl_table_add_row(table);
    pl_table_put_text(table, record->name);
    pl_table_put_text(table, host);
    for (size_t i = 0; i < COLUMNS; i++) {
        pl_curve_stats stats =
            pl_curve_measure(pl_curves_find(curves, columns[i].column));
        double mean = counted_mean(&own, columns[i].column);
        pl_table_put_number(table, columns[i].scale *
                                       (isfinite(mean) ? mean : stats.mean));
        pl_table_put_number(table, columns[i].scale * stats.most);
    }
}

/* A role that the host has no task of, or that is alone and so the job. */
static bool is_absent(const pl_curves *curves, const char *column)
{
    static const char *const roles[] = { "worker", "ps", "evaluator" };
    double job = pl_curve_measure(pl_curves_find(curves, "job_tasks")).most;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        char tasks[32];
        size_t length = strlen(roles[i]);
        if (strncmp(column, roles[i], length) != 0 || column[length] != '_')
            continue;
        snprintf(tasks, sizeof tasks, "%s_tasks", roles[i]);
        double most = pl_curve_measure(pl_curves_find(curves, tasks)).most;
        return !(most > 0) || most == job;
    }
    return false;
}

static pl_status put_usage(pl_report *report, const pl_record *record,
                           const char *host, const pl_curves *curves,
                           const struct usage *usage)
{
    char *name, title[512];
    pl_figure *figure;
    PL_TRY(pl_mem_format(&name, "%s-%s-%s", usage->name, record->name, host));
    snprintf(title, sizeof title, "%s: %s, %s", usage->title, record->name,
             host);
    pl_status status = pl_figure_new(&figure, &(pl_figure_opts) {
                                                  .name = name,
                                                  .title = title,
                                                  .x = "time [s]",
                                                  .y = usage->label,
                                              });
    pl_mem_free(name);
    PL_TRY(status);
    for (size_t i = 0; usage->lines[i].column != NULL; i++) {
        const pl_curve *curve = pl_curves_find(curves, usage->lines[i].column);
        if (curve == NULL || is_absent(curves, usage->lines[i].column))
            continue;
        pl_figure_add_series(figure, usage->lines[i].label);
        for (size_t p = 0; p < curve->count; p++)
            pl_figure_add_point(figure, curve->points[p].x,
                                usage->scale * curve->points[p].y, 0);
    }
    pl_page_take_figure(report->page, figure);
    return PL_OK;
}

/* A file that cannot be read is left out, but for what stood before the
 * damage. */
static pl_status read_curves(pl_report *report, const char *path,
                             pl_curves *curves)
{
    pl_map map;
    *curves = (pl_curves) { 0 };
    pl_status status = pl_map_read(&map, path, TABLE_MOST);
    if (status == PL_OK) {
        status =
            pl_resources_read(curves, (const char *)map.data, map.bytes, path);
        pl_map_close(&map);
    }
    if (status != PL_OK)
        status = pl_report_leave_out(report, path, status);
    if (status != PL_OK)
        pl_curves_close(curves);
    return status;
}

static pl_status put_host(pl_report *report, pl_table *table,
                          const pl_record *record, const char *path,
                          const char *file)
{
    pl_curves curves;
    char host[256];
    snprintf(host, sizeof host, "%.*s", (int)strlen(file) - 4, file);
    PL_TRY(read_curves(report, path, &curves));
    pl_status status = PL_OK;
    if (curves.count > 0)
        add_row(table, record, host, &curves);
    for (size_t i = 0; i < curves.count; i++)
        pl_curve_thin(&curves.list[i], POINTS_MOST);
    for (size_t u = 0; u < USAGES && status == PL_OK; u++)
        status = put_usage(report, record, host, &curves, &usages[u]);
    pl_curves_close(&curves);
    return status;
}

static bool is_csv(const char *name)
{
    size_t length = strlen(name);
    return name[0] != '.' && length > 4 &&
           strcmp(name + length - 4, ".csv") == 0;
}

static pl_status put_run(pl_report *report, pl_table *table,
                         const pl_record *record, bool *any)
{
    char *folder, **names;
    size_t count;
    PL_TRY(pl_file_join(&folder, record->path, "resources"));
    pl_status status = pl_file_list(&names, &count, folder);
    if (status != PL_OK) {
        status = status == PL_NOTFOUND
                     ? PL_OK
                     : pl_report_leave_out(report, folder, status);
        pl_mem_free(folder);
        return status;
    }
    if (!*any)
        pl_page_heading(report->page, "Resources");
    *any = true;
    pl_report_fold_run(report, record);
    for (size_t i = 0; i < count && status == PL_OK; i++) {
        char *path;
        if (!is_csv(names[i]))
            continue;
        status = pl_file_join(&path, folder, names[i]);
        if (status == PL_OK) {
            status = put_host(report, table, record, path, names[i]);
            pl_mem_free(path);
        }
    }
    pl_report_unfold_run(report);
    pl_mem_free(names);
    pl_mem_free(folder);
    return status;
}

pl_status pl_report_resources(pl_report *report)
{
    const pl_records *records = report->records;
    pl_table *table;
    bool any = false;
    PL_TRY(begin_table(&table));
    for (size_t i = 0; i < records->count; i++) {
        pl_status status = put_run(report, table, &records->list[i], &any);
        if (status != PL_OK) {
            pl_table_free(table);
            return status;
        }
    }
    pl_page_take_table(report->page, table);
    return PL_OK;
}
