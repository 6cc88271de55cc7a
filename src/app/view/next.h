/* next.h - what a person may do with a run that has just ended.
 *
 * Threads: one. */
#ifndef PL_APP_VIEW_NEXT_H
#define PL_APP_VIEW_NEXT_H

#include "app/options/options.h"
#include "base/record/summary.h"

/* Print it on standard output, where that is a terminal and --quiet was not
 * given: look, continue, compare.  A failure prints nothing. */
void pl_next_print(const pl_options *options, const pl_summary *summary);

#endif
