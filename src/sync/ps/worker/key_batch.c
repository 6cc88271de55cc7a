/* The keys of one batch, sorted, with room for their values, and where the keys
 * of each server begin. */
#include "sync/ps/worker/key_batch.h"

#include "base/mem.h"
#include "sync/ps/messages/pieces.h"

pl_status pl_key_batch_init(pl_key_batch *batch, int32_t servers)
{
    *batch = (pl_key_batch) { .servers = servers };
    return PL_NEW(batch->cut, (size_t)servers + 1);
}

void pl_key_batch_close(pl_key_batch *batch)
{
    pl_mem_free(batch->keys);
    pl_mem_free(batch->values);
    pl_mem_free(batch->cut);
    *batch = (pl_key_batch) { .count = 0 };
}

pl_status pl_key_batch_resize(pl_key_batch *batch, int64_t count)
{
    batch->number = 0;
    batch->count = 0;
    if (count > batch->room) {
        size_t room = (size_t)(count + count / 4);
        pl_mem_free(batch->keys);
        pl_mem_free(batch->values);
        batch->values = NULL;
        batch->room = 0;
        PL_TRY(PL_NEW(batch->keys, room));
        PL_TRY(PL_NEW_ALIGNED(batch->values, room));
        batch->room = (int64_t)room;
    }
    batch->count = count;
    return PL_OK;
}

/* The index of the first key that is at least `place`. */
static int64_t find(const pl_key_batch *batch, uint64_t place)
{
    int64_t low = 0, high = batch->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (batch->keys[middle] < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

pl_status pl_key_batch_cut(pl_key_batch *batch, int64_t floats)
{
    int32_t servers = batch->servers;
    for (int32_t j = 0; j < servers; j++) {
        int64_t first, count;
        pl_pieces_shard(floats, servers, j, &first, &count);
        batch->cut[j] = find(batch, (uint64_t)first);
    }
    batch->cut[servers] = batch->count;
    for (int32_t j = 0; j < servers; j++)
        if (pl_key_batch_of(batch, j) > PL_KEY_BATCH_MOST)
            return PL_FAIL(PL_USAGE,
                           "a batch has %lld distinct features at ps %d; a "
                           "message holds %lld: make --batch (or --eval-batch) "
                           "smaller, or give --ps more",
                           (long long)pl_key_batch_of(batch, j), j,
                           (long long)PL_KEY_BATCH_MOST);
    return PL_OK;
}
