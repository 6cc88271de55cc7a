/* Rounds of --local-steps: decides when workers that train separately take the
 * mean of their parameters.
 *
 * A round has H steps; it ends at every step that is a multiple of H and at the
 * last step.  In its first step the ranks exchange their status, as they do in
 * every step of plain all-reduce, so that a stop or a difference is known
 * before the round counts.  Then each rank makes its updates alone.  After the
 * last one, parameters and optimizer slots are replaced by their mean over all
 * ranks, and the parameters take the outer step from the beginning of the
 * round:
 *
 *   d = begin - mean,   v = outer_momentum v + d,   begin - outer_lr v
 *
 * With an outer momentum of 0 and an outer rate of 1 that is the mean.
 *
 * Invariants:
 *   O1  Between rounds all ranks hold the same bits; only then is anything
 *       tested, saved or stopped (pl_commit.midway).
 *   O2  When a rank is lost in mid-round, the round is repeated from its
 *       beginning, so the result is bit-identical to that of an undisturbed
 *       job. */
#include "sync/allreduce/allreduce_priv.h"

#include "base/mem.h"

#include <string.h>

#define LINE 16 /* floats; parts of a block begin at multiples */

/* One block that is replaced by its mean. */
typedef struct averaging {
    pl_allreduce_sync *self;
    const pl_bucket *bucket;
    int plane; /* 0: the parameters, which take the outer step */
} averaging;

static bool is_outer(const pl_allreduce_sync *self)
{
    return self->opts.outer_lr != 1 || self->opts.outer_momentum != 0;
}

static pl_planes planes_of(const pl_allreduce_sync *self)
{
    return pl_optim_planes(self->opts.optim,
                           pl_params_block(self->opts.params));
}

/* The planes that each rank changes on its own: all but the outer momentum. */
static int own_planes(const pl_allreduce_sync *self)
{
    return 1 + self->opts.optim->ops->slot_count;
}

pl_status pl_allreduce_rounds_init(pl_allreduce_sync *self)
{
    for (int i = 0; self->opts.local_steps > 1 && i < own_planes(self); i++)
        PL_TRY(PL_NEW_ALIGNED(self->begin[i], (size_t)self->floats));
    return PL_OK;
}

void pl_allreduce_rounds_close(pl_allreduce_sync *self)
{
    for (int i = 0; i < 1 + PL_MAX_SLOTS; i++)
        pl_mem_free(self->begin[i]);
}

void pl_allreduce_begin_round(pl_allreduce_sync *self)
{
    pl_planes planes = planes_of(self);
    for (int i = 0; i < own_planes(self); i++)
        memcpy(self->begin[i], planes.data[i],
               (size_t)self->floats * sizeof(float));
    self->begin_step = self->step;
}

void pl_allreduce_undo_round(pl_allreduce_sync *self)
{
    pl_planes planes = planes_of(self);
    if (self->opts.optim->frozen != NULL)
        pl_frozen_before_change(self->opts.optim->frozen, 0, self->floats);
    for (int i = 0; i < own_planes(self); i++)
        memcpy(planes.data[i], self->begin[i],
               (size_t)self->floats * sizeof(float));
    self->step = self->begin_step;
}

/* The part of `count` floats that belongs to one of several threads. */
static void part_of(int64_t count, int item, int parts, int64_t *first,
                    int64_t *last)
{
    int64_t lines = (count + LINE - 1) / LINE;
    *first = lines * item / parts * LINE;
    *last = lines * (item + 1) / parts * LINE;
    if (*last > count)
        *last = count;
}

static void update_part(void *arg, int item, int thread)
{
    (void)thread;
    pl_allreduce_sync *self = arg;
    const float *grad = self->collective->ops->memory(self->collective);
    int64_t first, last;
    part_of(self->floats, item, pl_pool_threads(self->opts.pool), &first,
            &last);
    pl_optim_update(self->opts.optim, first, last - first, grad + first,
                    pl_params_block(self->opts.params));
}

void pl_allreduce_update_alone(pl_allreduce_sync *self)
{
    int64_t update = self->step + 1;
    pl_optim_begin(self->opts.optim, update,
                   pl_schedule_lr(self->opts.schedule, update));
    pl_pool_run(self->opts.pool, pl_pool_threads(self->opts.pool), update_part,
                self);
    self->step = update;
}

/* The mean of a part of a bucket: for slots and running averages it is the
 * result, for parameters the target of the outer step. */
static void average_part(void *arg, int item, int thread)
{
    (void)thread;
    const averaging *a = arg;
    pl_allreduce_sync *self = a->self;
    const float *sums = self->collective->ops->memory(self->collective);
    pl_planes planes = planes_of(self);
    float factor = 1.0f / (float)self->ranks.count;
    int64_t first, last;
    part_of(a->bucket->count, item, pl_pool_threads(self->opts.pool), &first,
            &last);
    first += a->bucket->first;
    last += a->bucket->first;
    if (self->opts.optim->frozen != NULL)
        pl_frozen_before_change(self->opts.optim->frozen, first, last - first);
    float *to = planes.data[a->plane];
    self->opts.optim->kernels->scale(last - first, factor, sums + first,
                                     to + first);
    if (a->plane > 0 || !is_outer(self))
        return;
    const float *begin = self->begin[0];
    float *v = self->opts.optim->outer != NULL
                   ? pl_params_block(self->opts.optim->outer)
                   : NULL;
    float rate = (float)self->opts.outer_lr;
    float momentum = (float)self->opts.outer_momentum;
    if (last > self->opts.optim->averaged)
        last = self->opts.optim->averaged;
    for (int64_t i = first; i < last; i++) {
        float move = begin[i] - to[i];
        if (v != NULL)
            move = v[i] = momentum * v[i] + move;
        to[i] = begin[i] - rate * move;
    }
}

/* Sum one block over all ranks, exactly, and take the mean. */
static pl_status average(pl_allreduce_sync *self, int plane)
{
    averaging a = { .self = self, .plane = plane };
    float *memory = self->collective->ops->memory(self->collective);
    memcpy(memory, planes_of(self).data[plane],
           (size_t)self->floats * sizeof(float));
    self->sums = 0;
    pl_buckets_begin(&self->buckets);
    PL_TRY(pl_allreduce_start(self, 0, true));
    for (int32_t t = 0; t < self->sums; t++)
        PL_TRY(pl_allreduce_wait(self, t));
    uint64_t begin = pl_ticks_now();
    for (int32_t t = 0; t < self->sums; t++) {
        a.bucket = &self->started[t];
        pl_pool_run(self->opts.pool, pl_pool_threads(self->opts.pool),
                    average_part, &a);
    }
    pl_allreduce_computed(self, begin);
    return PL_OK;
}

bool pl_allreduce_round_ends(const pl_allreduce_sync *self)
{
    return self->step % self->opts.local_steps == 0 ||
           self->step >= self->end_step;
}

/* The parameters come last, with the outer momentum: if a peer is lost earlier
 * the round can be undone, if later the round is complete here. */
pl_status pl_allreduce_end_round(pl_allreduce_sync *self)
{
    for (int i = own_planes(self) - 1; i > 0; i--) {
        PL_TRY(average(self, i));
        PL_TRY(pl_allreduce_quiet(self));
    }
    PL_TRY(average(self, 0));
    pl_allreduce_begin_round(self);
    return pl_allreduce_quiet(self);
}
