/* live.h - the runs of a folder as pages of a server, while they go on.
 *
 * Threads: one at a time. */
#ifndef PL_OBSERVE_LIVE_LIVE_H
#define PL_OBSERVE_LIVE_LIVE_H

#include "base/buffer.h"

typedef struct pl_live {
    char *folder; /* of runs, or of one run; required */
    /* Optional: whether the job of a run folder can be asked to end from here,
     * and asking it: PL_NOTFOUND when it does not run on this host. */
    bool (*can_stop)(const char *run);
    pl_status (*stop)(const char *run);
} pl_live;

/* A pl_http_page; the context is a pl_live.  "/" lists the runs, "/run/NAME" is
 * the report of one, "/sweep/NAME" a sweep's, "/overlay/A:B" that of several
 * runs, and
 * "/log/NAME/FILE" the end of a log.  A path only ever names a run that is in
 * the list. */
pl_status pl_live_page(void *context, const char *path, pl_buffer *body,
                       const char **type) PL_MUST_CHECK;
/* A pl_http_page likewise: the runs that go on, and those that ended just now,
 * as OpenMetrics.  docs/observe.md lists the metrics. */
pl_status pl_live_metrics(void *context, const char *path, pl_buffer *body,
                          const char **type) PL_MUST_CHECK;
/* What a POST does: "/stop/NAME" asks the run to end.  PL_CLOSED when it has
 * ended, or is elsewhere. */
pl_status pl_live_post(void *context, const char *path, pl_buffer *body,
                       const char **type) PL_MUST_CHECK;

#endif
