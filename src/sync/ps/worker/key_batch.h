/* key_batch.h - the keys of one batch, and their values as received from
 * servers.
 *
 * Keys are indices of the parameter block, sorted and distinct.  Each server
 * has a run of them: keys[cut[j]] to keys[cut[j + 1] - 1] are server j's.
 *
 * Threads: one object, one thread. */
#ifndef PL_SYNC_PS_WORKER_KEY_BATCH_H
#define PL_SYNC_PS_WORKER_KEY_BATCH_H

#include "paceline/base.h"

#include <stdint.h>

/* Keys of one server in one message: their values must fit, too. */
#define PL_KEY_BATCH_MOST ((int64_t)1 << 20)

typedef struct pl_key_batch {
    int64_t number; /* of the list; 0: not yet requested */
    int64_t count;
    uint64_t *keys;
    float *values;
    int64_t *cut; /* [servers + 1] */
    int32_t servers;
    int64_t room;
} pl_key_batch;

pl_status pl_key_batch_init(pl_key_batch *batch, int32_t servers) PL_MUST_CHECK;
void pl_key_batch_close(pl_key_batch *batch); /* may be zeroed */

/* Make room for `count` keys, to be written to batch->keys by the caller. */
pl_status pl_key_batch_resize(pl_key_batch *batch, int64_t count) PL_MUST_CHECK;
/* Find the servers' runs in a block of `floats`.  PL_USAGE when one server
 * would get more keys than a message holds. */
pl_status pl_key_batch_cut(pl_key_batch *batch, int64_t floats) PL_MUST_CHECK;

static inline int64_t pl_key_batch_of(const pl_key_batch *batch, int32_t server)
{
    return batch->cut[server + 1] - batch->cut[server];
}

#endif
