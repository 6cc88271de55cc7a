/* Decides how a step of all-reduce ends.  When its first gradient is ready,
 * each rank offers its status (whether it stops, and the checksum of what it
 * saved); buckets are summed as they fill up; at the commit each rank gets the
 * combined status and, if no rank stops, applies the update.  All ranks see the
 * same status and the same sums, so all take the same decision.
 *
 * A rank that stops (--stop-loss, Ctrl-C) makes a step in which only its status
 * counts: the others drop their gradients.  The end of the training that is
 * known in advance needs no status.
 *
 * With --local-steps only the first step of a round has a status, and sums are
 * of parameters (rounds.c).
 *
 * Only the chief tests and saves, since all ranks have the same parameters.
 * Its next status carries a checksum that each rank compares before it applies
 * the update. */
#include "sync/allreduce/allreduce_priv.h"

#include "base/assert.h"
#include "base/hash/crc32c.h"
#include "base/mem.h"
#include "base/record/report.h"

#include <stdio.h>
#include <string.h>

#define SLICE_MS 1000 /* the longest single wait */
#define RANGE    2048 /* floats scaled and applied at once */

/* Flags of a step's status. */
#define STATUS_STOP     1
#define STATUS_BROKEN   2  /* ... because it was interrupted */
#define STATUS_CHECKSUM 4  /* the chief's: of the saved parameters */
#define STATUS_APART    8  /* combined: a rank is at another step */
#define STATUS_SAVES    16 /* the chief's: a checkpoint follows this step */

typedef struct step_status {
    int64_t step; /* updates made */
    int64_t flags;
    int64_t checksum;
    int64_t worker;
    int64_t apart_worker, apart_step; /* combined */
} step_status;

/* The last exchange: the chief collects the reports of all workers. */
typedef struct farewell {
    int64_t checksum, dropped, worker;
    char report[4096]; /* JSON */
} farewell;

static void combine_steps(void *total_bytes, const void *bytes)
{
    step_status *total = total_bytes;
    const step_status *one = bytes;
    total->flags |= one->flags & (STATUS_STOP | STATUS_BROKEN);
    if (one->step == total->step || (total->flags & STATUS_APART) != 0)
        return;
    total->flags |= STATUS_APART;
    total->apart_worker = one->worker;
    total->apart_step = one->step;
}

static pl_deadline slice(void)
{
    return pl_deadline_in_ms(pl_clock_real(), SLICE_MS);
}

void pl_allreduce_computed(pl_allreduce_sync *self, uint64_t begin)
{
    self->own_ticks += pl_ticks_now() - begin;
}

pl_status pl_allreduce_exchanged(pl_allreduce_sync *self)
{
    pl_status status;
    do
        status = self->collective->ops->exchange(self->collective,
                                                 self->exchanged, slice());
    while (status == PL_TIMEOUT);
    return status;
}

pl_status pl_allreduce_exchange(pl_allreduce_sync *self, const void *status,
                                size_t bytes, pl_combine *combine)
{
    PL_TRY(
        self->collective->ops->offer(self->collective, status, bytes, combine));
    return pl_allreduce_exchanged(self);
}

pl_status pl_allreduce_wait(pl_allreduce_sync *self, int32_t ticket)
{
    pl_status status;
    do
        status = self->collective->ops->wait(self->collective, ticket, slice());
    while (status == PL_TIMEOUT);
    return status;
}

pl_status pl_allreduce_quiet(pl_allreduce_sync *self)
{
    pl_status status;
    do
        status = self->collective->ops->quiet(self->collective, slice());
    while (status == PL_TIMEOUT);
    return status;
}

pl_status pl_allreduce_start_range(pl_allreduce_sync *self,
                                   const pl_sum_range *range)
{
    int32_t ticket;
    PL_TRY(self->collective->ops->start(self->collective, range, &ticket));
    PL_ASSERT(ticket == self->sums);
    self->started[self->sums++] = (pl_bucket) {
        .first = range->first,
        .count = range->count,
    };
    return PL_OK;
}

pl_status pl_allreduce_start(pl_allreduce_sync *self, int64_t ready, bool exact)
{
    pl_bucket bucket;
    while (pl_buckets_take(&self->buckets, ready, &bucket))
        PL_TRY(pl_allreduce_start_range(self, &(pl_sum_range) {
                                                  .first = bucket.first,
                                                  .count = bucket.count,
                                                  .exact = exact,
                                                  .more = !bucket.last,
                                              }));
    return PL_OK;
}

pl_status pl_allreduce_start_factors(pl_allreduce_sync *self, int param)
{
    float *memory = self->collective->ops->memory(self->collective);
    pl_sum_range range;
    bool fresh = true;
    for (; pl_factor_step_take(&self->factors, param, fresh, memory, &range);
         fresh = false) {
        range.more = self->sums + 1 < self->expected;
        PL_TRY(pl_allreduce_start_range(self, &range));
    }
    return PL_OK;
}

uint32_t pl_allreduce_checksum(const pl_allreduce_sync *self)
{
    return pl_crc32c(0, pl_params_block(self->opts.params),
                     (size_t)self->floats * sizeof(float));
}

/* Offer the status of the next step. */
static pl_status begin_step(pl_allreduce_sync *self, int64_t flags)
{
    step_status own = {
        .step = self->step,
        .flags = flags,
        .worker = self->opts.worker,
    };
    if (self->compares) {
        own.flags |= STATUS_CHECKSUM;
        own.checksum = pl_allreduce_checksum(self);
    }
    self->compares = false;
    if (self->expects)
        own.flags |= STATUS_SAVES;
    self->in_step = true;
    self->sums = 0;
    self->ready = self->floats;
    pl_buckets_begin(&self->buckets);
    self->expected = self->factors.on ? pl_factor_step_begin(&self->factors)
                                      : self->buckets.count;
    return self->collective->ops->offer(self->collective, &own, sizeof own,
                                        combine_steps);
}

static pl_status differs(const pl_allreduce_sync *self, int64_t worker)
{
    return PL_FAIL(PL_PEER,
                   "the parameters of worker %lld differ from the chief's at "
                   "step %lld: its memory or its processor is faulty, or the "
                   "programs differ; earlier checkpoints are unaffected",
                   (long long)worker, (long long)self->step);
}

/* Get the combined status; *stop: this step makes no update. */
static pl_status end_exchange(pl_allreduce_sync *self, bool *stop)
{
    const step_status *all = self->exchanged;
    PL_TRY(pl_allreduce_exchanged(self));
    if ((all->flags & STATUS_APART) != 0)
        return PL_FAIL(PL_PEER,
                       "worker %lld is at step %lld, the chief at %lld",
                       (long long)all->apart_worker, (long long)all->apart_step,
                       (long long)all->step);
    *stop = (all->flags & STATUS_STOP) != 0;
    self->expects = (all->flags & STATUS_SAVES) != 0;
    self->over = self->over || *stop;
    self->broken = self->broken || (all->flags & STATUS_BROKEN) != 0;
    if ((all->flags & STATUS_CHECKSUM) != 0 &&
        all->checksum != (int64_t)pl_allreduce_checksum(self))
        return differs(self, self->opts.worker);
    return PL_OK;
}

/* Apply one part of a bucket.  The next rank may still read the sums, so the
 * mean goes to other memory. */
static void apply_part(void *arg, int item, int thread)
{
    (void)thread;
    pl_allreduce_sync *self = arg;
    const pl_optim *optim = self->opts.optim;
    const float *sums = self->collective->ops->memory(self->collective);
    float *block = pl_params_block(self->opts.params);
    float factor = 1.0f / (float)self->ranks.count, mean[RANGE];
    int64_t lines = (self->applying->count + 15) / 16;
    int64_t parts = pl_pool_threads(self->opts.pool);
    int64_t first = lines * item / parts * 16;
    int64_t last = lines * (item + 1) / parts * 16;
    if (last > self->applying->count)
        last = self->applying->count;
    for (int64_t i = first; i < last; i += RANGE) {
        int64_t n = last - i < RANGE ? last - i : RANGE;
        const float *grad = sums + self->applying->first + i;
        int64_t at = self->applying->first + i;
        optim->kernels->scale(n, self->opts.sum ? 1.0f : factor, grad, mean);
        if (self->opts.sum)
            pl_optim_mean(optim, at, n, self->ranks.count, mean);
        pl_optim_update(optim, at, n, mean, block);
    }
}

/* All sums are complete before the first one is used: losing a peer never
 * leaves half an update, so the chief's parameters are consistent at any
 * time. */
static void make_update(pl_allreduce_sync *self)
{
    int64_t update = self->step + 1;
    pl_optim_begin(self->opts.optim, update,
                   pl_schedule_lr(self->opts.schedule, update));
    for (int32_t t = 0; t < self->sums; t++) {
        self->applying = &self->started[t];
        pl_pool_run(self->opts.pool, pl_pool_threads(self->opts.pool),
                    apply_part, self);
    }
    self->step = update;
}

static void note_progress(pl_allreduce_sync *self)
{
    if (self->collective->ops->progress != NULL)
        self->collective->ops->progress(self->collective);
}

/* A worker whose update waits for the disk is not stuck. */
static void wait_for_disk(void *context)
{
    note_progress(context);
}

static void progress(void *sync)
{
    note_progress(sync);
}

static pl_status need(pl_sync *sync, int param, const pl_keys *keys)
{
    (void)param, (void)keys;
    note_progress((pl_allreduce_sync *)sync);
    return PL_OK;
}

static bool apart(const pl_allreduce_sync *self)
{
    return self->opts.local_steps > 1;
}

static bool begins_round(const pl_allreduce_sync *self)
{
    return self->step == self->begin_step;
}

static pl_status ready(pl_sync *sync, int param, const float *grad,
                       const pl_keys *keys)
{
    pl_allreduce_sync *self = (pl_allreduce_sync *)sync;
    const pl_params_item *item = pl_params_get(self->opts.params, param);
    PL_ASSERT(keys == NULL &&
              grad == self->collective->ops->memory(self->collective) +
                          item->offset);
    note_progress(self);
    if (apart(self))
        return begins_round(self) && !self->in_step ? begin_step(self, 0)
                                                    : PL_OK;
    if (!self->in_step)
        PL_TRY(begin_step(self, 0));
    pl_allreduce_held_ready(self, item);
    if (self->factors.on)
        return pl_allreduce_start_factors(self, param);
    if (item->offset < self->ready)
        self->ready = item->offset;
    return pl_allreduce_start(self, self->ready, false);
}

static pl_status wait_sums(pl_allreduce_sync *self, int32_t from, int32_t end)
{
    for (int32_t t = from; t < end; t++)
        PL_TRY(pl_allreduce_wait(self, t));
    return PL_OK;
}

/* Wait for the factors, which arrive first, and add their products while the
 * rest is still being summed. */
static pl_status end_factors(pl_allreduce_sync *self)
{
    const pl_collective_ops *collective = self->collective->ops;
    float *memory = collective->memory(self->collective);
    PL_TRY(wait_sums(self, 0, self->factors.slots_end));
    if (collective->background != NULL)
        collective->background(self->collective);
    uint64_t begin = pl_ticks_now();
    pl_factor_step_multiply(&self->factors, memory, progress, self);
    pl_allreduce_computed(self, begin);
    PL_TRY(wait_sums(self, self->factors.slots_end, self->sums));
    pl_factor_step_take_rest(&self->factors, memory);
    self->started[0] = (pl_bucket) { .first = 0, .count = self->floats };
    self->sums = 1; /* the whole gradient, as one piece */
    return PL_OK;
}

/* Wait for the status and the sums of this step. */
static pl_status end_step(pl_allreduce_sync *self, bool *stop)
{
    PL_ASSERT(self->in_step && self->sums == self->expected);
    PL_TRY(end_exchange(self, stop));
    PL_TRY(self->factors.on && !*stop ? end_factors(self)
                                      : wait_sums(self, 0, self->sums));
    self->in_step = false;
    return PL_OK;
}

static void note_update(pl_allreduce_sync *self)
{
    self->last_ns = pl_clock_now_ns(pl_clock_real());
    if (self->first_ns == 0)
        self->first_ns = self->last_ns;
}

/* A step in which all ranks apply the same sums. */
static pl_status commit_together(pl_allreduce_sync *self, bool *stop)
{
    PL_TRY(end_step(self, stop));
    if (!*stop) {
        uint64_t begin = pl_ticks_now();
        make_update(self);
        pl_allreduce_held_keep(self);
        note_update(self);
        pl_allreduce_computed(self, begin);
    }
    return pl_allreduce_quiet(self);
}

/* Gather what the codec of each worker holds back if a checkpoint may
 * follow. */
static pl_status gather_held(pl_allreduce_sync *self)
{
    bool last = self->over || self->step >= self->end_step;
    bool wanted = self->keeps && (last || self->expects);
    self->expects = false;
    return wanted ? pl_allreduce_held_gather(self) : PL_OK;
}

/* A step of this rank alone; the last one of a round averages over all
 * ranks. */
static pl_status commit_apart(pl_allreduce_sync *self, bool *stop)
{
    *stop = false;
    if (begins_round(self))
        PL_TRY(end_exchange(self, stop));
    self->in_step = false;
    if (*stop)
        return PL_OK;
    uint64_t begin = pl_ticks_now();
    pl_allreduce_update_alone(self);
    pl_allreduce_computed(self, begin);
    if (pl_allreduce_round_ends(self))
        PL_TRY(pl_allreduce_end_round(self));
    note_update(self);
    return PL_OK;
}

static pl_status commit(pl_sync *sync, pl_commit *out)
{
    pl_allreduce_sync *self = (pl_allreduce_sync *)sync;
    bool stop;
    self->own_ticks = 0;
    PL_TRY(apart(self) ? commit_apart(self, &stop)
                       : commit_together(self, &stop));
    PL_TRY(gather_held(self));
    if (self->collective->ops->stepped != NULL)
        self->collective->ops->stepped(self->collective);
    self->dropped += stop;
    self->over = self->over || self->step >= self->end_step;
    *out = (pl_commit) {
        .step = self->step,
        .dropped = stop,
        .stop = self->over,
        .midway = apart(self) && !begins_round(self),
        .own_ticks = self->own_ticks,
    };
    return PL_OK;
}

pl_status pl_allreduce_save(pl_sync *sync, const pl_progress *progress,
                            bool last)
{
    pl_allreduce_sync *self = (pl_allreduce_sync *)sync;
    pl_snapshot *snapshot = self->opts.snapshot;
    if (snapshot == NULL)
        return PL_OK;
    if (self->opts.held != NULL && self->gathered != self->step)
        return PL_AGAIN; /* without it the checkpoint would be incomplete */
    int64_t *counts = pl_snapshot_counts(snapshot);
    for (int32_t w = 0; counts != NULL && w < self->opts.workers; w++)
        counts[w] = progress->step;
    pl_progress copied = *progress;
    copied.bucket_bytes = self->bucket_bytes;
    copied.link = self->link;
    copied.mixed = copied.mixed || self->mixed;
    PL_TRY(pl_snapshot_save(snapshot, &copied, last));
    self->compares = true;
    return PL_OK;
}

/* Take part in one more step, in which only the status counts. */
static pl_status stop(pl_sync *sync, const char *why)
{
    pl_allreduce_sync *self = (pl_allreduce_sync *)sync;
    bool stopped, broken = strcmp(why, "interrupt") == 0;
    if (self->over)
        return PL_OK;
    PL_TRY(begin_step(self, STATUS_STOP | (broken ? STATUS_BROKEN : 0)));
    if (apart(self)) {
        self->in_step = false;
        return end_exchange(self, &stopped);
    }
    for (int p = pl_params_count(self->opts.params) - 1;
         self->factors.on && p >= 0; p--)
        PL_TRY(pl_allreduce_start_factors(self, p));
    if (!self->factors.on)
        PL_TRY(pl_allreduce_start(self, 0, false));
    PL_TRY(end_step(self, &stopped));
    PL_TRY(pl_allreduce_quiet(self));
    return gather_held(self);
}

/* The chief joins all reports into one text; a worker whose report is missing
 * or malformed counts as lost. */
static pl_status keep_reports(pl_allreduce_sync *self, const farewell *all)
{
    pl_job_reports reports = {
        .restarts = self->collective->ops->look(self->collective).restarts,
        .mixed = self->mixed,
    };
    PL_TRY(PL_NEW(reports.workers, (size_t)self->ranks.count));
    for (int32_t r = 0; r < self->ranks.count; r++) {
        pl_worker_report *row = &reports.workers[reports.worker_count++];
        reports.dropped += all[r].dropped;
        if (pl_worker_report_parse(row, all[r].report, strlen(all[r].report)) !=
            PL_OK)
            *row = pl_worker_report_lost((int32_t)all[r].worker, -1,
                                         all[r].dropped);
    }
    pl_mem_free(self->reports);
    self->reports = NULL;
    pl_status status =
        pl_fields_text(&pl_job_reports_fields, &reports, 0, &self->reports);
    pl_fields_close(&pl_job_reports_fields, &reports);
    return status;
}

static pl_status write_farewell(pl_allreduce_sync *self, farewell *out)
{
    *out = (farewell) {
        .checksum = pl_allreduce_checksum(self),
        .dropped = self->dropped,
        .worker = self->opts.worker,
    };
    if (self->opts.report == NULL)
        return PL_OK;
    char *text;
    PL_TRY(self->opts.report(self->opts.context, &text));
    if (strlen(text) < sizeof out->report)
        memcpy(out->report, text, strlen(text) + 1);
    pl_mem_free(text);
    return PL_OK;
}

static pl_status finish(pl_sync *sync)
{
    pl_allreduce_sync *self = (pl_allreduce_sync *)sync;
    farewell own, *all = self->exchanged;
    int32_t count = self->opts.worker == 0 ? self->ranks.count : 1;
    PL_TRY(write_farewell(self, &own));
    PL_TRY(pl_allreduce_exchange(self, &own, sizeof own, NULL));
    if (own.checksum != all[0].checksum)
        return differs(self, self->opts.worker);
    for (int32_t r = 0; r < count; r++) {
        all[r].report[sizeof all[r].report - 1] = '\0';
        if (all[r].checksum != all[0].checksum)
            return differs(self, all[r].worker);
    }
    return self->opts.worker == 0 ? keep_reports(self, all) : PL_OK;
}

/* The test that follows applies to the parameters of all ranks: the next status
 * compares them. */
static pl_status pause_job(pl_sync *sync, bool over, int64_t *step)
{
    pl_allreduce_sync *self = (pl_allreduce_sync *)sync;
    (void)over;
    *step = self->step;
    self->compares = self->compares || self->opts.worker == 0;
    return PL_OK;
}

static void save_follows(pl_sync *sync)
{
    pl_allreduce_sync *self = (pl_allreduce_sync *)sync;
    self->expects = self->opts.snapshot != NULL;
}

static pl_factors *factors(pl_sync *sync)
{
    return ((pl_allreduce_sync *)sync)->opts.factors;
}

static float *gradient(pl_sync *sync)
{
    pl_allreduce_sync *self = (pl_allreduce_sync *)sync;
    return self->collective->ops->memory(self->collective);
}

static void traffic(const pl_sync *sync, int64_t *sent_bytes,
                    int64_t *received_bytes)
{
    const pl_allreduce_sync *self = (const pl_allreduce_sync *)sync;
    pl_collective_view view = self->collective->ops->look(self->collective);
    *sent_bytes = view.sent_bytes;
    *received_bytes = view.received_bytes;
}

static void abort_job(pl_sync *sync, const char *why)
{
    pl_allreduce_sync *self = (pl_allreduce_sync *)sync;
    self->collective->ops->abort(self->collective, why);
}

static void sync_free(pl_sync *sync)
{
    pl_allreduce_sync *self = (pl_allreduce_sync *)sync;
    pl_allreduce_rounds_close(self);
    pl_allreduce_held_close(self);
    pl_factor_step_close(&self->factors);
    pl_mem_free(self->reports);
    pl_mem_free(self->exchanged);
    pl_mem_free(self);
}

static const pl_sync_ops ops = {
    .name = "allreduce",
    .join = pl_allreduce_join,
    .need = need,
    .ready = ready,
    .commit = commit,
    .save = pl_allreduce_save,
    .finish = finish,
    .free = sync_free,
    .gradient = gradient,
    .factors = factors,
    .pause = pause_job,
    .save_follows = save_follows,
    .stop = stop,
    .traffic = traffic,
    .progress = progress,
    .abort = abort_job,
};

pl_status pl_allreduce_sync_new(pl_allreduce_sync **out,
                                const pl_allreduce_sync_opts *opts)
{
    pl_allreduce_sync *self;
    PL_ASSERT(opts->worker >= 0 && opts->worker < opts->workers);
    PL_TRY(PL_NEW(self, 1));
    self->base.ops = &ops;
    self->opts = *opts;
    self->collective = opts->collective;
    self->bucket_bytes = opts->bucket_bytes;
    self->floats = pl_params_block_count(opts->params);
    self->link = opts->link;
    self->factors.kernels = opts->optim->kernels;
    self->factors.pool = opts->pool;
    size_t kept = opts->worker == 0 ? (size_t)opts->workers : 1;
    uint8_t *exchanged;
    pl_status status = PL_NEW(exchanged, kept * PL_COLLECTIVE_BYTES_MOST);
    self->exchanged = exchanged;
    if (status == PL_OK)
        status = pl_allreduce_rounds_init(self);
    if (status == PL_OK)
        status = pl_allreduce_held_init(self);
    if (status == PL_OK)
        status =
            pl_factor_step_init(&self->factors, opts->factors, opts->params);
    if (status != PL_OK) {
        sync_free(&self->base);
        return status;
    }
    opts->optim->frozen =
        opts->snapshot != NULL ? pl_snapshot_frozen(opts->snapshot) : NULL;
    if (opts->optim->frozen != NULL)
        pl_frozen_on_wait(opts->optim->frozen, wait_for_disk, self);
    *out = self;
    return PL_OK;
}

pl_sync *pl_allreduce_sync_base(pl_allreduce_sync *sync)
{
    return &sync->base;
}

pl_allreduce_sync_view pl_allreduce_sync_look(const pl_allreduce_sync *sync)
{
    return (pl_allreduce_sync_view) {
        .step = sync->step,
        .bucket_bytes = sync->bucket_bytes,
        .update_seconds =
            sync->earlier_s + (double)(sync->last_ns - sync->first_ns) * 1e-9,
        .factors = sync->factors.on,
        .chosen = sync->factors.chosen,
        .coding_seconds =
            sync->factors.seconds +
            sync->collective->ops->look(sync->collective).coding_seconds,
        .reports = sync->reports,
        .mixed = sync->mixed,
        .broken = sync->broken,
    };
}
