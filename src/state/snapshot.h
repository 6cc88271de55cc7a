/* snapshot.h - the parameters, optimizer slots and progress of a run as a
 * checkpoint, and back.
 *
 * Either they are in this process, which writes them in the background, or
 * parameter servers hold them and get a request each time
 * (state/partition.h).
 *
 * Threads: driven by one thread. */
#ifndef PL_STATE_SNAPSHOT_H
#define PL_STATE_SNAPSHOT_H

#include "base/json/json.h"
#include "state/checkpoint/best.h"
#include "state/frozen.h"
#include "state/planes.h"
#include "state/progress.h"
#include "tensor/params.h"

typedef struct pl_snapshot pl_snapshot;

typedef struct pl_snapshot_opts {
    const char *folder;      /* "<run>/checkpoints"; required */
    int32_t keep;            /* default 3 */
    const char *model;       /* required; all are borrowed */
    const pl_json *settings; /* what must not change on resume; required */
    const pl_params *params; /* their names and places; required */
    pl_planes planes;        /* the whole block and its slots; none where others
                                hold them, for request and find alone */
    const char *kernels;     /* their name; required */
    int32_t workers;         /* of a job in which each has a count */
    bool best;               /* load the best checkpoint, not the newest */
} pl_snapshot_opts;

pl_status pl_snapshot_new(pl_snapshot **out,
                          const pl_snapshot_opts *opts) PL_MUST_CHECK;
void pl_snapshot_free(pl_snapshot *snapshot); /* waits for a write */

/* Each worker's gradients: set before save, found there after load; NULL
 * without workers. */
int64_t *pl_snapshot_counts(pl_snapshot *snapshot);

/* The memory that is written in the background: every change of the planes is
 * to be announced there.  NULL where others hold them. */
pl_frozen *pl_snapshot_frozen(pl_snapshot *snapshot);

/* Write a checkpoint, in the background unless `last`: then in the caller's
 * thread, after the one in the background, whose failure is logged.
 *
 * PL_AGAIN: the one before is still being written, nothing was done.
 * PL_NUMERIC: a parameter is not finite, such a checkpoint would be of no use.
 * In the background, the failure is this call's own (nothing was started), or
 * that of the write before (the new one was started).  Either way a warning is
 * enough: the next save tries again. */
pl_status pl_snapshot_save(pl_snapshot *snapshot, const pl_progress *progress,
                           bool last) PL_MUST_CHECK;

/* The test loss of the best checkpoint, which is kept beside the newest ones;
 * 0: none was named, or there is no snapshot.  To name another one, which is
 * complete: */
double pl_snapshot_best_loss(const pl_snapshot *snapshot);
pl_status pl_snapshot_set_best(pl_snapshot *snapshot,
                               const pl_best *best) PL_MUST_CHECK;

/* Load the newest complete checkpoint.  PL_NOTFOUND when there is none.
 * PL_USAGE, with the setting's name, when `settings` differ. */
pl_status pl_snapshot_load(pl_snapshot *snapshot,
                           pl_progress *progress) PL_MUST_CHECK;

/* For parameters that others hold (state/partition.h).  request: make the
 * folder of a checkpoint, and the request by which they write it.  find: as
 * load, but make the request by which they read it.  The caller frees *request
 * (pl_mem_free). */
pl_status pl_snapshot_request(pl_snapshot *snapshot,
                              const pl_progress *progress,
                              char **request) PL_MUST_CHECK;
pl_status pl_snapshot_find(pl_snapshot *snapshot, pl_progress *progress,
                           char **request) PL_MUST_CHECK;

#endif
