/* writer.h - the writer of checkpoints, the same for every strategy.
 *
 * A process holds a partition of the parameters (state/partition.h), perhaps
 * all of them.  A thread of the writer writes the partition's shard, completes
 * a checkpoint and removes old ones, or reads the partition back, one task at
 * a time.  While a shard is written the memory goes on changing: what is about
 * to change is copied before (state/frozen.h), so there is never a second copy
 * of everything.
 *
 * Each task is described by a request.  It is started, and some time later
 * poll or wait tells how it ended.
 *
 * Threads: driven by one; changes are announced from any (pl_writer_frozen). */
#ifndef PL_STATE_WRITER_H
#define PL_STATE_WRITER_H

#include "base/error.h"
#include "state/partition.h"

typedef struct pl_writer pl_writer;

/* How a task ended. */
typedef struct pl_written {
    pl_error error; /* status PL_OK: well */
    pl_manifest_shard shard;
} pl_written;

/* All is borrowed; the planes are of the same range. */
pl_status pl_writer_new(pl_writer **out,
                        const pl_partition_opts *opts) PL_MUST_CHECK;
/* Cancels the task; waits for the disk. */
void pl_writer_free(pl_writer *writer);

/* Checkpoints are kept in this run folder, which was found to be the job's.
 * Before the first task. */
pl_status pl_writer_place(pl_writer *writer, const char *run) PL_MUST_CHECK;

/* To be told of every change of the planes while a task writes; the
 * writer's. */
pl_frozen *pl_writer_frozen(pl_writer *writer);

/* Start a task.  False: busy, nothing was done.  shard: write this partition's
 * shard of the planes as they are now.  commit: complete the checkpoint of the
 * last shard task from the shards of all, then remove old ones.  checkpoint:
 * both, for a process that holds all.  load: read the partition. */
bool pl_writer_shard(pl_writer *writer, const char *request, size_t bytes);
bool pl_writer_commit(pl_writer *writer, const pl_manifest_shard *shards);
bool pl_writer_checkpoint(pl_writer *writer, const char *request, size_t bytes);
bool pl_writer_load(pl_writer *writer, const char *request, size_t bytes);

/* The end of the task that is under way is of no interest. */
void pl_writer_cancel(pl_writer *writer);

/* A task is under way, or ended and was neither polled nor cancelled. */
bool pl_writer_busy(pl_writer *writer);
/* True once for each task that ended and was not cancelled. */
bool pl_writer_poll(pl_writer *writer, pl_written *out);
/* Wait, as long as the disk takes, until no task is under way; the failure of
 * one that was not polled. */
pl_status pl_writer_wait(pl_writer *writer) PL_MUST_CHECK;

/* Write a whole checkpoint in the caller's thread, without any copy: the first
 * and the last of a run.  No task may be under way. */
pl_status pl_writer_checkpoint_now(pl_writer *writer, const char *request,
                                   size_t bytes) PL_MUST_CHECK;

#endif
