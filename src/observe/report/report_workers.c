/* What each worker did: steps, time, accuracy, bytes; and where its time
 * went. */
#include "observe/report/report_priv.h"

#include <math.h>
#include <stdio.h>

#define NAME_BYTES 256
#define BARS_MOST  120 /* of one figure: more cannot be read */

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

/* A number of a row by its name there; NAN where a lost worker left none. */
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

/* A bar for each worker of each run, one series for each of the keys. */
typedef struct bars {
    const char *name, *title, *label;
    pl_figure_kind kind;
    struct {
        const char *key, *label;
    } series[5]; /* NULL at the end */
    double scale;
} bars;

static const bars figures[] = {
    { "time-shares",
      "Where the time of each worker went",
      "share of time [%]",
      PL_FIGURE_STACKED,
      { { "computing_share", "computing" },
        { "input_share", "reading" },
        { "sending_share", "sending" },
        { "waiting_share", "waiting" } },
      100 },
    { "worker-steps",
      "Steps of each worker",
      "steps",
      PL_FIGURE_BARS,
      { { "steps", "steps" } },
      1 },
    { "worker-bytes",
      "Bytes of each worker",
      "megabytes",
      PL_FIGURE_BARS,
      { { "bytes_sent", "sent" }, { "bytes_received", "received" } },
      1e-6 },
};

static size_t count_workers(const pl_records *records)
{
    size_t count = 0;
    for (size_t i = 0; i < records->count; i++)
        count += records->list[i].summary.worker_count;
    return count;
}

/* All runs of one worker need no number behind their names. */
static void name_bar(const pl_record *record, size_t worker,
                     char name[NAME_BYTES])
{
    if (record->summary.worker_count > 1)
        snprintf(name, NAME_BYTES, "%s #%zu", record->name, worker);
    else
        snprintf(name, NAME_BYTES, "%s", record->name);
}

static void add_categories(const pl_records *records, pl_figure *figure)
{
    char name[NAME_BYTES];
    for (size_t i = 0; i < records->count; i++) {
        const pl_record *record = &records->list[i];
        for (size_t w = 0; w < record->summary.worker_count; w++) {
            name_bar(record, w, name);
            pl_figure_add_category(figure, name);
        }
    }
}

static pl_status put_bars(pl_report *report, const bars *b)
{
    const pl_records *records = report->records;
    pl_figure *figure;
    PL_TRY(pl_figure_new(&figure, &(pl_figure_opts) {
                                      .name = b->name,
                                      .title = b->title,
                                      .x = "worker",
                                      .y = b->label,
                                      .kind = b->kind,
                                  }));
    add_categories(records, figure);
    for (size_t s = 0; b->series[s].key != NULL; s++) {
        size_t place = 0;
        pl_figure_add_series(figure, b->series[s].label);
        for (size_t i = 0; i < records->count; i++) {
            const pl_summary *summary = &records->list[i].summary;
            for (size_t w = 0; w < summary->worker_count; w++)
                pl_figure_add_point(
                    figure, (double)place++,
                    b->scale *
                        number_of(&summary->per_worker[w], b->series[s].key),
                    0);
        }
    }
    pl_page_take_figure(report->page, figure);
    return PL_OK;
}

pl_status pl_report_workers(pl_report *report)
{
    size_t count = count_workers(report->records);
    if (count == 0)
        return PL_OK;
    pl_page_heading(report->page, "Workers");
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (count <= BARS_MOST)
            PL_TRY(put_bars(report, &figures[i]));
    return put_table(report);
}
