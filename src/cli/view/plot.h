/* plot.h - draw with gnuplot.
 *
 * Threads: one. */
#ifndef PL_CLI_VIEW_PLOT_H
#define PL_CLI_VIEW_PLOT_H

#include "base/buffer.h"

/* Run the commands in `folder`.  PL_NOTFOUND when there is no gnuplot,
 * PL_TIMEOUT when it takes longer than a minute. */
pl_status pl_plot(const pl_buffer *commands, const char *folder) PL_MUST_CHECK;

#endif
