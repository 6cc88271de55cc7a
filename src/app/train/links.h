/* links.h - a worker's view of its job, and the traffic of its connections.
 *
 * Threads: the worker's. */
#ifndef PL_APP_TRAIN_LINKS_H
#define PL_APP_TRAIN_LINKS_H

#include "base/record/report.h"
#include "sync/allreduce/allreduce.h"
#include "sync/ps/sync.h"

/* The view of the job for any strategy: with servers (`ps`), or without (the
 * other two). */
pl_ps_sync_view pl_links_look(const pl_ps_sync *ps,
                              const pl_allreduce_sync *together,
                              pl_collective *collective);

/* Fill in the bytes and messages of a task's connections. */
void pl_links_count(pl_task_usage *usage, const pl_ps_sync_view *view);

/* Fill in bytes and messages: the totals of `view`, and those of each of
 * `count` servers in `peers`, which the row points to afterwards.  Without
 * servers (`ps` is NULL) there are only totals. */
void pl_links_report(pl_worker_report *row, const pl_ps_sync_view *view,
                     const pl_ps_sync *ps, int32_t count,
                     pl_peer_usage peers[PL_REPORT_PEERS_MAX]);

#endif
