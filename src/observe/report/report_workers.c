/* report_workers.c - the table of what each worker did: steps, time, accuracy,
 * bytes, and where its time went. */
#include "observe/report/report_priv.h"

#include <math.h>

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
    return put_table(report);
}
