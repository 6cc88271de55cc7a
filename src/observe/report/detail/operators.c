/* operators.c - where the time of traced runs went, operator by operator: a
 * table for each of the first few runs that have traces. */
#include "observe/report/report_priv.h"
#include "observe/runs/traces.h"

#include <stdio.h>

#define TABLES_MOST 4
#define NAME_BYTES  32
#define TITLE_BYTES 256

static pl_status put_table(pl_report *report, const pl_traces *traces,
                           size_t run, size_t number)
{
    char name[NAME_BYTES], title[TITLE_BYTES];
    pl_table *table;
    snprintf(name, sizeof name, "operators-%zu", number);
    snprintf(title, sizeof title, "Time by operator: %s",
             report->records->list[run].name);
    PL_TRY(pl_traces_table(traces, name, title, &table));
    if (number == 1)
        pl_page_heading(report->page, "Operators");
    pl_page_take_table(report->page, table);
    return PL_OK;
}

pl_status pl_report_operators(pl_report *report)
{
    size_t shown = 0;
    for (size_t i = 0; i < report->records->count && shown < TABLES_MOST; i++) {
        const char *path = report->records->list[i].path;
        pl_traces traces;
        pl_status status = pl_traces_read(&traces, path);
        if (status == PL_NOTFOUND)
            continue;
        if (status != PL_OK) {
            PL_TRY(pl_record_leave_out(report->model.left_out, path, status));
            continue;
        }
        status = put_table(report, &traces, i, ++shown);
        pl_traces_close(&traces);
        PL_TRY(status);
    }
    return PL_OK;
}
