/* report.c - chooses the sections of a report from what the runs recorded, and
 * limits how many runs are shown in detail. */
#include "observe/report/report.h"

#include "base/error.h"
#include "observe/report/report_priv.h"

#include <math.h>
#include <string.h>

void pl_report_fold_run(pl_report *report, const pl_record *record)
{
    if (report->records->count > 1)
        pl_page_fold(report->page, record->name);
}

void pl_report_unfold_run(pl_report *report)
{
    if (report->records->count > 1)
        pl_page_unfold(report->page);
}

pl_status pl_report_leave_out(pl_report *report, const char *path,
                              pl_status status)
{
    pl_error why;
    if (status == PL_NOMEM)
        return status;
    pl_error_save(&why, status);
    why.message[pl_error_words(why.message)] = '\0';
    pl_table_add_row(report->left_out);
    pl_table_put_text(report->left_out, path);
    pl_table_put_text(report->left_out, why.message);
    return PL_OK;
}

static pl_status begin_left_out(pl_report *report)
{
    const pl_json *list = report->records->left_out;
    PL_TRY(
        pl_table_new(&report->left_out, "left-out", "What could not be read"));
    pl_table_add_column(report->left_out, &(pl_table_column) { .key = "path" });
    pl_table_add_column(report->left_out, &(pl_table_column) { .key = "why" });
    for (size_t i = 0; i < pl_json_length(list); i++) {
        const char *path, *why;
        PL_TRY(pl_json_get_text(pl_json_at(list, i), "path", &path));
        PL_TRY(pl_json_get_text(pl_json_at(list, i), "why", &why));
        pl_table_add_row(report->left_out);
        pl_table_put_text(report->left_out, path);
        pl_table_put_text(report->left_out, why);
    }
    return PL_OK;
}

static void end_left_out(pl_report *report)
{
    if (pl_table_rows(report->left_out) > 0)
        pl_page_heading(report->page, "Left out");
    pl_page_take_table(report->page, report->left_out);
    report->left_out = NULL;
}

/* What all runs have in common; what sets them apart stands in the results. */
static pl_status put_configuration(pl_report *report)
{
    const pl_records *records = report->records;
    const pl_json *args = records->list[0].run.args, *value;
    const char *name;
    void *walk = NULL;
    pl_table *table;
    PL_TRY(pl_table_new(&table, "configuration", "Flags that all runs have"));
    pl_table_add_column(table, &(pl_table_column) { .key = "flag" });
    pl_table_add_column(table, &(pl_table_column) { .key = "value" });
    while (pl_json_next(args, &walk, &name, &value)) {
        const char *text = pl_record_arg(&records->list[0], name);
        if (text[0] == '\0' || pl_records_differ(records, name))
            continue;
        pl_table_add_row(table);
        pl_table_put_text(table, name);
        pl_table_put_text(table, text);
    }
    pl_page_heading(report->page, "Configuration");
    pl_page_fold(report->page, "Flags");
    pl_page_take_table(report->page, table);
    pl_page_unfold(report->page);
    return PL_OK;
}

static void put_known(pl_table *table, const char *text)
{
    pl_table_put_text(table, text != NULL ? text : "");
}

static pl_status put_machines(pl_report *report)
{
    const pl_records *records = report->records;
    pl_table *table;
    PL_TRY(pl_table_new(&table, "machines", "Where and when they ran"));
    static const char *const columns[] = { "run",  "model",   "started",
                                           "host", "kernels", "paceline" };
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        pl_table_add_column(table, &(pl_table_column) { .key = columns[i] });
    pl_table_add_column(table, &(pl_table_column) { .key = "cores" });
    for (size_t i = 0; i < records->count; i++) {
        const pl_record *record = &records->list[i];
        const pl_run_record *run = &record->run;
        pl_table_add_row(table);
        pl_table_put_text(table, record->name);
        pl_table_put_text(table, run->model);
        put_known(table, run->started);
        put_known(table, run->machine.host);
        put_known(table, run->machine.kernels);
        put_known(table, run->paceline);
        pl_table_put_number(table, run->machine.cores > 0
                                       ? (double)run->machine.cores
                                       : (double)NAN);
    }
    pl_page_fold(report->page, "Machines");
    pl_page_take_table(report->page, table);
    pl_page_unfold(report->page);
    return PL_OK;
}

static pl_status fill(pl_report *report)
{
    PL_TRY(begin_left_out(report));
    PL_TRY(pl_report_results(report));
    PL_TRY(pl_report_workers(report));
    PL_TRY(pl_report_curves(report));
    PL_TRY(pl_report_usage(report));
    PL_TRY(pl_report_resources(report));
    PL_TRY(put_configuration(report));
    PL_TRY(put_machines(report));
    end_left_out(report);
    return pl_page_status(report->page);
}

pl_status pl_report_make(pl_page **out, const pl_records *records,
                         const char *title)
{
    pl_report report = { .records = records };
    PL_TRY(pl_page_new(&report.page, title));
    pl_status status = fill(&report);
    pl_table_free(report.left_out);
    if (status != PL_OK) {
        pl_page_free(report.page);
        return status;
    }
    *out = report.page;
    return PL_OK;
}
