/* resume.h - resume a run: its settings, and whether it has ended.
 *
 * Threads: one. */
#ifndef PL_APP_OPTIONS_RESUME_H
#define PL_APP_OPTIONS_RESUME_H

#include "app/options/options.h"
#include "base/record/run_record.h"
#include "base/record/summary.h"

/* Recall the settings of the run in --run that the user did not give again.
 * The options point into *record, which the caller owns; it is unchanged when
 * there is no run yet.  PL_USAGE for another model or a setting that must not
 * change. */
pl_status pl_resume_recall(pl_options *options,
                           pl_run_record *record) PL_MUST_CHECK;

/* PL_USAGE when --resume was given and --run holds no run; the message names
 * the most similar run, as a mistyped name must not start a new training.
 * --resume-or-start passes, and so do tasks whose supervisor has checked. */
pl_status pl_resume_check(const pl_options *options) PL_MUST_CHECK;

/* True when a run was started in this folder. */
bool pl_resume_begun(const char *run);

/* Is there nothing to resume, because the run has ended and its length was not
 * changed?  If so, returns its summary, which the caller closes. */
pl_status pl_resume_finished(const pl_options *options, pl_summary *out,
                             bool *finished) PL_MUST_CHECK;

#endif
