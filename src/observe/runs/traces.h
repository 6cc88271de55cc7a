/* traces.h - the trace files of a run, read once: unchanged, and added up for
 * workers and for servers.
 *
 * Threads: one thread. */
#ifndef PL_OBSERVE_RUNS_TRACES_H
#define PL_OBSERVE_RUNS_TRACES_H

#include "observe/runs/profile.h"

#define PL_TRACES_MOST 256 /* files */

typedef struct pl_traces {
    pl_json *list[PL_TRACES_MOST];
    size_t count;
    pl_profile *workers, *servers;
    size_t worker_count, server_count;
} pl_traces;

/* Read <run>/trace/.  PL_NOTFOUND: the run was trained without --profile. */
pl_status pl_traces_read(pl_traces *out, const char *run) PL_MUST_CHECK;
void pl_traces_close(pl_traces *traces);

/* One row per operator, with a column for worker or server; the caller frees
 * it. */
pl_status pl_traces_table(const pl_traces *traces, const char *name,
                          const char *title, pl_table **out) PL_MUST_CHECK;

#endif
