/* report.c - decides the order of a report: for each sweep its findings, its
 * runs and its figures; then reference sections. */
#include "observe/report/report.h"

#include "observe/compare/compare.h"
#include "observe/findings/findings.h"
#include "observe/report/report_priv.h"
#include "observe/runs/experiment.h"

#include <math.h>
#include <stdio.h>

#define FIGURES_MOST 12 /* per report; half as many per part of several */
#define TITLE_BYTES  512
#define PREFIX_BYTES 128

/* --- parts ------------------------------------------------------------ */

static pl_status put_findings(pl_report *report, const pl_records *part)
{
    pl_buffer lines = { 0 };
    pl_status status = pl_findings(part, &lines);
    if (status == PL_OK)
        status = pl_findings_operators(part, &lines);
    if (status == PL_OK) {
        pl_compare_notes(part, &lines);
        status = pl_buffer_status(&lines);
    }
    if (status == PL_OK && lines.bytes > 0)
        pl_page_list(report->page, lines.data);
    pl_buffer_close(&lines);
    return status;
}

static pl_status put_runs(pl_report *report, const pl_records *part,
                          const char *prefix)
{
    pl_table *table;
    char name[PREFIX_BYTES + 8];
    if (part->count == 1 && !part->list[0].ended)
        return PL_OK; /* it has no results yet */
    PL_TRY(pl_compare(&table, part, pl_compare_repeats(part)));
    snprintf(name, sizeof name, "%sruns", prefix);
    pl_status status = pl_table_rename(table, name, "Runs");
    if (status != PL_OK) {
        pl_table_free(table);
        return status;
    }
    pl_page_take_table(report->page, table);
    return PL_OK;
}

/* The runs of one sweep, or those without a sweep. */
static pl_status put_part(pl_report *report, size_t number)
{
    const pl_records *part = &report->model.parts[number].records;
    const pl_record *first = &part->list[0];
    bool alone = report->model.part_count == 1;
    const pl_experiment *e = first->experiment;
    char title[TITLE_BYTES], prefix[PREFIX_BYTES] = "";
    bool plain = e == NULL || (alone && e->about.question == NULL);
    pl_experiment_title(first, title, sizeof title);
    if (!alone) {
        const char *sweep = pl_experiment_name(first);
        snprintf(prefix, sizeof prefix, "%.*s-", PREFIX_BYTES - 2,
                 sweep[0] != '\0' ? sweep : "others");
    }
    const char *loose = alone ? "Results" : "Runs outside sweeps";
    pl_page_heading(report->page, plain ? loose : title);
    PL_TRY(put_findings(report, part));
    PL_TRY(put_runs(report, part, prefix));
    if (number == 0)
        pl_page_display(report->page);
    return pl_report_figures(report, number, prefix,
                             alone ? FIGURES_MOST : FIGURES_MOST / 2);
}

static pl_status put_parts(pl_report *report)
{
    for (size_t p = 0; p < report->model.part_count; p++)
        PL_TRY(put_part(report, p));
    return PL_OK;
}

/* --- whole report ----------------------------------------------------- */

static pl_status put_left_out(pl_report *report)
{
    const pl_json *list = report->model.left_out;
    pl_table *table;
    if (pl_json_length(list) == 0)
        return PL_OK;
    PL_TRY(pl_table_new(&table, "left-out", "What could not be read"));
    pl_table_add_column(table, &(pl_table_column) { .key = "path" });
    pl_table_add_column(table, &(pl_table_column) { .key = "why" });
    for (size_t i = 0; i < pl_json_length(list); i++) {
        const char *path = "", *why = "";
        if (pl_json_get_text(pl_json_at(list, i), "path", &path) != PL_OK ||
            pl_json_get_text(pl_json_at(list, i), "why", &why) != PL_OK)
            continue;
        pl_table_add_row(table);
        pl_table_put_text(table, path);
        pl_table_put_text(table, why);
    }
    pl_page_heading(report->page, "Left out");
    pl_page_take_table(report->page, table);
    return PL_OK;
}

/* The configuration that all runs share; differences are in the results. */
static pl_status put_configuration(pl_report *report)
{
    const pl_records *records = report->records;
    const pl_json *args = records->list[0].run.args, *value;
    const char *name;
    void *walk = NULL;
    pl_table *table;
    PL_TRY(pl_table_new(&table, "configuration", "Flags that all runs share"));
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
    PL_TRY(put_parts(report));
    pl_page_explorer(report->page);
    PL_TRY(pl_report_limits(report));
    PL_TRY(pl_report_classes(report));
    PL_TRY(pl_report_operators(report));
    PL_TRY(pl_report_graph(report));
    PL_TRY(pl_report_workers(report));
    PL_TRY(pl_report_pairs(report));
    PL_TRY(pl_report_usage(report));
    PL_TRY(pl_report_resources(report));
    PL_TRY(put_configuration(report));
    PL_TRY(put_machines(report));
    PL_TRY(put_left_out(report));
    pl_buffer *out = pl_page_model(report->page);
    pl_model_json(&report->model, out);
    PL_TRY(pl_buffer_status(&report->more));
    pl_buffer_put(out, report->more.data, report->more.bytes);
    return pl_page_status(report->page);
}

pl_status pl_report_model(pl_page **out, const pl_runs_model *model,
                          const char *title)
{
    pl_report report = { .records = model->records, .model = *model };
    PL_TRY(pl_page_new(&report.page, title));
    pl_status status = fill(&report);
    pl_buffer_close(&report.more);
    if (status != PL_OK) {
        pl_page_free(report.page);
        return status;
    }
    *out = report.page;
    return PL_OK;
}

static pl_status make(pl_page **out, const pl_records *records,
                      const char *title, bool overlay)
{
    pl_runs_model model;
    PL_TRY(pl_model_init(&model, records));
    if (overlay)
        pl_model_set_apart(&model);
    pl_status status = pl_report_model(out, &model, title);
    pl_model_close(&model);
    return status;
}

pl_status pl_report_make(pl_page **out, const pl_records *records,
                         const char *title)
{
    return make(out, records, title, false);
}

pl_status pl_report_overlay(pl_page **out, const pl_records *records,
                            const char *title)
{
    return make(out, records, title, true);
}
