/* compare_tasks.c - the tasks of each run, side by side: the bottleneck, memory
 * by role, the steps of each worker, and the bytes in and out of each server.
 * Columns that no run has are left out; of more than EACH_MOST workers or
 * servers, only the first are shown. */
#include "observe/compare/compare_priv.h"

#include <math.h>
#include <stdio.h>

#define EACH_MOST 16
#define KEY_BYTES 64

/* A number of a run, or NAN if it has none; `index` selects a worker or ps. */
typedef double number_of(const pl_summary *s, size_t index);

/* The larger of `most` and the task's memory, if known. */
static double more_memory(double most, const pl_task_usage *usage)
{
    return usage->peak_rss_mb > 0 ? fmax(most, (double)usage->peak_rss_mb)
                                  : most;
}

static double worker_memory(const pl_summary *s, size_t index)
{
    (void)index;
    double most = NAN;
    for (size_t i = 0; i < s->worker_count; i++)
        most = more_memory(most, &s->per_worker[i].usage);
    return most;
}

static double server_memory(const pl_summary *s, size_t index)
{
    (void)index;
    double most = NAN;
    for (size_t i = 0; i < s->server_count; i++)
        most = more_memory(most, &s->per_server[i].usage);
    return most;
}

static double evaluator_memory(const pl_summary *s, size_t index)
{
    (void)index;
    return s->has_evaluator ? more_memory(NAN, &s->evaluator.usage)
                            : (double)NAN;
}

static double bottleneck_share(const pl_summary *s, size_t index)
{
    (void)index;
    return s->has_bottleneck ? s->bottleneck.share : (double)NAN;
}

/* With one worker the steps are those of the run. */
static double worker_steps(const pl_summary *s, size_t index)
{
    bool known = s->worker_count > 1 && index < s->worker_count &&
                 s->per_worker[index].steps >= 0;
    return known ? (double)s->per_worker[index].steps : (double)NAN;
}

static double megabytes(int64_t bytes)
{
    return bytes >= 0 ? (double)bytes * 1e-6 : (double)NAN;
}

static double server_sent(const pl_summary *s, size_t index)
{
    return index < s->server_count
               ? megabytes(s->per_server[index].usage.bytes_sent)
               : (double)NAN;
}

static double server_received(const pl_summary *s, size_t index)
{
    return index < s->server_count
               ? megabytes(s->per_server[index].usage.bytes_received)
               : (double)NAN;
}

static const struct task_column {
    const char *role; /* one column per task of the role; NULL: one in all */
    const char *key, *label;
    const char *unit;
    int digits;
    number_of *number;
} columns[] = {
    { NULL, "bottleneck_share", "share", "%", 0, bottleneck_share },
    { NULL, "worker_rss_mb", "worker memory", "MB", 0, worker_memory },
    { NULL, "ps_rss_mb", "ps memory", "MB", 0, server_memory },
    { NULL, "evaluator_rss_mb", "evaluator memory", "MB", 0, evaluator_memory },
    { "worker", "steps", "steps", NULL, 0, worker_steps },
    { "ps", "received_mb", "received", "MB", 2, server_received },
    { "ps", "sent_mb", "sent", "MB", 2, server_sent },
};

#define COLUMNS (sizeof columns / sizeof *columns)

static double number(const pl_record *record, size_t column, size_t index)
{
    return record->ended ? columns[column].number(&record->summary, index)
                         : (double)NAN;
}

/* Does any run have this number? */
static bool any_has(const pl_records *records, size_t column, size_t index)
{
    for (size_t i = 0; i < records->count; i++)
        if (!isnan(number(&records->list[i], column, index)))
            return true;
    return false;
}

static size_t count_of(size_t column)
{
    return columns[column].role != NULL ? EACH_MOST : 1;
}

static bool has_bottleneck(const pl_records *records)
{
    return any_has(records, 0, 0);
}

bool pl_compare_has_tasks(const pl_records *records)
{
    for (size_t c = 0; c < COLUMNS; c++)
        if (any_has(records, c, 0))
            return true;
    return false;
}

/* "worker_1_steps" and "worker 1 steps" */
static void add_each(pl_table *table, size_t column, size_t index)
{
    const struct task_column *c = &columns[column];
    char key[KEY_BYTES], label[KEY_BYTES];
    snprintf(key, sizeof key, "%s_%zu_%s", c->role, index, c->key);
    snprintf(label, sizeof label, "%s %zu %s", c->role, index, c->label);
    pl_table_add_column(
        table, &(pl_table_column) { key, label, c->unit, c->digits, false });
}

void pl_compare_add_tasks(pl_table *table, const pl_records *records)
{
    pl_table_set_group(table, NULL);
    if (has_bottleneck(records))
        pl_table_add_column(table, &(pl_table_column) { .key = "bottleneck" });
    for (size_t c = 0; c < COLUMNS; c++)
        for (size_t i = 0; i < count_of(c); i++) {
            const struct task_column *t = &columns[c];
            if (!any_has(records, c, i))
                continue;
            if (t->role != NULL)
                add_each(table, c, i);
            else
                pl_table_add_column(
                    table, &(pl_table_column) { t->key, t->label, t->unit,
                                                t->digits, false });
        }
}

static double mean_of(const pl_records *records, size_t first, size_t column,
                      size_t index)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = first; i < records->count; i++) {
        double value = number(&records->list[i], column, index);
        if (isnan(value) || pl_records_first_like(records, i) != first)
            continue;
        sum += value;
        count++;
    }
    return count > 0 ? sum / (double)count : (double)NAN;
}

void pl_compare_put_tasks(pl_table *table, const pl_records *records,
                          size_t index, bool mean)
{
    const pl_record *record = &records->list[index];
    bool told = record->ended && record->summary.has_bottleneck;
    if (has_bottleneck(records))
        pl_table_put_text(table, told ? record->summary.bottleneck.what : "");
    for (size_t c = 0; c < COLUMNS; c++)
        for (size_t i = 0; i < count_of(c); i++)
            if (any_has(records, c, i))
                pl_table_put_number(table, mean ? mean_of(records, index, c, i)
                                                : number(record, c, i));
}
