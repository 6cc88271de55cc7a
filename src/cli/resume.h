/* resume.h - go on with a run: its settings, and whether it is over.
 *
 * Threads: one. */
#ifndef PL_CLI_RESUME_H
#define PL_CLI_RESUME_H

#include "base/json.h"
#include "cli/options.h"

/* Take from the run in --run what the user did not say again.  The options
 * point into *record, which is the caller's; it stays as it is when there is
 * no run yet.  PL_USAGE for another model or a setting that must not change. */
pl_status pl_resume_recall(pl_options *options, pl_json **record) PL_MUST_CHECK;

/* PL_USAGE when --resume was given and --run holds no run, with the nearest
 * one beside it: a mistyped name must not start a new training.
 * --resume-or-start and tasks whose supervisor has looked pass. */
pl_status pl_resume_check(const pl_options *options) PL_MUST_CHECK;

/* True when a run was begun in this folder. */
bool pl_resume_begun(const char *run);

/* The summary of a run that has nothing to resume, as its length was not
 * changed; else NULL. */
pl_status pl_resume_finished(const pl_options *options,
                             pl_json **out) PL_MUST_CHECK;

#endif
