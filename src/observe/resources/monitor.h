/* monitor.h - writes resources/<host>.csv while a task works.
 *
 * Every task of a job has one; of those on a host, the first writes the file
 * and the others tell it what they use (observe/resources/tasks.h).  The file
 * covers the time in which the job runs, pauses included: what is sampled after
 * the last step is left out.  A file that cannot be written is said once, as a
 * warning.
 *
 * Threads: its own; start and stop from one. */
#ifndef PL_OBSERVE_RESOURCES_MONITOR_H
#define PL_OBSERVE_RESOURCES_MONITOR_H

#include "base/record/metric.h"
#include "observe/resources/tasks.h"

typedef struct pl_monitor pl_monitor;

typedef struct pl_monitor_opts {
    const char *folder; /* required: the resources folder; made */
    int place;          /* of this task among those of its host */
    pl_tasks_role role;
    double every_s;      /* > 0; the first samples come sooner */
    pl_metrics *metrics; /* required: bytes_sent and bytes_received; step and
                            tests tell whether the job runs */
} pl_monitor_opts;

pl_status pl_monitor_start(pl_monitor **out,
                           const pl_monitor_opts *opts) PL_MUST_CHECK;
/* Takes a last sample.  NULL is fine. */
void pl_monitor_stop(pl_monitor *monitor);

#endif
