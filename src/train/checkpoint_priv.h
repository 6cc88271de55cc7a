/* checkpoint_priv.h - what checkpoint.c and checkpoint_list.c share.
 *
 * Threads: as in checkpoint.h. */
#ifndef PL_TRAIN_CHECKPOINT_PRIV_H
#define PL_TRAIN_CHECKPOINT_PRIV_H

#include "train/checkpoint.h"

#include <stdbool.h>

#define STEP_FORMAT "step-%010lld"
#define OLD_SUFFIX  ".old"

/* As pl_checkpoint_open; without `verify` the files are only looked at (all
 * there, right size), not read. */
pl_status pl_checkpoint_open_folder(pl_checkpoint **out, const char *folder,
                                    bool verify) PL_MUST_CHECK;

/* True when a failed open means that there is nothing worth keeping, not that
 * it could not be looked at. */
static inline bool pl_checkpoint_is_rubbish(pl_status status)
{
    return status == PL_FORMAT || status == PL_NOTFOUND || status == PL_SHAPE;
}

#endif
