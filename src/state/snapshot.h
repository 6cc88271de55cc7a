/* snapshot.h - the parameters, optimizer slots and progress of a run as a
 * checkpoint, and back.
 *
 * Either this process holds them and writes them in the background, or
 * parameter servers hold them and receive a request each time
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
    pl_planes planes;        /* the whole block and its slots; empty where
                                servers hold them, for request and find only */
    const char *kernels;     /* their name; required */
    int32_t workers;         /* of a job that counts gradients per worker */
    bool best;               /* load the best checkpoint, not the newest */
} pl_snapshot_opts;

pl_status pl_snapshot_new(pl_snapshot **out,
                          const pl_snapshot_opts *opts) PL_MUST_CHECK;
void pl_snapshot_free(pl_snapshot *snapshot); /* waits for a write */

/* Each worker's gradients: set before save, filled by load; NULL without
 * workers. */
int64_t *pl_snapshot_counts(pl_snapshot *snapshot);

/* The memory that is written in the background: announce every change of the
 * planes there.  NULL where servers hold the parameters. */
pl_frozen *pl_snapshot_frozen(pl_snapshot *snapshot);

/* Write a checkpoint, in the background unless `last`: then in the caller's
 * thread, after the one in the background, whose failure is logged.
 *
 * PL_AGAIN: the previous one is still being written, nothing was done.
 * PL_NUMERIC: a parameter is not finite, so the checkpoint would be useless. In
 * the background, the failure is either of this call (nothing was started) or
 * of the previous write (the new one was started).  Either way a warning is
 * enough: the next save tries again. */
pl_status pl_snapshot_save(pl_snapshot *snapshot, const pl_progress *progress,
                           bool last) PL_MUST_CHECK;

/* The test loss of the best checkpoint, which is kept in addition to the newest
 * ones; 0: none has been named, or there is no snapshot.  The second call names
 * another one, which must be complete. */
double pl_snapshot_best_loss(const pl_snapshot *snapshot);
pl_status pl_snapshot_set_best(pl_snapshot *snapshot,
                               const pl_best *best) PL_MUST_CHECK;

/* Load the newest complete checkpoint.  PL_NOTFOUND when there is none.
 * PL_USAGE, with the setting's name, when `settings` differ. */
pl_status pl_snapshot_load(pl_snapshot *snapshot,
                           pl_progress *progress) PL_MUST_CHECK;

/* For parameters that servers hold (state/partition.h).  request: create the
 * folder of a checkpoint, and the request to write it.  find: like load, but
 * create the request to read it.  The caller frees *request (pl_mem_free). */
pl_status pl_snapshot_request(pl_snapshot *snapshot,
                              const pl_progress *progress,
                              char **request) PL_MUST_CHECK;
pl_status pl_snapshot_find(pl_snapshot *snapshot, pl_progress *progress,
                           char **request) PL_MUST_CHECK;

#endif
