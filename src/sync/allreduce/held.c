/* The state that a codec holds back: decides when it counts, and how it is
 * saved in a checkpoint and restored.
 *
 *   H1  The state is that of the last step that counts: a step that all ranks
 *       drop does not change it.
 *   H2  A checkpoint has the state of all workers after the same step, or is
 *       not written.
 *   H3  If the job continues from the parameters of other workers, the state of
 *       the lost worker is gone, and the job reports it. */
#include "sync/allreduce/held.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "state/checkpoint/checkpoint.h"
#include "sync/allreduce/allreduce_priv.h"

#include <stdio.h>
#include <string.h>

pl_status pl_held_new(pl_held **out, int32_t workers, int64_t floats,
                      double momentum, bool gathers)
{
    static const char *const names[] = { "residual", "velocity" };
    pl_held *held;
    PL_ASSERT(workers <= PL_HELD_WORKERS_MOST);
    PL_TRY(PL_NEW(held, 1));
    *held = (pl_held) { .workers = workers,
                        .floats = floats,
                        .blocks = momentum > 0 ? 2 : 1,
                        .momentum = (float)momentum };
    size_t count = (size_t)workers * (size_t)held->blocks;
    pl_status status = PL_OK;
    if (gathers)
        status = PL_NEW(held->all, count * (size_t)floats);
    if (gathers && status == PL_OK)
        status = PL_NEW(held->names, count);
    if (status != PL_OK) {
        pl_held_free(held);
        return status;
    }
    for (size_t i = 0; held->names != NULL && i < count; i++)
        snprintf(held->names[i], sizeof held->names[i],
                 PL_CHECKPOINT_HELD "%zu.%s", i % (size_t)workers,
                 names[i / (size_t)workers]);
    *out = held;
    return PL_OK;
}

void pl_held_free(pl_held *held)
{
    if (held == NULL)
        return;
    pl_mem_free(held->all);
    pl_mem_free(held->names);
    pl_mem_free(held);
}

float *pl_held_block(const pl_held *held, int32_t worker, int block)
{
    return held->all + (block * held->workers + worker) * held->floats;
}

void pl_held_planes(const pl_held *held, pl_planes *planes)
{
    bool some = held != NULL && held->all != NULL;
    for (int b = 0; some && b < held->blocks; b++)
        for (int32_t w = 0; w < held->workers; w++) {
            PL_ASSERT(planes->count < PL_PLANES_MOST);
            planes->data[planes->count] = pl_held_block(held, w, b);
            planes->slots[planes->count++] = held->names[b * held->workers + w];
        }
}

pl_status pl_allreduce_held_init(pl_allreduce_sync *self)
{
    const pl_held *held = self->opts.held;
    if (held == NULL || held->blocks < 2)
        return PL_OK;
    PL_TRY(PL_NEW_ALIGNED(self->velocity, (size_t)self->floats));
    PL_TRY(PL_NEW_ALIGNED(self->next_velocity, (size_t)self->floats));
    memset(self->velocity, 0, (size_t)self->floats * sizeof(float));
    memset(self->next_velocity, 0, (size_t)self->floats * sizeof(float));
    return PL_OK;
}

void pl_allreduce_held_close(pl_allreduce_sync *self)
{
    pl_mem_free(self->velocity);
    pl_mem_free(self->next_velocity);
}

void pl_allreduce_held_ready(pl_allreduce_sync *self,
                             const pl_params_item *item)
{
    if (self->velocity == NULL)
        return;
    float momentum = self->opts.held->momentum;
    float *grad =
        self->collective->ops->memory(self->collective) + item->offset;
    const float *before = self->velocity + item->offset;
    float *after = self->next_velocity + item->offset;
    for (int64_t i = 0; i < item->count; i++)
        grad[i] = after[i] = momentum * before[i] + grad[i];
}

/* This worker's block. */
static float *own_block(const pl_allreduce_sync *self, int block)
{
    return block == 0 ? self->collective->ops->slot(self->collective, 0)
                      : self->velocity;
}

void pl_allreduce_held_keep(pl_allreduce_sync *self)
{
    float *before = self->velocity;
    if (self->opts.held == NULL)
        return;
    self->collective->ops->keep(self->collective);
    self->held_step = self->step;
    self->velocity = self->next_velocity;
    self->next_velocity = before;
    const float *rest = own_block(self, 0);
    for (int64_t i = 0; self->velocity != NULL && i < self->floats; i++)
        if (rest[i] == 0)
            self->velocity[i] = 0;
}

/* Copy one block of one rank to the collective's memory of all ranks. */
static pl_status broadcast(pl_allreduce_sync *self, int32_t from,
                           const float *block)
{
    float *memory = self->collective->ops->memory(self->collective);
    pl_bucket bucket;
    PL_ASSERT(self->ranks.rank != from || block != NULL);
    if (self->ranks.rank == from)
        memcpy(memory, block, (size_t)self->floats * sizeof *memory);
    self->sums = 0;
    pl_buckets_begin(&self->buckets);
    while (pl_buckets_take(&self->buckets, 0, &bucket))
        PL_TRY(pl_allreduce_start_range(self, &(pl_sum_range) {
                                                  .first = bucket.first,
                                                  .count = bucket.count,
                                                  .kind = PL_SUM_BROADCAST,
                                                  .from = from,
                                                  .exact = true,
                                              }));
    for (int32_t t = 0; t < self->sums; t++)
        PL_TRY(pl_allreduce_wait(self, t));
    return PL_OK;
}

/* The rank of a worker; -1: it does not take part. */
static int32_t rank_of(const pl_allreduce_sync *self, int32_t worker)
{
    int32_t rank = 0;
    if (!pl_workers_has(&self->present, worker))
        return -1;
    for (int32_t w = 0; w < worker; w++)
        rank += pl_workers_has(&self->present, w);
    return rank;
}

static pl_status gather_block(pl_allreduce_sync *self, int32_t worker,
                              int block)
{
    const pl_held *held = self->opts.held;
    const float *memory = self->collective->ops->memory(self->collective);
    int32_t rank = rank_of(self, worker);
    size_t bytes = (size_t)self->floats * sizeof(float);
    if (rank >= 0)
        PL_TRY(broadcast(self, rank, own_block(self, block)));
    if (held->all != NULL && rank >= 0)
        memcpy(pl_held_block(held, worker, block), memory, bytes);
    else if (held->all != NULL)
        memset(pl_held_block(held, worker, block), 0, bytes);
    return rank >= 0 ? pl_allreduce_quiet(self) : PL_OK;
}

pl_status pl_allreduce_held_gather(pl_allreduce_sync *self)
{
    const pl_held *held = self->opts.held;
    if (held == NULL)
        return PL_OK;
    self->gathered = -1;
    if (held->all != NULL && self->opts.optim->frozen != NULL)
        pl_frozen_before_change(self->opts.optim->frozen, 0, self->floats);
    for (int b = 0; b < held->blocks; b++)
        for (int32_t w = 0; w < held->workers; w++)
            PL_TRY(gather_block(self, w, b));
    self->gathered = self->step;
    return PL_OK;
}

static pl_status give(pl_allreduce_sync *self)
{
    const pl_held *held = self->opts.held;
    const float *memory = self->collective->ops->memory(self->collective);
    for (int b = 0; b < held->blocks; b++)
        for (int32_t w = 0; w < held->workers; w++) {
            if (rank_of(self, w) < 0)
                continue;
            PL_TRY(broadcast(
                self, 0, held->all != NULL ? pl_held_block(held, w, b) : NULL));
            if (w == self->opts.worker)
                memcpy(own_block(self, b), memory,
                       (size_t)self->floats * sizeof(float));
            PL_TRY(pl_allreduce_quiet(self));
        }
    self->gathered = self->step;
    return PL_OK;
}

/* The job restarts at its first step: nothing was held back before it. */
static void forget(pl_allreduce_sync *self)
{
    for (int b = 0; b < self->opts.held->blocks; b++)
        memset(own_block(self, b), 0, (size_t)self->floats * sizeof(float));
}

pl_status pl_allreduce_held_join(pl_allreduce_sync *self, bool restored,
                                 bool astray)
{
    if (self->opts.held == NULL)
        return PL_OK;
    if (restored) {
        PL_TRY(give(self));
    } else if (self->step == 0) {
        forget(self);
    } else if (astray) {
        self->mixed = true; /* H3 */
        if (self->keeps && self->ranks.rank == 0)
            pl_log(PL_LOG_WARN,
                   "what the codec had kept of the lost worker's gradients is "
                   "gone: the result will not have the bits of a job in which "
                   "no worker is lost");
    }
    self->held_step = self->step;
    return PL_OK;
}
