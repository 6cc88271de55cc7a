/* runs.h - the runs that a command reads.
 *
 * Threads: one. */
#ifndef PL_APP_RUN_RUNS_H
#define PL_APP_RUN_RUNS_H

#include "base/param/param.h"
#include "observe/runs/record.h"

/* pl_records_init with the flags of `train` and their traits. */
pl_status pl_runs_open(pl_records *records, char *const *paths,
                       size_t count) PL_MUST_CHECK;

/* Read the runs that the words name; unreadable ones are left out, with a
 * warning each.  Fails when none is left. */
pl_status pl_runs_read(pl_records *records,
                       const pl_words *words) PL_MUST_CHECK;

#endif
