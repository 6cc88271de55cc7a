/* observers.h - the recorders of a task, which write files of its run folder:
 * events for TensorBoard, the timeline, and the resources that the host and the
 * job use.
 *
 * None of them may end a training: a file that cannot be written is reported
 * once.
 *
 * Threads: each has its own; the functions are called from one. */
#ifndef PL_APP_RUN_OBSERVERS_H
#define PL_APP_RUN_OBSERVERS_H

#include "app/train/job.h"
#include "base/record/metric.h"
#include "job/cluster/cluster.h"

typedef struct pl_observers pl_observers;

typedef struct pl_observers_opts {
    const pl_options *options; /* required; everything is borrowed */
    const char *run;           /* the run folder; NULL: nothing is written */
    pl_task task;
    pl_metrics *metrics;       /* required; its scalars are recorded */
    const pl_cluster *cluster; /* NULL: one process */
    const pl_job *job;         /* the chief's, whose model is shown; or NULL */
    int64_t start_step;        /* of a resumed run */
    /* Optional: receives what is put on the timeline. */
    void (*told)(void *context, const pl_run_event *event);
    void *context;
} pl_observers_opts;

pl_status pl_observers_start(pl_observers **out,
                             const pl_observers_opts *opts) PL_MUST_CHECK;
/* NULL is fine, also below.  `success`: the run reached its end. */
void pl_observers_stop(pl_observers *observers, bool success);

/* For the timeline: a task of an unsupervised job timed out. */
void pl_observers_lost(const pl_metrics *metrics, pl_task task);

/* Number of records missing in the files. */
int64_t pl_observers_dropped(const pl_observers *observers);

#endif
