/* report_priv.h - the parts of a report, one function a section. */
#ifndef PL_OBSERVE_REPORT_REPORT_PRIV_H
#define PL_OBSERVE_REPORT_REPORT_PRIV_H

#include "observe/report/page.h"
#include "observe/runs/record.h"

/* What was left out, put together while the sections are made. */
typedef struct pl_report {
    const pl_records *records;
    pl_page *page;
    pl_table *left_out;
} pl_report;

/* Results by batch size, workers, mode, ...: report_results.c */
pl_status pl_report_results(pl_report *report) PL_MUST_CHECK;
/* Steps, shares of time and bytes of each worker: report_workers.c */
pl_status pl_report_workers(pl_report *report) PL_MUST_CHECK;
/* Loss and accuracy over steps, of each worker: report_curves.c */
pl_status pl_report_curves(pl_report *report) PL_MUST_CHECK;
/* What the tasks used, by their own counters: report_usage.c */
pl_status pl_report_usage(pl_report *report) PL_MUST_CHECK;
/* What each host used over time: report_resources.c */
pl_status pl_report_resources(pl_report *report) PL_MUST_CHECK;
/* The flags: report.c */

/* Add the failure of this thread to what was left out; only a want of memory
 * is passed on. */
pl_status pl_report_leave_out(pl_report *report, const char *path,
                              pl_status status) PL_MUST_CHECK;

/* A part about one run: folded, unless there is only one. */
void pl_report_fold_run(pl_report *report, const pl_record *record);
void pl_report_unfold_run(pl_report *report);

#endif
