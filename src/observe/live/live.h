/* live.h - serves the runs of a folder as pages, also while they are running.
 *
 * Threads: one at a time. */
#ifndef PL_OBSERVE_LIVE_LIVE_H
#define PL_OBSERVE_LIVE_LIVE_H

#include "base/buffer.h"

typedef struct pl_live {
    char *folder; /* with runs, or of one run; required */
    /* Optional: can the job of a run folder be stopped from here, and the
     * request to stop it: PL_NOTFOUND if it does not run on this host. */
    bool (*can_stop)(const char *run);
    pl_status (*stop)(const char *run);
} pl_live;

/* A pl_http_page; the context is a pl_live.  "/" lists the runs, "/run/NAME" is
 * the report of one, "/sweep/NAME" that of a sweep, "/overlay/A:B" that of
 * several runs, and "/log/NAME/FILE" the end of a log.  A path can only name
 * runs in the list. */
pl_status pl_live_page(void *context, const char *path, pl_buffer *body,
                       const char **type) PL_MUST_CHECK;
/* Also a pl_http_page: runs in progress and those that ended recently, as
 * OpenMetrics.  docs/observe.md lists the metrics. */
pl_status pl_live_metrics(void *context, const char *path, pl_buffer *body,
                          const char **type) PL_MUST_CHECK;
/* Handles POST requests: "/stop/NAME" asks the run to stop.  PL_CLOSED if it
 * has ended or runs on another host. */
pl_status pl_live_post(void *context, const char *path, pl_buffer *body,
                       const char **type) PL_MUST_CHECK;

#endif
