/* monitor.h - writes resources/<host>.csv while a task works.
 *
 * Every task of a job has a monitor; on each host one task writes the file and
 * the others report their usage to it (observe/resources/tasks.h).  The file
 * covers the time in which the job runs, including pauses: samples after the
 * last step are left out.  A file that cannot be written is reported once, as a
 * warning.
 *
 * Threads: runs its own; start and stop from one thread. */
#ifndef PL_OBSERVE_RESOURCES_MONITOR_H
#define PL_OBSERVE_RESOURCES_MONITOR_H

#include "base/record/metric.h"
#include "observe/resources/tasks.h"

typedef struct pl_monitor pl_monitor;

typedef struct pl_monitor_opts {
    const char *folder; /* required: the resources folder; created if missing */
    int place;          /* of this task among those on its host */
    pl_tasks_role role;
    double every_s;      /* > 0; the first intervals are shorter */
    pl_metrics *metrics; /* required: bytes_sent and bytes_received; step and
                            tests show whether the job runs */
} pl_monitor_opts;

pl_status pl_monitor_start(pl_monitor **out,
                           const pl_monitor_opts *opts) PL_MUST_CHECK;
/* Takes a last sample.  NULL is fine. */
void pl_monitor_stop(pl_monitor *monitor);

#endif
