/* progress.h - the progress of long operations of a data source.
 *
 * Threads: one. */
#ifndef PL_APP_DATA_PROGRESS_H
#define PL_APP_DATA_PROGRESS_H

#include <stdint.h>

/* pl_source_opts.progress: one line on a terminal, redrawn; elsewhere a line
 * at the end. */
void pl_data_progress(const char *what, int64_t done, int64_t all);

#endif
