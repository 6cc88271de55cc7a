/* checkpoint.h - the state of a training on disk: write, find, load, prune.
 *
 * A checkpoint is a folder checkpoints/step-<10 digits>/ of safetensors
 * shards and a manifest.json (state/manifest.h).  It is complete once the
 * manifest is there: shards are written, flushed and renamed first, the
 * manifest last, so a crash at any moment leaves a complete checkpoint or one
 * that is recognised as incomplete.  Temporary names begin with a dot.
 *
 * Writing the same step again moves the complete one to step-<...>.old first,
 * where it counts until the new one is complete.
 *
 * Several processes can write one checkpoint: one calls begin; each writes
 * its shard; when all entries are in, one commits.  A tensor may be cut into
 * ranges of its elements that lie in several shards; which one is where does
 * not matter to the reader, nor into how many it was cut.
 *
 * Threads: a pl_checkpoint belongs to one thread at a time; the functions
 * may be called from any thread, for one folder from one at a time. */
#ifndef PL_STATE_CHECKPOINT_H
#define PL_STATE_CHECKPOINT_H

#include "paceline/tensor.h"
#include "state/manifest.h"

/* A tensor, or the range of its elements that is at hand. */
typedef struct pl_checkpoint_tensor {
    const char *name;
    pl_shape shape; /* of the whole, without PL_BATCH */
    float *data;    /* written by load (NULL: not wanted), else only read */
    int64_t first;  /* the range in data; 0, 0: all elements */
    int64_t count;
} pl_checkpoint_tensor;

/* What one of several processes writes. */
typedef struct pl_checkpoint_part {
    int32_t index, of;
    const pl_checkpoint_tensor *tensors;
    size_t count;
    /* Optional: as in safetensors.h; default: the tensors' data. */
    pl_status (*read)(void *context, size_t tensor, uint64_t at,
                      const void **data, size_t *bytes);
    void *context;
} pl_checkpoint_part;

/* Slots of this kind, "held.<worker>.<block>", are of one worker of a job, and
 * matter only where it is resumed: load passes them over where none is among
 * the tensors. */
#define PL_CHECKPOINT_HELD "held."

/* "optimizer.velocity.softmax/weights", for pl_mem_free: how the slot of a
 * tensor is called. */
pl_status pl_checkpoint_slot_name(char **out, const char *slot,
                                  const char *tensor) PL_MUST_CHECK;

/* Make the folder of `step` under `checkpoints`, empty; the caller frees
 * *folder (pl_mem_free).  PL_UNSUPPORTED: its name has no room for the step. */
pl_status pl_checkpoint_begin(char **folder, const char *checkpoints,
                              int64_t step) PL_MUST_CHECK;

/* Write one shard; *out is its entry for the manifest. */
pl_status pl_checkpoint_write_shard(const char *folder,
                                    const pl_checkpoint_part *part,
                                    pl_manifest_shard *out) PL_MUST_CHECK;

/* Write the manifest: from here on the checkpoint counts.  PL_NOTFOUND or
 * PL_FORMAT when a shard is not there as its entry says: it may have been
 * written to another folder of the same name. */
pl_status pl_checkpoint_commit(const char *folder,
                               const pl_manifest *manifest) PL_MUST_CHECK;

typedef struct pl_checkpoint pl_checkpoint;

/* Open a checkpoint's folder and check all of it: manifest, sizes, checksums,
 * shards.  What is there stays mapped until the free. */
pl_status pl_checkpoint_open(pl_checkpoint **out,
                             const char *folder) PL_MUST_CHECK;
/* The same for who wants a part of it: load checks the shards it takes from,
 * the others are only looked at. */
pl_status pl_checkpoint_open_part(pl_checkpoint **out,
                                  const char *folder) PL_MUST_CHECK;
void pl_checkpoint_free(pl_checkpoint *checkpoint); /* NULL is fine */

/* Open the newest one under `checkpoints` that passes the check.  Torn and
 * damaged ones are passed over with a warning that says why.  One that cannot
 * be read just now, or is of a newer program, is a failure.  PL_NOTFOUND when
 * none is left, also when the folder is not there. */
pl_status pl_checkpoint_find(pl_checkpoint **out,
                             const char *checkpoints) PL_MUST_CHECK;

/* Open that of one step, and check all of it. */
pl_status pl_checkpoint_open_step(pl_checkpoint **out, const char *checkpoints,
                                  int64_t step) PL_MUST_CHECK;

/* Borrowed until the free. */
const pl_manifest *pl_checkpoint_manifest(const pl_checkpoint *checkpoint);
const char *pl_checkpoint_folder(const pl_checkpoint *checkpoint);

/* Copy the tensors, or the ranges of them that are wanted, by name, into the
 * caller's memory.  All of the checkpoint's must be named.  PL_SHAPE, with the
 * tensor's name, when one is missing, left over or of another shape or type,
 * PL_FORMAT when two shards hold the same elements, or one is damaged; then
 * nothing was copied. */
pl_status pl_checkpoint_load(const pl_checkpoint *checkpoint,
                             const pl_checkpoint_tensor *tensors,
                             size_t count) PL_MUST_CHECK;

/* After the checkpoint of `step` was written: keep the newest `keep` (>= 1)
 * complete ones up to and with it, remove older ones, incomplete leftovers
 * older than it, and temporary names.  Those of later steps (damaged ones
 * that find passed over) and of newer programs are left alone, and so is that
 * of the step `spare` (-1: none), which is not counted. */
pl_status pl_checkpoint_prune(const char *checkpoints, int64_t step,
                              int32_t keep, int64_t spare) PL_MUST_CHECK;

/* Remove the checkpoint of one step, or what its last writing replaced, and
 * nothing else; where there is none, nothing. */
pl_status pl_checkpoint_remove(const char *checkpoints,
                               int64_t step) PL_MUST_CHECK;
pl_status pl_checkpoint_remove_old(const char *checkpoints,
                                   int64_t step) PL_MUST_CHECK;

#endif
