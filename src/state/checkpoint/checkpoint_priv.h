/* checkpoint_priv.h - what the files of checkpoint.h share.
 *
 * Threads: as in checkpoint.h. */
#ifndef PL_STATE_CHECKPOINT_PRIV_H
#define PL_STATE_CHECKPOINT_PRIV_H

#include "base/file/file.h"
#include "state/checkpoint/checkpoint.h"
#include "state/safetensors/safetensors.h"

#include <stdbool.h>

#define STEP_FORMAT "step-%010lld"
#define OLD_SUFFIX  ".old"
/* Key in a shard's metadata of a tensor that is a slice: "slice.<name>":
 * "<first element> <shape of the whole>" */
#define SLICE_KEY "slice."

/* How thoroughly an open checks the shards. */
typedef enum pl_checkpoint_look {
    PL_LOOK_SIZES,   /* all exist, with the right sizes */
    PL_LOOK_HEADERS, /* and their headers; load checks the sums */
    PL_LOOK_ALL,     /* every byte */
} pl_checkpoint_look;

pl_status pl_checkpoint_open_folder(pl_checkpoint **out, const char *folder,
                                    pl_checkpoint_look look) PL_MUST_CHECK;

typedef struct pl_checkpoint_shard {
    pl_map map;
    pl_safetensors *tensors; /* points into the map */
    bool checked;            /* its sum is right */
} pl_checkpoint_shard;

struct pl_checkpoint {
    char *folder;
    pl_manifest manifest;
    pl_checkpoint_shard *shards; /* as many as the manifest says */
};

pl_status pl_checkpoint_check_sum(const pl_checkpoint_shard *shard,
                                  const pl_manifest_shard *entry) PL_MUST_CHECK;

/* True when a failed open means that there is nothing worth keeping, not that
 * the checkpoint could not be read. */
static inline bool pl_checkpoint_is_rubbish(pl_status status)
{
    return status == PL_FORMAT || status == PL_NOTFOUND || status == PL_SHAPE;
}

#endif
