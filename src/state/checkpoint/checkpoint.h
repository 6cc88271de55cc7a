/* checkpoint.h - the state of a training on disk: write, find, load, prune.
 *
 * A checkpoint is a folder checkpoints/step-<10 digits>/ of safetensors
 * shards and a manifest.json (state/manifest.h).  It is complete once the
 * manifest is there: shards are written, flushed and renamed first, the
 * manifest last, so a crash at any moment leaves a complete checkpoint or one
 * that is recognised as incomplete.  Temporary names begin with a dot.
 *
 * Writing the same step again first moves the complete one to step-<...>.old,
 * where it remains valid until the new one is complete.
 *
 * Several processes can write one checkpoint: one calls begin; each writes its
 * shard; when all entries are known, one commits.  A tensor may be split into
 * ranges of elements in several shards; the reader accepts any number and
 * distribution of ranges.
 *
 * Threads: a pl_checkpoint belongs to one thread at a time; the functions
 * may be called from any thread, for one folder from one at a time. */
#ifndef PL_STATE_CHECKPOINT_H
#define PL_STATE_CHECKPOINT_H

#include "paceline/tensor.h"
#include "state/manifest.h"

/* A tensor, or the range of its elements that is in memory. */
typedef struct pl_checkpoint_tensor {
    const char *name;
    pl_shape shape; /* of the whole tensor, without PL_BATCH */
    float *data;    /* load writes it (NULL: not wanted), others read it */
    int64_t first;  /* the range in data; 0, 0: all elements */
    int64_t count;
} pl_checkpoint_tensor;

/* The shard of one of several processes. */
typedef struct pl_checkpoint_part {
    int32_t index, of;
    const pl_checkpoint_tensor *tensors;
    size_t count;
    /* Optional: as in safetensors.h; default: the tensors' data. */
    pl_status (*read)(void *context, size_t tensor, uint64_t at,
                      const void **data, size_t *bytes);
    void *context;
} pl_checkpoint_part;

/* Slots of this kind, "held.<worker>.<block>", belong to one worker of a job
 * and only matter on resume: load skips them unless they are among the
 * tensors. */
#define PL_CHECKPOINT_HELD "held."

/* The name of a tensor's slot, "optimizer.velocity.softmax/weights", for
 * pl_mem_free. */
pl_status pl_checkpoint_slot_name(char **out, const char *slot,
                                  const char *tensor) PL_MUST_CHECK;

/* Create the empty folder of `step` under `checkpoints`; the caller frees
 * *folder (pl_mem_free).  PL_UNSUPPORTED: the step does not fit the folder's
 * name. */
pl_status pl_checkpoint_begin(char **folder, const char *checkpoints,
                              int64_t step) PL_MUST_CHECK;

/* Write one shard; *out is its entry for the manifest. */
pl_status pl_checkpoint_write_shard(const char *folder,
                                    const pl_checkpoint_part *part,
                                    pl_manifest_shard *out) PL_MUST_CHECK;

/* Write the manifest, which makes the checkpoint count.  PL_NOTFOUND or
 * PL_FORMAT when a shard does not match its entry: it may have been written to
 * another folder of the same name. */
pl_status pl_checkpoint_commit(const char *folder,
                               const pl_manifest *manifest) PL_MUST_CHECK;

typedef struct pl_checkpoint pl_checkpoint;

/* Open a checkpoint's folder and check all of it: manifest, sizes, checksums,
 * shards.  The shards stay mapped until the free. */
pl_status pl_checkpoint_open(pl_checkpoint **out,
                             const char *folder) PL_MUST_CHECK;
/* The same for reading a part of it: load checks the shards it reads, of the
 * others only sizes and headers are checked. */
pl_status pl_checkpoint_open_part(pl_checkpoint **out,
                                  const char *folder) PL_MUST_CHECK;
void pl_checkpoint_free(pl_checkpoint *checkpoint); /* NULL is fine */

/* Open the newest checkpoint under `checkpoints` that passes the check.  Torn
 * and damaged ones are skipped with a warning that gives the reason.  One that
 * cannot be read at the moment, or is of a newer program, is a failure.
 * PL_NOTFOUND when none is left, also when the folder does not exist. */
pl_status pl_checkpoint_find(pl_checkpoint **out,
                             const char *checkpoints) PL_MUST_CHECK;

/* Open the checkpoint of one step, and check all of it. */
pl_status pl_checkpoint_open_step(pl_checkpoint **out, const char *checkpoints,
                                  int64_t step) PL_MUST_CHECK;

/* Borrowed until the free. */
const pl_manifest *pl_checkpoint_manifest(const pl_checkpoint *checkpoint);
const char *pl_checkpoint_folder(const pl_checkpoint *checkpoint);

/* Copy the wanted tensors, or ranges of them, by name into the caller's memory.
 * Every tensor of the checkpoint must be named.  PL_SHAPE, with the tensor's
 * name, when one is missing, unexpected or of another shape or type; PL_FORMAT
 * when two shards hold the same elements or one is damaged.  On failure nothing
 * is copied. */
pl_status pl_checkpoint_load(const pl_checkpoint *checkpoint,
                             const pl_checkpoint_tensor *tensors,
                             size_t count) PL_MUST_CHECK;

/* After the checkpoint of `step` was written: keep the newest `keep` (>= 1)
 * complete ones up to that step; remove older ones, incomplete ones older than
 * it, and temporary names.  Checkpoints of later steps (damaged ones that find
 * skipped) and of newer programs are left alone.  So is the checkpoint of the
 * step `spare` (-1: none), which is not counted. */
pl_status pl_checkpoint_prune(const char *checkpoints, int64_t step,
                              int32_t keep, int64_t spare) PL_MUST_CHECK;

/* Remove the checkpoint of one step, or the .old one that its last rewrite
 * replaced; does nothing where there is none. */
pl_status pl_checkpoint_remove(const char *checkpoints,
                               int64_t step) PL_MUST_CHECK;
pl_status pl_checkpoint_remove_old(const char *checkpoints,
                                   int64_t step) PL_MUST_CHECK;

#endif
