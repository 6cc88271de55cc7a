/* runs.h - the runs that a command is about.
 *
 * Threads: one. */
#ifndef PL_APP_RUN_RUNS_H
#define PL_APP_RUN_RUNS_H

#include "base/param/param.h"
#include "observe/runs/record.h"

/* pl_records_init, with what is known of the flags of `train`. */
pl_status pl_runs_open(pl_records *records, char *const *paths,
                       size_t count) PL_MUST_CHECK;

/* Read the runs that the words name; those that cannot be read are left out,
 * with a warning each.  It fails when none is left. */
pl_status pl_runs_read(pl_records *records,
                       const pl_words *words) PL_MUST_CHECK;

#endif
