/* runs.h - the runs that a command is about.
 *
 * Threads: one. */
#ifndef PL_CLI_RUNS_H
#define PL_CLI_RUNS_H

#include "cli/commands.h"
#include "observe/record.h"

/* Read the runs that the words name; those that cannot be read are left out,
 * with a warning each.  It fails when none is left. */
pl_status pl_runs_read(pl_records *records,
                       const pl_words *words) PL_MUST_CHECK;

#endif
