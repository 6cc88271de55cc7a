/* traffic.h - what dense traffic would have cost a run whose workers asked
 * servers for the keys of their batches only.
 *
 * Threads: one. */
#ifndef PL_APP_RUN_TRAFFIC_H
#define PL_APP_RUN_TRAFFIC_H

#include "base/record/summary.h"

typedef struct pl_traffic_opts {
    int64_t floats;      /* parameters of the model */
    bool fetched;        /* the chief read them all, at the end of the run */
    bool shared;         /* by memory with the first server... */
    const char *address; /* ... or at "host:port" */
} pl_traffic_opts;

/* Fill `dense_traffic` of a summary that has its rows: none where no gradient
 * was made.  Measures the link for some hundredths of a second. */
void pl_traffic_estimate(pl_summary *summary, const pl_traffic_opts *opts);

/* "dense traffic would have moved 270 MB for each gradient ...": how the
 * summary tells it. */
void pl_traffic_text(const pl_dense_traffic *traffic, char *text, size_t room);

#endif
