/* operators.c - where the time of traced runs went: a few steps on a timeline,
 * for the run that the reader selects, and a table by operator for each of the
 * first few traced runs. */
#include "observe/report/report_priv.h"
#include "observe/runs/traces.h"

#include <stdio.h>

#define TABLES_MOST 4
#define NAME_BYTES  32
#define TITLE_BYTES 256

typedef struct operators {
    pl_table *tables[TABLES_MOST];
    size_t runs[TABLES_MOST], count;
    pl_buffer timelines; /* a JSON list without its brackets */
} operators;

static pl_status add_run(const pl_report *report, const pl_traces *traces,
                         size_t run, operators *o)
{
    char name[NAME_BYTES], title[TITLE_BYTES];
    snprintf(name, sizeof name, "operators-%zu", o->count + 1);
    snprintf(title, sizeof title, "Time by operator: %s",
             report->records->list[run].name);
    PL_TRY(pl_traces_table(traces, name, title, &o->tables[o->count]));
    o->runs[o->count++] = run;
    return pl_report_timeline(traces->list, traces->count, run, &o->timelines);
}

static pl_status collect(pl_report *report, operators *o)
{
    for (size_t i = 0; i < report->records->count && o->count < TABLES_MOST;
         i++) {
        const char *path = report->records->list[i].path;
        pl_traces traces;
        pl_status status = pl_traces_read(&traces, path);
        if (status == PL_NOTFOUND)
            continue;
        if (status != PL_OK) {
            PL_TRY(pl_record_leave_out(report->model.left_out, path, status));
            continue;
        }
        status = add_run(report, &traces, i, o);
        pl_traces_close(&traces);
        PL_TRY(status);
    }
    return PL_OK;
}

static void put_timeline(pl_report *report, const operators *o)
{
    pl_buffer none = { 0 };
    pl_buffer_text(&report->more, ",\n\"traces\":[");
    pl_buffer_put(&report->more, o->timelines.data, o->timelines.bytes);
    pl_buffer_text(&report->more, "]");
    pl_page_chooser(report->page, "traced", o->runs[0]);
    pl_page_begin_figures(report->page);
    pl_page_drawing(report->page, "timeline", "What each task did", &none);
    pl_page_end_figures(report->page);
}

pl_status pl_report_operators(pl_report *report)
{
    operators o = { 0 };
    pl_status status = collect(report, &o);
    if (status == PL_OK && o.count > 0) {
        pl_page_heading(report->page, "Operators");
        if (o.timelines.bytes > 0)
            put_timeline(report, &o);
    }
    for (size_t i = 0; i < o.count; i++)
        if (status == PL_OK)
            pl_page_take_table(report->page, o.tables[i]);
        else
            pl_table_free(o.tables[i]);
    pl_buffer_close(&o.timelines);
    return status;
}
