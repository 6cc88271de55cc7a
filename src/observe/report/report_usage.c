/* report_usage.c - what the tasks of each run used, by role and individually,
 * by their own counters: these are correct even for short runs, which samples
 * mostly miss. Shares of a core that are too short to measure are left empty,
 * with a note.
 */
#include "observe/report/report_priv.h"

#include <math.h>
#include <stdio.h>

#define NAME_BYTES 64

/* Sums over tasks; NAN: unknown for all. */
typedef struct sums {
    size_t tasks;
    double cpu, user, system, peak, sent, received, messages_sent,
        messages_received, read, written, alive;
    bool too_short;
} sums;

static const pl_table_column columns[] = {
    { "cpu_percent", "CPU", "% of a core", 1, false },
    { "user_seconds", "user", "s", 2, false },
    { "system_seconds", "system", "s", 2, false },
    { "peak_rss_mb", "peak memory", "MB", 0, false },
    { "sent_mb", "sent", "MB", 2, false },
    { "received_mb", "received", "MB", 2, false },
    { "messages_sent", "messages sent", NULL, 0, false },
    { "messages_received", "messages received", NULL, 0, false },
    { "disk_read_mb", "read", "MB", 2, false },
    { "disk_written_mb", "written", "MB", 2, false },
    { "alive_seconds", "alive", "s", 2, false },
};

static void add(double *sum, double more)
{
    if (!isnan(more))
        *sum = isnan(*sum) ? more : *sum + more;
}

static double count_of(int64_t value)
{
    return value >= 0 ? (double)value : (double)NAN;
}

static sums nothing(void)
{
    return (sums) { 0,   NAN, NAN, NAN, NAN, NAN,  NAN,
                    NAN, NAN, NAN, NAN, NAN, false };
}

static void add_task(sums *s, const pl_task_usage *usage)
{
    double cpu = pl_task_usage_cpu(usage);
    s->tasks++;
    s->too_short = s->too_short || (isnan(cpu) && usage->alive_seconds >= 0);
    add(&s->cpu, cpu);
    add(&s->user, usage->user_seconds);
    add(&s->system, usage->system_seconds);
    add(&s->peak, count_of(usage->peak_rss_mb));
    add(&s->sent, 1e-6 * count_of(usage->bytes_sent));
    add(&s->received, 1e-6 * count_of(usage->bytes_received));
    add(&s->messages_sent, count_of(usage->messages_sent));
    add(&s->messages_received, count_of(usage->messages_received));
    add(&s->read, 1e-6 * count_of(usage->disk_read_bytes));
    add(&s->written, 1e-6 * count_of(usage->disk_written_bytes));
    if (!(s->alive >= usage->alive_seconds)) /* the longest life */
        s->alive = usage->alive_seconds;
}

/* Versions without counters report nothing. */
static bool is_told(const sums *s)
{
    return s->tasks > 0 && !isnan(s->user);
}

static void put_row(pl_table *table, const char *run, const char *name,
                    const char *host, const sums *s)
{
    const double values[] = {
        s->too_short ? (double)NAN : s->cpu,
        s->user,
        s->system,
        s->peak,
        s->sent,
        s->received,
        s->messages_sent,
        s->messages_received,
        s->read,
        s->written,
        s->alive,
    };
    pl_table_add_row(table);
    pl_table_put_text(table, run);
    pl_table_put_text(table, name);
    if (host != NULL)
        pl_table_put_text(table, host);
    else
        pl_table_put_number(table, (double)s->tasks);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        pl_table_put_number(table, values[i]);
}

static pl_status begin(pl_table **out, const char *name, const char *title,
                       const char *who, const char *third)
{
    PL_TRY(pl_table_new(out, name, title));
    pl_table_add_column(*out, &(pl_table_column) { .key = "run" });
    pl_table_add_column(*out, &(pl_table_column) { .key = who });
    pl_table_add_column(*out, &(pl_table_column) { .key = third });
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        pl_table_add_column(*out, &columns[i]);
    return PL_OK;
}

static void put_task(pl_table *table, const pl_record *record, const char *role,
                     size_t index, const char *host, const pl_task_usage *usage)
{
    char name[NAME_BYTES];
    sums one = nothing();
    add_task(&one, usage);
    snprintf(name, sizeof name, "%s %zu", role, index);
    if (is_told(&one))
        put_row(table, record->name, name, host, &one);
}

static void put_tasks(pl_table *table, const pl_record *record)
{
    const pl_summary *summary = &record->summary;
    for (size_t i = 0; i < summary->worker_count; i++)
        put_task(table, record, "worker", i, summary->per_worker[i].host,
                 &summary->per_worker[i].usage);
    for (size_t i = 0; i < summary->server_count; i++)
        put_task(table, record, "ps", i, summary->per_server[i].host,
                 &summary->per_server[i].usage);
    if (summary->has_evaluator)
        put_task(table, record, "evaluator", 0, summary->evaluator.host,
                 &summary->evaluator.usage);
}

/* One row per role, and one for all if there are several; true: something was
 * too short to measure. */
static bool put_roles(pl_table *table, const pl_record *record)
{
    const pl_summary *summary = &record->summary;
    sums workers = nothing(), servers = nothing(), evaluator = nothing();
    sums all = nothing();
    for (size_t i = 0; i < summary->worker_count; i++) {
        add_task(&workers, &summary->per_worker[i].usage);
        add_task(&all, &summary->per_worker[i].usage);
    }
    for (size_t i = 0; i < summary->server_count; i++) {
        add_task(&servers, &summary->per_server[i].usage);
        add_task(&all, &summary->per_server[i].usage);
    }
    if (summary->has_evaluator) {
        add_task(&evaluator, &summary->evaluator.usage);
        add_task(&all, &summary->evaluator.usage);
    }
    if (is_told(&workers))
        put_row(table, record->name, "worker", NULL, &workers);
    if (is_told(&servers))
        put_row(table, record->name, "ps", NULL, &servers);
    if (is_told(&evaluator))
        put_row(table, record->name, "evaluator", NULL, &evaluator);
    if (is_told(&all) && all.tasks > workers.tasks)
        put_row(table, record->name, "all", NULL, &all);
    return is_told(&all) && all.too_short;
}

pl_status pl_report_usage(pl_report *report)
{
    const pl_records *records = report->records;
    pl_table *roles, *tasks;
    bool too_short = false;
    PL_TRY(begin(&roles, "usage", "Resources of each role, by its own counters",
                 "role", "tasks"));
    pl_status status =
        begin(&tasks, "usage-tasks", "Resources of each task", "task", "host");
    if (status != PL_OK) {
        pl_table_free(roles);
        return status;
    }
    for (size_t i = 0; i < records->count; i++) {
        too_short = put_roles(roles, &records->list[i]) || too_short;
        put_tasks(tasks, &records->list[i]);
    }
    if (pl_table_rows(roles) > 0)
        pl_page_heading(report->page, "Resources of the tasks");
    if (too_short)
        pl_page_text(report->page,
                     "An empty CPU cell means that a task ran too briefly "
                     "(less than 0.05 s) for its share of a core to be "
                     "measured.");
    bool some = pl_table_rows(tasks) > 0;
    pl_page_take_table(report->page, roles);
    if (some)
        pl_page_fold(report->page, "Table of all tasks");
    pl_page_take_table(report->page, tasks);
    if (some)
        pl_page_unfold(report->page);
    return PL_OK;
}
