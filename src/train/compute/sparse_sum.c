/* Adds sparse gradients by merging sorted key lists, without branching on which
 * list is next. */
#include "train/compute/sparse_sum.h"

#include "base/mem.h"

#include <string.h>

void pl_sparse_sum_close(pl_sparse_sum *sum)
{
    for (int i = 0; i < 2; i++) {
        pl_mem_free(sum->ids[i]);
        pl_mem_free(sum->sums[i]);
    }
    *sum = (pl_sparse_sum) { .room = 0 };
}

void pl_sparse_sum_clear(pl_sparse_sum *sum)
{
    sum->keys = (pl_keys) { .count = 0 };
    sum->values = NULL;
}

/* Room for `count` keys in both halves; the current sum is preserved. */
static pl_status make_room(pl_sparse_sum *sum, int64_t count)
{
    if (count <= sum->room)
        return PL_OK;
    size_t room = (size_t)(count + count / 4);
    for (int i = 0; i < 2; i++) {
        PL_TRY(PL_RESIZE(sum->ids[i], room));
        PL_TRY(PL_RESIZE(sum->sums[i], room));
    }
    sum->room = (int64_t)room;
    return PL_OK;
}

/* Merge two lists into a third.  Which key is next is unpredictable: both are
 * read and one or both consumed, without a branch. */
static int64_t merge(const pl_keys *a, const float *of_a, const pl_keys *b,
                     const float *of_b, uint64_t *ids, float *out)
{
    int64_t i = 0, j = 0, k = 0;
    while (i < a->count && j < b->count) {
        uint64_t left = a->ids[i], right = b->ids[j];
        float both = of_a[i] + of_b[j];
        float one = left < right ? of_a[i] : of_b[j];
        ids[k] = left < right ? left : right;
        out[k++] = left == right ? both : one;
        i += left <= right;
        j += right <= left;
    }
    for (; i < a->count; i++, k++) {
        ids[k] = a->ids[i];
        out[k] = of_a[i];
    }
    for (; j < b->count; j++, k++) {
        ids[k] = b->ids[j];
        out[k] = of_b[j];
    }
    return k;
}

pl_status pl_sparse_sum_put(pl_sparse_sum *sum, const pl_keys *keys,
                            const float *values)
{
    PL_TRY(make_room(sum, sum->keys.count + keys->count));
    int to = 1 - sum->at;
    pl_keys before = { sum->ids[sum->at], sum->keys.count };
    int64_t count = merge(&before, sum->sums[sum->at], keys, values,
                          sum->ids[to], sum->sums[to]);
    sum->at = to;
    sum->keys = (pl_keys) { sum->ids[to], count };
    sum->values = sum->sums[to];
    return PL_OK;
}

void pl_sparse_sum_scale(pl_sparse_sum *sum, float factor)
{
    for (int64_t k = 0; k < sum->keys.count; k++)
        sum->values[k] *= factor;
}
