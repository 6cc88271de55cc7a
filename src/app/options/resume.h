/* resume.h - resume a run: its settings, and whether it has ended.
 *
 * Threads: one. */
#ifndef PL_APP_OPTIONS_RESUME_H
#define PL_APP_OPTIONS_RESUME_H

#include "app/options/options.h"
#include "base/record/run_record.h"
#include "base/record/summary.h"

/* Take from the run in --run what the user did not say again.  The options
 * point into *record, which is the caller's; it stays as it is when there is
 * no run yet.  PL_USAGE for another model or a setting that must not change. */
pl_status pl_resume_recall(pl_options *options,
                           pl_run_record *record) PL_MUST_CHECK;

/* PL_USAGE when --resume was given and --run holds no run, with the nearest
 * one beside it: a mistyped name must not start a new training.
 * --resume-or-start and tasks whose supervisor has looked pass. */
pl_status pl_resume_check(const pl_options *options) PL_MUST_CHECK;

/* True when a run was begun in this folder. */
bool pl_resume_begun(const char *run);

/* Whether a run has nothing to resume, as its length was not changed; then its
 * summary, which the caller closes. */
pl_status pl_resume_finished(const pl_options *options, pl_summary *out,
                             bool *finished) PL_MUST_CHECK;

#endif
