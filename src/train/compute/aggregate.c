/* Combines micro-batches: clip each gradient, add in order, scale once at the
 * end. Sums of squares use fixed chunks, so the clip factor does not depend on
 * the number of threads. */
#include "train/compute/aggregate.h"

#include "base/assert.h"
#include "base/mem.h"

#include <math.h>

/* Floats one thread handles at a time; fixed, so that the sum of squares is
 * the same for any number of threads. */
#define CHUNK 65536

struct pl_aggregator {
    pl_aggregator_opts opts;
    pl_params *total;
    int64_t count, chunks;
    double *squares; /* one per chunk */
    /* The current gradient. */
    const float *diff;
    bool first, last;
    float factor; /* of clipping */
};

pl_status pl_aggregator_new(pl_aggregator **out, const pl_aggregator_opts *opts)
{
    PL_ASSERT(opts->micro_batches >= 1);
    pl_aggregator *self;
    PL_TRY(PL_NEW(self, 1));
    self->opts = *opts;
    if (opts->kernels == NULL)
        self->opts.kernels = pl_kernels_best();
    self->count = pl_params_block_count(opts->params);
    self->chunks = (self->count + CHUNK - 1) / CHUNK;
    pl_status status;
    PL_TRY_OUT(status,
               pl_params_like_in(&self->total, opts->params, opts->diff));
    PL_TRY_OUT(status, PL_NEW(self->squares, (size_t)self->chunks));
    *out = self;
    return PL_OK;
out:
    pl_aggregator_free(self);
    return status;
}

void pl_aggregator_free(pl_aggregator *aggregator)
{
    if (aggregator == NULL)
        return;
    pl_params_free(aggregator->total);
    pl_mem_free(aggregator->squares);
    pl_mem_free(aggregator);
}

int32_t pl_aggregator_micro_batches(const pl_aggregator *aggregator)
{
    return aggregator->opts.micro_batches;
}

static int64_t chunk_count(const pl_aggregator *self, int64_t chunk)
{
    int64_t left = self->count - chunk * CHUNK;
    return left < CHUNK ? left : CHUNK;
}

/* How many of these are not running averages. */
static int64_t trained_count(const pl_aggregator *self, int64_t chunk)
{
    int64_t left = pl_params_trained(self->total) - chunk * CHUNK;
    int64_t count = chunk_count(self, chunk);
    if (left > count)
        return count;
    return left > 0 ? left : 0;
}

/* Work items the chunks are distributed to. */
static int item_count(const pl_aggregator *self)
{
    int64_t most = 4 * pl_pool_threads(self->opts.pool);
    return (int)(self->chunks < most ? self->chunks : most);
}

static void sum_squares(void *arg, int item, int thread)
{
    pl_aggregator *self = arg;
    (void)thread;
    for (int64_t c = item; c < self->chunks; c += item_count(self))
        self->squares[c] = self->opts.kernels->sum_squares(
            trained_count(self, c), self->diff + c * CHUNK);
}

/* The factor that scales the gradient to the norm limit. */
static float clip_factor(pl_aggregator *self)
{
    if (self->opts.clip <= 0)
        return 1.0f;
    pl_pool_run(self->opts.pool, item_count(self), sum_squares, self);
    double squares = 0;
    for (int64_t c = 0; c < self->chunks; c++)
        squares += self->squares[c];
    double length = sqrt(squares);
    return length > self->opts.clip ? (float)(self->opts.clip / length) : 1.0f;
}

/* Add `count` elements from `first` on; `mean`: take their mean. */
static void add_range(const pl_aggregator *self, int64_t first, int64_t count,
                      float factor, bool mean)
{
    const pl_kernels *kernels = self->opts.kernels;
    float *to = pl_params_block(self->total) + first;
    const float *from = self->diff + first;
    if (self->first) {
        kernels->scale(count, factor, from, to);
    } else if (factor == 1.0f) {
        kernels->add(count, to, from, to);
    } else {
        float clipped[1024];
        for (int64_t i = 0; i < count; i += 1024) {
            int64_t n = count - i < 1024 ? count - i : 1024;
            kernels->scale(n, factor, from + i, clipped);
            kernels->add(n, to + i, clipped, to + i);
        }
    }
    if (self->last && mean && self->opts.micro_batches > 1)
        kernels->scale(count, 1.0f / (float)self->opts.micro_batches, to, to);
}

static void add_chunks(void *arg, int item, int thread)
{
    (void)thread;
    const pl_aggregator *self = arg;
    for (int64_t c = item; c < self->chunks; c += item_count(self)) {
        int64_t first = c * CHUNK, count = chunk_count(self, c);
        int64_t trained = trained_count(self, c);
        if (trained > 0)
            add_range(self, first, trained, self->factor, !self->opts.sum);
        if (trained < count)
            add_range(self, first + trained, count - trained, 1.0f, true);
    }
}

void pl_aggregator_put(pl_aggregator *aggregator, int32_t m,
                       const pl_params *diff)
{
    aggregator->diff = pl_params_block(diff);
    aggregator->first = m == 0;
    aggregator->last = m == aggregator->opts.micro_batches - 1;
    aggregator->factor = clip_factor(aggregator);
    pl_pool_run(aggregator->opts.pool, item_count(aggregator), add_chunks,
                aggregator);
}

float pl_aggregator_factor(const pl_aggregator *aggregator)
{
    return aggregator->factor;
}

pl_params *pl_aggregator_diff(const pl_aggregator *aggregator)
{
    return aggregator->total;
}
