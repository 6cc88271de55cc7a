/* summary.h - the result of a run: as JSON and as text.
 *
 * Threads: one. */
#ifndef PL_CLI_SUMMARY_H
#define PL_CLI_SUMMARY_H

#include "base/json.h"
#include "cli/job.h"
#include "train/loop.h"

#include <stdio.h>

typedef struct pl_summary_opts {
    const pl_job *job;
    const pl_loop_result *result;
    const char *run;      /* the run folder */
    int64_t resumed_step; /* 0: not resumed */
    double startup_s;     /* from the start of the process to step 1 */
} pl_summary_opts;

/* The object that --json prints and summary.json holds. */
pl_status pl_summary_make(pl_json **out,
                          const pl_summary_opts *opts) PL_MUST_CHECK;

/* The same for people, a few lines. */
pl_status pl_summary_print(const pl_json *summary, FILE *file) PL_MUST_CHECK;

#endif
