/* part.h - a range of a run's parameters, and its part in checkpoints.
 *
 * Who trains knows tensors (train/snapshot.h); who holds a range of the
 * parameter block, a parameter server, knows only floats.  A plan tells it:
 * a text (JSON) with the folder, the place of each tensor in the block and
 * what the manifest is to say.  Out of a plan and the memory of the range
 * comes a pl_part: it writes its shard, completes the checkpoint when all
 * have written theirs, or reads its elements back, from any number of shards.
 *
 * The members of a plan: "checkpoints" (a folder, where the place has none),
 * "folder" (a name in it),
 * "tensors" ([{"name", "shape", "first"}], rising), and for a save "step",
 * "keep", "model", "settings", "state".
 *
 * Threads: a part belongs to one thread at a time. */
#ifndef PL_TRAIN_PART_H
#define PL_TRAIN_PART_H

#include "train/checkpoint.h"
#include "train/frozen.h"
#include "train/optim.h"
#include "train/place.h"

#include <stdatomic.h>

typedef struct pl_part pl_part;

/* What a server without a run folder of its own has learned. */
typedef struct pl_part_own {
    char *checkpoints; /* the folder; NULL: not yet */
    int64_t *steps;    /* of the checkpoints that it completed; the last last */
    size_t count;
} pl_part_own;
void pl_part_own_close(pl_part_own *own); /* a zeroed one is fine */

typedef struct pl_part_opts {
    int32_t index, of;     /* of those who hold the block */
    int64_t first, count;  /* the range of the block; >= 1 float */
    float *params;         /* [count]; all is borrowed */
    const pl_optim *optim; /* over it */
    pl_place place;        /* of its checkpoints */
    pl_part_own *own;      /* place.within: nothing else is written or removed;
                              kept from part to part.  NULL: no matter */
} pl_part_opts;

/* Nothing in the plan is trusted: PL_FORMAT. */
pl_status pl_part_new(pl_part **out, const char *plan, size_t bytes,
                      const pl_part_opts *opts) PL_MUST_CHECK;
void pl_part_free(pl_part *part); /* NULL is fine */

/* Write this part's shard from memory frozen in planes: the parameters, then
 * the slots.  PL_NUMERIC when a parameter is not finite, PL_CLOSED when
 * *cancelled became true. */
pl_status pl_part_write(const pl_part *part, pl_frozen *frozen,
                        const atomic_bool *cancelled,
                        pl_manifest_shard *out) PL_MUST_CHECK;

/* All shards are written: complete the checkpoint, then remove old ones. */
pl_status pl_part_commit(const pl_part *part,
                         const pl_manifest_shard *shards) PL_MUST_CHECK;

/* Read the part's elements, parameters and slots. */
pl_status pl_part_load(const pl_part *part) PL_MUST_CHECK;

#endif
