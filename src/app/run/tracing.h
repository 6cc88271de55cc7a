/* tracing.h - writes what --profile recorded: trace/<role>-<index>.json of the
 * run folder.
 *
 * Threads: one, when those that recorded stand still. */
#ifndef PL_APP_RUN_TRACING_H
#define PL_APP_RUN_TRACING_H

#include "app/train/job.h"
#include "base/host/skew.h"
#include "base/record/trace.h"
#include "job/cluster/cluster.h"

typedef struct pl_tracing_opts {
    const pl_trace *trace; /* NULL: there is none, and nothing to do */
    const char *run;       /* the run folder; NULL: likewise */
    const char *sent_to;   /* ... and where launch collects it; or NULL */
    pl_task task;
    const pl_job *job; /* whose operators these are; NULL: a server's */
    pl_skew skew;      /* of the clock of the job */
} pl_tracing_opts;

pl_status pl_tracing_write(const pl_tracing_opts *opts) PL_MUST_CHECK;

#endif
