/* partition.h - the range of a run's parameters that one process holds, and
 * its shard of checkpoints.
 *
 * A parameter server knows only floats; a process that trains alone holds the
 * one partition that is the whole block.  Either gets a request: a text (JSON)
 * with the folder, the place of each tensor in the block and what the manifest
 * is to say.  A request and the memory of the range make a pl_partition: it
 * writes its shard, completes the checkpoint when all shards are written, or
 * reads its elements back, from any number of shards.
 *
 * The members of a request: "checkpoints" (a folder, where the place has none),
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

/* What a server without a run folder of its own has learned. */
typedef struct pl_partition_own {
    char *checkpoints; /* the folder; NULL: not yet */
    int64_t *steps;    /* of the checkpoints that it completed; the last last */
    size_t count;
} pl_partition_own;
void pl_partition_own_close(pl_partition_own *own); /* a zeroed one is fine */

typedef struct pl_partition_opts {
    int32_t index, of;    /* of those who hold the block */
    int64_t first, count; /* the range of the block; >= 1 float */
    pl_planes planes;     /* [count] each; all is borrowed */
    pl_place place;       /* of its checkpoints */
    pl_partition_own
        *own; /* place.within: nothing else is written or removed;
            kept from one partition to the next.  NULL: no matter */
} pl_partition_opts;

/* Nothing in the request is trusted: PL_FORMAT. */
pl_status pl_partition_new(pl_partition **out, const char *request,
                           size_t bytes,
                           const pl_partition_opts *opts) PL_MUST_CHECK;
void pl_partition_free(pl_partition *partition); /* NULL is fine */

/* "checkpoint of step 12" is put before the message of a failure. */
pl_status pl_partition_context(const pl_partition *partition, pl_status status);

/* Write this partition's shard from memory frozen in planes: the parameters,
 * then the slots; without `frozen`, from memory that does not change meanwhile.
 * PL_NUMERIC when a parameter is not finite, PL_CLOSED when *cancelled (which
 * is optional) became true. */
pl_status pl_partition_write(const pl_partition *partition, pl_frozen *frozen,
                             const atomic_bool *cancelled,
                             pl_manifest_shard *out) PL_MUST_CHECK;

/* Remove the folder, of which nothing was written: it would be taken for a torn
 * checkpoint. */
void pl_partition_drop(const pl_partition *partition);

/* All shards are written: complete the checkpoint, then remove old ones. */
pl_status pl_partition_commit(const pl_partition *partition,
                              const pl_manifest_shard *shards) PL_MUST_CHECK;

/* Read the partition's elements, parameters and slots. */
pl_status pl_partition_load(const pl_partition *partition) PL_MUST_CHECK;
/* The same from a checkpoint that is open, and whose folder does not matter. */
pl_status pl_partition_load_from(const pl_partition *partition,
                                 const pl_checkpoint *checkpoint) PL_MUST_CHECK;

#endif
