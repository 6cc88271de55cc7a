/* limits.c - the table of what limited each run, the responsible task, and the
 * cure with the largest expected gain. */
#include "observe/report/report_priv.h"

#include <math.h>

static bool is_told(const pl_record *record)
{
    return record->ended && record->summary.has_bottleneck;
}

static void put_head(pl_table *table)
{
    static const pl_table_column columns[] = {
        { .key = "run" },
        { .key = "what", .label = "limit" },
        { .key = "share", .unit = "%", .digits = 0 },
        { .key = "task" },
        { .key = "host" },
        { .key = "cure" },
        { .key = "gain", .label = "times as fast", .digits = 1 },
    };
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        pl_table_add_column(table, &columns[i]);
}

static void put_row(pl_table *table, const pl_record *record)
{
    const pl_bottleneck *b = &record->summary.bottleneck;
    pl_table_add_row(table);
    pl_table_put_text(table, record->name);
    pl_table_put_text(table, b->what);
    pl_table_put_number(table, b->share);
    pl_table_put_text(table, b->task);
    pl_table_put_text(table, b->host);
    pl_table_put_text(table, b->cure_count > 0 ? b->cures[0].text : "");
    pl_table_put_number(table,
                        b->cure_count > 0 ? b->cures[0].gain : (double)NAN);
}

pl_status pl_report_limits(pl_report *report)
{
    const pl_records *records = report->records;
    pl_table *table;
    size_t told = 0;
    for (size_t i = 0; i < records->count; i++)
        told += is_told(&records->list[i]);
    if (told == 0)
        return PL_OK;
    PL_TRY(pl_table_new(&table, "limits",
                        "What limited each run, and what would help most"));
    put_head(table);
    for (size_t i = 0; i < records->count; i++)
        if (is_told(&records->list[i]))
            put_row(table, &records->list[i]);
    pl_page_heading(report->page, "What limits");
    pl_page_take_table(report->page, table);
    return PL_OK;
}
