/* traffic.h - the cost of dense traffic for a run whose workers requested only
 * the keys of their batches from servers.
 *
 * Threads: one. */
#ifndef PL_APP_RUN_TRAFFIC_H
#define PL_APP_RUN_TRAFFIC_H

#include "base/record/summary.h"

typedef struct pl_traffic_opts {
    int64_t floats;      /* parameters of the model */
    bool fetched;        /* the chief read all of them at the end of the run */
    bool shared;         /* shared memory with the first server... */
    const char *address; /* ... or at "host:port" */
} pl_traffic_opts;

/* Fill in `dense_traffic` of a summary that has its rows: nothing if no
 * gradient was made.  Measures the link for some hundredths of a second. */
void pl_traffic_estimate(pl_summary *summary, const pl_traffic_opts *opts);

/* "dense traffic would have moved 270 MB for each gradient ...": the line of
 * the summary. */
void pl_traffic_text(const pl_dense_traffic *traffic, char *text, size_t room);

#endif
