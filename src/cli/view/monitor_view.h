/* monitor_view.h - what `monitor` shows: a redrawn screen on a terminal, a line
 * per sample elsewhere; means and peaks at the end.
 *
 * Writes to standard error never block (base/text/console.h): the watched
 * command may have ended, and its parent waits for its exit status.
 *
 * Threads: one. */
#ifndef PL_CLI_VIEW_MONITOR_VIEW_H
#define PL_CLI_VIEW_MONITOR_VIEW_H

#include "observe/resources/usage.h"

#include <stdio.h>

typedef struct pl_monitor_view {
    FILE *file; /* standard output or standard error */
    bool terminal;
    bool job;  /* a command's processes are shown */
    int drawn; /* lines of the screen on the terminal */
    int64_t samples;
    double cpu_sum, cpu_peak, memory_peak_mb;
    double job_cpu_sum, job_cpu_peak, job_peak_mb;
    double net_peak, disk_peak; /* bytes a second, both ways */
} pl_monitor_view;

void pl_monitor_view_show(pl_monitor_view *view, const pl_usage_view *usage);
/* Means and peaks over `seconds`. */
void pl_monitor_view_end(const pl_monitor_view *view, double seconds);

#endif
