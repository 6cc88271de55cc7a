/* report.h - the report of some runs: tables and figures on one page.
 *
 * Threads: one at a time. */
#ifndef PL_OBSERVE_REPORT_REPORT_H
#define PL_OBSERVE_REPORT_REPORT_H

#include "observe/model/model.h"
#include "observe/report/page.h"
#include "observe/runs/record.h"

/* From data already read; the model is borrowed during the call. */
pl_status pl_report_model(pl_page **out, const pl_runs_model *model,
                          const char *title) PL_MUST_CHECK;

/* Reads the runs first.  Unreadable ones are left out and listed on the
 * page. */
pl_status pl_report_make(pl_page **out, const pl_records *records,
                         const char *title) PL_MUST_CHECK;

/* The same for runs that a reader selected, not a sweep: their curves come
 * first, and there are no figures by flag, since they differ in many. */
pl_status pl_report_overlay(pl_page **out, const pl_records *records,
                            const char *title) PL_MUST_CHECK;

#endif
