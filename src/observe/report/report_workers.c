/* report_workers.c - the workers of each run: for each sweep their time and
 * steps as bars, and a table of steps, time, accuracy, bytes, and where the
 * time went. */
#include "observe/compare/compare.h"
#include "observe/report/report_priv.h"
#include "observe/runs/experiment.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BARS_RUNS    24 /* per figure */
#define OPEN_MOST    8  /* runs whose bars are not folded */
#define BARS_WORKERS 8
#define TEXT_BYTES   256

static const pl_table_column columns[] = {
    { "steps", NULL, NULL, 0, false },
    { "examples", NULL, NULL, 0, false },
    { "share", "share of examples", "%", 1, false },
    { "seconds", "time", "s", 2, false },
    { "ms_per_batch", "time per batch", "ms", 3, false },
    { "examples_per_s", "examples/s", NULL, 0, false },
    { "input_share", "reading", "%", 1, false },
    { "computing_share", "computing", "%", 1, false },
    { "sending_share", "sending", "%", 1, false },
    { "waiting_share", "waiting", "%", 1, false },
    { "dropped", "dropped gradients", NULL, 0, false },
    { "test_accuracy", "test accuracy", "%", 2, false },
    { "bytes_sent", "sent", "bytes", 0, false },
    { "bytes_received", "received", "bytes", 0, false },
    { "peak_rss_mb", "peak memory", "MB", 0, false },
};

#define COLUMNS (sizeof columns / sizeof *columns)

/* A number of a row by name; NAN if a lost worker has none. */
static double number_of(const pl_worker_report *row, const char *key)
{
    return pl_fields_number(&pl_worker_report_fields, row, key);
}

static double count_examples(const pl_summary *summary)
{
    double sum = 0;
    for (size_t i = 0; i < summary->worker_count; i++)
        if (summary->per_worker[i].examples > 0)
            sum += (double)summary->per_worker[i].examples;
    return sum;
}

static double value_of(const pl_worker_report *row, double all, size_t column)
{
    double seconds = number_of(row, "seconds");
    double steps = number_of(row, "steps");
    double examples = number_of(row, "examples");
    switch (column) {
    case 2:
        return examples / all;
    case 4:
        return 1000 * seconds / steps;
    case 5:
        return examples / seconds;
    default:
        return number_of(row, columns[column].key);
    }
}

static void add_rows(pl_table *table, const pl_record *record)
{
    const pl_summary *summary = &record->summary;
    double all = count_examples(summary);
    for (size_t i = 0; i < summary->worker_count; i++) {
        pl_table_add_row(table);
        pl_table_put_text(table, record->name);
        pl_table_put_number(table, (double)i);
        pl_table_put_text(table, summary->per_worker[i].host);
        for (size_t c = 0; c < COLUMNS; c++)
            pl_table_put_number(table,
                                value_of(&summary->per_worker[i], all, c));
    }
}

static pl_status put_table(pl_report *report)
{
    pl_table *table;
    PL_TRY(pl_table_new(&table, "workers", "Each worker of each run"));
    pl_table_add_column(table, &(pl_table_column) { .key = "run" });
    pl_table_add_column(table, &(pl_table_column) { .key = "worker" });
    pl_table_add_column(table, &(pl_table_column) { .key = "host" });
    for (size_t c = 0; c < COLUMNS; c++)
        pl_table_add_column(table, &columns[c]);
    for (size_t i = 0; i < report->records->count; i++)
        add_rows(table, &report->records->list[i]);
    pl_page_fold(report->page, "Table of all workers");
    pl_page_take_table(report->page, table);
    pl_page_unfold(report->page);
    return PL_OK;
}

/* --- bars --------------------------------------------------------------- */

/* Is the run worth separate bars for its workers? */
static bool is_drawn(const pl_model_part *part, size_t run)
{
    size_t workers = part->records.list[run].summary.worker_count;
    return part->like[run] == run && workers > 1 && workers <= BARS_WORKERS;
}

static size_t count_drawn(const pl_model_part *part, size_t *workers)
{
    size_t count = 0;
    *workers = 0;
    for (size_t i = 0; i < part->records.count && count < BARS_RUNS; i++) {
        size_t own = part->records.list[i].summary.worker_count;
        if (!is_drawn(part, i))
            continue;
        *workers = own > *workers ? own : *workers;
        count++;
    }
    return count;
}

static void add_categories(const pl_report *report, const pl_model_part *part,
                           size_t most, pl_figure *figure)
{
    char label[TEXT_BYTES];
    for (size_t i = 0, place = 0; i < part->records.count && place < most;
         i++) {
        if (!is_drawn(part, i))
            continue;
        pl_model_label(&report->model, part, i, label, sizeof label);
        pl_figure_add_category(figure, label, part->first + i);
        place++;
    }
}

static void add_worker(const pl_model_part *part, size_t worker, size_t most,
                       const char *key, pl_figure *figure)
{
    char name[32];
    snprintf(name, sizeof name, "worker %zu", worker);
    pl_figure_add_series(figure, name, PL_FIGURE_MEASURED);
    for (size_t i = 0, place = 0; i < part->records.count && place < most;
         i++) {
        const pl_summary *summary = &part->records.list[i].summary;
        if (!is_drawn(part, i))
            continue;
        if (worker < summary->worker_count)
            pl_figure_add_point(figure, (double)place,
                                number_of(&summary->per_worker[worker], key),
                                0);
        place++;
    }
}

/* "A5: time of each worker" */
static pl_status put_bars(pl_report *report, size_t number, const char *key,
                          const char *what, const char *unit)
{
    const pl_model_part *part = &report->model.parts[number];
    char name[TEXT_BYTES], title[TEXT_BYTES];
    const char *sweep = pl_experiment_name(&part->records.list[0]);
    bool alone = report->model.part_count == 1 || sweep[0] == '\0';
    size_t workers, runs = count_drawn(part, &workers);
    pl_figure *figure;
    if (runs == 0)
        return PL_OK;
    snprintf(name, sizeof name, "%s%sworker-%s", alone ? "" : sweep,
             alone ? "" : "-", key);
    snprintf(title, sizeof title, "%s%s%s of each worker", alone ? "" : sweep,
             alone ? "" : ": ", what);
    PL_TRY(pl_figure_new(&figure, &(pl_figure_opts) { .name = name,
                                                      .title = title,
                                                      .x = "run",
                                                      .y = unit,
                                                      .kind = PL_FIGURE_BARS,
                                                      .part = number }));
    add_categories(report, part, runs, figure);
    for (size_t w = 0; w < workers; w++)
        add_worker(part, w, runs, key, figure);
    pl_page_take_figure(report->page, figure);
    return PL_OK;
}

/* When each worker finished, and its steps; folded if there are several sweeps,
 * or many runs. */
static pl_status put_figures(pl_report *report)
{
    size_t parts = report->model.part_count, workers, drawn = 0;
    for (size_t p = 0; p < parts; p++)
        drawn += count_drawn(&report->model.parts[p], &workers);
    bool fold = parts > 1 || drawn > OPEN_MOST;
    if (drawn == 0)
        return PL_OK;
    if (fold)
        pl_page_fold(report->page, "Time and steps of each worker");
    pl_page_begin_figures(report->page);
    for (size_t p = 0; p < parts; p++) {
        PL_TRY(put_bars(report, p, "seconds", "Time", "time [s]"));
        PL_TRY(put_bars(report, p, "steps", "Steps", "steps"));
    }
    pl_page_end_figures(report->page);
    if (fold)
        pl_page_unfold(report->page);
    return PL_OK;
}

static size_t count_workers(const pl_records *records)
{
    size_t count = 0;
    for (size_t i = 0; i < records->count; i++)
        count += records->list[i].summary.worker_count;
    return count;
}

pl_status pl_report_workers(pl_report *report)
{
    if (count_workers(report->records) == 0)
        return PL_OK;
    pl_page_heading(report->page, "Workers");
    PL_TRY(put_figures(report));
    return put_table(report);
}
