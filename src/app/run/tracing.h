/* tracing.h - writes what --profile recorded: trace/<role>-<index>.json of the
 * run folder.
 *
 * Threads: one, while no thread records. */
#ifndef PL_APP_RUN_TRACING_H
#define PL_APP_RUN_TRACING_H

#include "app/train/job.h"
#include "base/host/skew.h"
#include "base/record/trace.h"
#include "job/cluster/cluster.h"

typedef struct pl_tracing_opts {
    const pl_trace *trace; /* NULL: no trace, nothing to do */
    const char *run;       /* the run folder; NULL: likewise */
    const char *sent_to;   /* ... where launch collects it; or NULL */
    pl_task task;
    const pl_job *job; /* the job of its operators; NULL: a server's trace */
    pl_skew skew;      /* of the job's clock */
} pl_tracing_opts;

pl_status pl_tracing_write(const pl_tracing_opts *opts) PL_MUST_CHECK;

#endif
