/* writer.h - the writer of checkpoints, the same for every strategy.
 *
 * A process holds a partition of the parameters (state/partition.h), perhaps
 * all of them.  A thread of the writer writes the partition's shard, completes
 * a checkpoint and removes old ones, or reads the partition back, one task at a
 * time.  While a shard is written the memory keeps changing: memory that is
 * about to change is copied first (state/frozen.h), so there is never a full
 * second copy.
 *
 * Each task is described by a request.  It runs in the background; poll or wait
 * returns its result.
 *
 * Threads: driven by one; changes are announced from any (pl_writer_frozen). */
#ifndef PL_STATE_WRITER_H
#define PL_STATE_WRITER_H

#include "base/error.h"
#include "state/partition.h"

typedef struct pl_writer pl_writer;

/* The result of a task. */
typedef struct pl_written {
    pl_error error; /* status PL_OK: success */
    pl_manifest_shard shard;
} pl_written;

/* Everything is borrowed; the planes hold the partition's range. */
pl_status pl_writer_new(pl_writer **out,
                        const pl_partition_opts *opts) PL_MUST_CHECK;
/* Cancels the task; waits for the disk. */
void pl_writer_free(pl_writer *writer);

/* Keep checkpoints in this run folder, which was found to be the job's.  Call
 * before the first task. */
pl_status pl_writer_place(pl_writer *writer, const char *run) PL_MUST_CHECK;

/* Must be notified of every change of the planes while a task writes; owned by
 * the writer. */
pl_frozen *pl_writer_frozen(pl_writer *writer);

/* Start a task.  False: busy, nothing was done.  shard: write this partition's
 * shard of the planes as they are now.  commit: complete the checkpoint of the
 * last shard task from all shards, then remove old ones.  checkpoint: both, for
 * a process that holds the whole block.  load: read the partition. */
bool pl_writer_shard(pl_writer *writer, const char *request, size_t bytes);
bool pl_writer_commit(pl_writer *writer, const pl_manifest_shard *shards);
bool pl_writer_checkpoint(pl_writer *writer, const char *request, size_t bytes);
bool pl_writer_load(pl_writer *writer, const char *request, size_t bytes);

/* Discard the result of the current task. */
void pl_writer_cancel(pl_writer *writer);

/* A task is under way, or ended and was neither polled nor cancelled. */
bool pl_writer_busy(pl_writer *writer);
/* True once for each task that ended and was not cancelled. */
bool pl_writer_poll(pl_writer *writer, pl_written *out);
/* Wait, as long as the disk takes, until no task is under way.  Returns the
 * failure of a task that was not polled. */
pl_status pl_writer_wait(pl_writer *writer) PL_MUST_CHECK;

/* Write a whole checkpoint in the caller's thread, without any copy: the first
 * and the last of a run.  No task may be under way. */
pl_status pl_writer_checkpoint_now(pl_writer *writer, const char *request,
                                   size_t bytes) PL_MUST_CHECK;

#endif
