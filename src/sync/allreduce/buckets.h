/* buckets.h - the ranges of the gradient that are summed while the rest is
 * still being computed.
 *
 * Gradients are computed from the last parameter to the first, so buckets are
 * taken from the end of the block to its beginning, cut at multiples of `size`:
 * the first one may be smaller.
 *
 * Threads: one. */
#ifndef PL_SYNC_ALLREDUCE_BUCKETS_H
#define PL_SYNC_ALLREDUCE_BUCKETS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pl_buckets {
    int64_t floats; /* of the block */
    int64_t size;   /* floats of a bucket */
    int32_t count;
    int32_t next; /* the next bucket of this step to hand out */
} pl_buckets;

typedef struct pl_bucket {
    int64_t first, count; /* floats of the block */
    bool last;            /* of the step */
} pl_bucket;

/* `bytes`: size of a bucket, rounded up to whole grains, and raised if the
 * block would need more than `most` buckets. */
void pl_buckets_init(pl_buckets *buckets, int64_t floats, int64_t bytes,
                     int64_t grain, int32_t most);
/* A step begins. */
void pl_buckets_begin(pl_buckets *buckets);
/* All floats from `ready` on are computed: get the next complete bucket; false
 * when there is none yet. */
bool pl_buckets_take(pl_buckets *buckets, int64_t ready, pl_bucket *out);

/* The size at which the fixed cost of a sum is a tenth of its time, from the
 * seconds that a small and a large sum took; between PL_BUCKET_LEAST and
 * PL_BUCKET_MOST bytes. */
#define PL_BUCKET_LEAST ((int64_t)256 << 10)
#define PL_BUCKET_MOST  ((int64_t)32 << 20)
typedef struct pl_bucket_probe {
    int64_t small_bytes, large_bytes;
    double small_s, large_s;
} pl_bucket_probe;
int64_t pl_buckets_choose(const pl_bucket_probe *probe);

#endif
