/* buckets.c - cuts the gradient into buckets from its end to its beginning, and
 * hands out each one when it is fully computed. */
#include "sync/allreduce/buckets.h"

#include "base/assert.h"

#define OVERHEAD 0.1 /* the share of the fixed cost in a sum's time */

static int64_t round_up(int64_t value, int64_t to)
{
    return (value + to - 1) / to * to;
}

void pl_buckets_init(pl_buckets *buckets, int64_t floats, int64_t bytes,
                     int64_t grain, int32_t most)
{
    PL_ASSERT(floats > 0 && bytes > 0 && grain > 0 && most > 0);
    int64_t size = bytes / (int64_t)sizeof(float);
    int64_t least = (floats + most - 1) / most;
    size = round_up(size > least ? size : least, grain);
    *buckets = (pl_buckets) {
        .floats = floats,
        .size = size,
        .count = (int32_t)((floats + size - 1) / size),
    };
}

void pl_buckets_begin(pl_buckets *buckets)
{
    buckets->next = 0;
}

bool pl_buckets_take(pl_buckets *buckets, int64_t ready, pl_bucket *out)
{
    if (buckets->next == buckets->count)
        return false;
    int64_t first = (buckets->count - 1 - buckets->next) * buckets->size;
    int64_t left = buckets->floats - first;
    if (first < ready)
        return false;
    buckets->next++;
    *out = (pl_bucket) {
        .first = first,
        .count = left < buckets->size ? left : buckets->size,
        .last = buckets->next == buckets->count,
    };
    return true;
}

int64_t pl_buckets_choose(const pl_bucket_probe *probe)
{
    double bytes = (double)(probe->large_bytes - probe->small_bytes);
    double seconds = probe->large_s - probe->small_s;
    if (bytes <= 0 || seconds <= 0)
        return PL_BUCKET_LEAST; /* the time does not grow with the size */
    double per_byte = seconds / bytes;
    double fixed = probe->small_s - per_byte * (double)probe->small_bytes;
    double size = fixed * (1 - OVERHEAD) / OVERHEAD / per_byte;
    if (!(size > (double)PL_BUCKET_LEAST))
        return PL_BUCKET_LEAST;
    return size < (double)PL_BUCKET_MOST ? (int64_t)size : PL_BUCKET_MOST;
}
