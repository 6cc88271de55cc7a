/* live.h - the runs of a folder as pages of a server, while they go on.
 *
 * Threads: one at a time. */
#ifndef PL_OBSERVE_REPORT_LIVE_H
#define PL_OBSERVE_REPORT_LIVE_H

#include "base/buffer.h"

/* A pl_http_page; `folder` is the name of the folder of runs, or of one run.
 * "/" lists the runs, "/run/NAME" is the report of one with the ends of its
 * logs.  A path only ever names a run that is in the list. */
pl_status pl_live_page(void *folder, const char *path, pl_buffer *body,
                       const char **type) PL_MUST_CHECK;

#endif
