/* partition.h - the range of a run's parameters that one process holds, and
 * its shard of checkpoints.
 *
 * A parameter server knows only floats; a process that trains alone holds a
 * single partition, the whole block.  Both receive a request: a JSON text with
 * the folder, the place of each tensor in the block and the contents of the
 * manifest.  A request and the memory of the range make a pl_partition: it
 * writes its shard, completes the checkpoint when all shards are written, or
 * reads its elements back, from any number of shards.
 *
 * The members of a request: "checkpoints" (a folder, unless the place has one),
 * "folder" (a name in it), "tensors" ([{"name", "shape", "first"}], rising),
 * and for a save "step", "keep", "model", "settings", "state".
 *
 * Threads: a partition belongs to one thread at a time. */
#ifndef PL_STATE_PARTITION_H
#define PL_STATE_PARTITION_H

#include "state/checkpoint/checkpoint.h"
#include "state/frozen.h"
#include "state/place.h"
#include "state/planes.h"

#include <stdatomic.h>

typedef struct pl_partition pl_partition;

/* What a server without its own run folder has learned. */
typedef struct pl_partition_own {
    char *checkpoints; /* the folder; NULL: not yet */
    int64_t *steps;    /* of the checkpoints it completed, in that order */
    size_t count;
} pl_partition_own;
void pl_partition_own_close(pl_partition_own *own); /* a zeroed one is fine */

typedef struct pl_partition_opts {
    int32_t index, of;    /* among the partitions of the block */
    int64_t first, count; /* range in the block; count >= 1 */
    pl_planes planes;     /* [count] each; all is borrowed */
    pl_place place;       /* of its checkpoints */
    pl_partition_own
        *own; /* place.within: the server writes and removes nothing else; kept
                 across partitions. NULL: not restricted */
} pl_partition_opts;

/* The request is not trusted: PL_FORMAT. */
pl_status pl_partition_new(pl_partition **out, const char *request,
                           size_t bytes,
                           const pl_partition_opts *opts) PL_MUST_CHECK;
void pl_partition_free(pl_partition *partition); /* NULL is fine */

/* Prepend "checkpoint of step 12" to the message of a failure. */
pl_status pl_partition_context(const pl_partition *partition, pl_status status);

/* Write this partition's shard from frozen memory, whose planes are the
 * parameters, then the slots; without `frozen`, from memory that does not
 * change meanwhile.  PL_NUMERIC when a parameter is not finite, PL_CLOSED when
 * *cancelled (which is optional) became true. */
pl_status pl_partition_write(const pl_partition *partition, pl_frozen *frozen,
                             const atomic_bool *cancelled,
                             pl_manifest_shard *out) PL_MUST_CHECK;

/* Remove the folder when nothing was written to it: it would be taken for a
 * torn checkpoint. */
void pl_partition_drop(const pl_partition *partition);

/* After all shards were written: complete the checkpoint, then remove old
 * ones. */
pl_status pl_partition_commit(const pl_partition *partition,
                              const pl_manifest_shard *shards) PL_MUST_CHECK;

/* Read the partition's elements, parameters and slots. */
pl_status pl_partition_load(const pl_partition *partition) PL_MUST_CHECK;
/* The same from an open checkpoint, whose folder is not checked. */
pl_status pl_partition_load_from(const pl_partition *partition,
                                 const pl_checkpoint *checkpoint) PL_MUST_CHECK;

#endif
