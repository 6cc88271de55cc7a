/* pairs.c - the heat map of the bytes sent between tasks, for the run that the
 * reader selects; initially the one with the most traffic. */
#include "observe/report/report_priv.h"

pl_status pl_report_pairs(pl_report *report)
{
    const pl_records *records = report->records;
    size_t most = records->count;
    pl_buffer none = { 0 };
    for (size_t i = 0; i < records->count; i++)
        if (pl_model_has_pairs(&records->list[i]) &&
            (most == records->count ||
             records->list[i].summary.bytes_sent >
                 records->list[most].summary.bytes_sent))
            most = i;
    if (most == records->count)
        return PL_OK;
    pl_page_heading(report->page, "Traffic");
    pl_page_chooser(report->page, "pairs", most);
    pl_page_begin_figures(report->page);
    pl_page_drawing(report->page, "pairs", "Bytes sent between tasks", &none);
    pl_page_end_figures(report->page);
    return PL_OK;
}
