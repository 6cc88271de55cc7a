/* links.h - what went over a worker's connections, for its report.
 *
 * Threads: the worker's. */
#ifndef PL_APP_TRAIN_LINKS_H
#define PL_APP_TRAIN_LINKS_H

#include "base/record/report.h"
#include "sync/ps/sync.h"

/* Fill in bytes and messages, those of `view` in all and those of each of
 * `count` servers in `peers`, which the row points to afterwards.  Without
 * servers (`ps` is NULL) nothing tells the peers apart. */
void pl_links_report(pl_worker_report *row, const pl_ps_sync_view *view,
                     const pl_ps_sync *ps, int32_t count,
                     pl_peer_usage peers[PL_REPORT_PEERS_MAX]);

#endif
