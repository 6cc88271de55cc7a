/* monitor_view.h - what `monitor` shows: on a terminal a picture that is drawn
 * anew, elsewhere a line a sample; at the end means and peaks.
 *
 * Standard error is never waited for (base/text/console.h): the command that is
 * watched may have ended, and its parent waits for its exit status.
 *
 * Threads: one. */
#ifndef PL_CLI_VIEW_MONITOR_VIEW_H
#define PL_CLI_VIEW_MONITOR_VIEW_H

#include "observe/resources/usage.h"

#include <stdio.h>

typedef struct pl_monitor_view {
    FILE *file; /* standard output or standard error */
    bool terminal;
    bool job;  /* there is a command whose processes are shown */
    int drawn; /* lines of the picture on the terminal */
    int64_t samples;
    double cpu_sum, cpu_peak, memory_peak_mb;
    double job_cpu_sum, job_cpu_peak, job_peak_mb;
    double net_peak, disk_peak; /* bytes a second, both ways */
} pl_monitor_view;

void pl_monitor_view_show(pl_monitor_view *view, const pl_usage_view *usage);
/* Means and peaks over `seconds`. */
void pl_monitor_view_end(const pl_monitor_view *view, double seconds);

#endif
