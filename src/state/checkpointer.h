/* checkpointer.h - checkpoints written in the background.
 *
 * One thread of its own writes while the training goes on: save copies the
 * tensors into memory the checkpointer keeps (allocated at the first save,
 * used again) and returns at once.  After each write the older checkpoints
 * are pruned.  A failed write leaves those before it valid.
 *
 * Threads: driven by one thread. */
#ifndef PL_STATE_CHECKPOINTER_H
#define PL_STATE_CHECKPOINTER_H

#include "state/checkpoint.h"

typedef struct pl_checkpointer_opts {
    const char *folder; /* required: "<run>/checkpoints"; copied */
    int32_t keep;       /* complete ones that stay; default 3 */
} pl_checkpointer_opts;

typedef struct pl_checkpointer pl_checkpointer;

pl_status pl_checkpointer_new(pl_checkpointer **out,
                              const pl_checkpointer_opts *opts) PL_MUST_CHECK;
void pl_checkpointer_free(pl_checkpointer *checkpointer); /* NULL is fine */

/* Start writing a copy of manifest and tensors; both are the caller's again
 * on return.
 *
 * PL_AGAIN: the write before is still going on, nothing was done; the caller
 * leaves this checkpoint out.  Any other failure is this call's own (nothing
 * was started), or that of a background write before that nobody was told of
 * yet (the new one was started).  Either way a warning is enough: the next
 * save tries again. */
pl_status pl_checkpointer_save(pl_checkpointer *checkpointer,
                               const pl_manifest *manifest,
                               const pl_checkpoint_tensor *tensors,
                               size_t count) PL_MUST_CHECK;

/* Wait for a background write, then write in the caller's thread, without a
 * copy: the first and the last of a run.  A failure of the write before is
 * logged as a warning; the status is of this write alone. */
pl_status pl_checkpointer_save_now(pl_checkpointer *checkpointer,
                                   const pl_manifest *manifest,
                                   const pl_checkpoint_tensor *tensors,
                                   size_t count) PL_MUST_CHECK;

/* Wait, as long as the disk takes, until nothing is being written; the
 * failure of a background write that nobody was told of yet, if any. */
pl_status pl_checkpointer_wait(pl_checkpointer *checkpointer) PL_MUST_CHECK;

/* The same, and end the thread; save and save_now must not be called after
 * it.  May be called twice. */
pl_status pl_checkpointer_stop(pl_checkpointer *checkpointer) PL_MUST_CHECK;

#endif
