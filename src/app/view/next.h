/* next.h - suggestions for a run that has just ended.
 *
 * Threads: one. */
#ifndef PL_APP_VIEW_NEXT_H
#define PL_APP_VIEW_NEXT_H

#include "app/options/options.h"
#include "base/record/summary.h"

/* Print commands to look at, continue and compare the run on standard output,
 * if that is a terminal and --quiet was not given.  On failure nothing is
 * printed. */
void pl_next_print(const pl_options *options, const pl_summary *summary);

#endif
