/* Decides the state in which a generation begins: all ranks exchange their step
 * and settings, and the chief's count.  Then all get the chief's parameters
 * (and slots, if there was an update), so that all begin with the same bits.
 *
 * There is no broadcast: in a sum, ranks that add -0 leave every number as it
 * is, down to the sign of a zero. */
#include "sync/allreduce/allreduce_priv.h"

#include "base/log.h"
#include "base/mem.h"
#include "job/member/settings.h"

#include <stdio.h>
#include <string.h>

#define PROBE_SMALL ((int64_t)16384)   /* floats */
#define PROBE_LARGE ((int64_t)1 << 20) /* floats */
#define PROBE_TRIES 3

#define RUN_BYTES 1024

/* The first exchange of a generation. */
typedef struct greeting {
    int64_t step;         /* the step of its parameters */
    int64_t end_step;     /* the step at which its data ends; combined: the
                             first */
    int64_t floats;       /* of its parameters */
    int64_t bucket_bytes; /* 0: to be measured */
    int64_t fresh;        /* it has made no update; combined: no rank has */
    pl_deal deal;         /* of the data */
    pl_workers present;   /* this worker; combined: all */
    char kernels[32];
    int64_t link;        /* pl_link_class */
    char arithmetic[96]; /* what else the bits of products depend on */
    int64_t keeps;       /* the chief's: it writes checkpoints... */
    int64_t restored;    /* ... and has read one just now */
    int64_t held_step;   /* the step of the state that its codec holds back */
    int64_t astray;      /* combined: a rank holds the state of another step */
    int64_t unlike;      /* combined: a worker with another `arithmetic`; -1:
                            none */
    int64_t worker;
    uint64_t job;        /* the chief's: the number of the job, and the run
                            folder */
    char run[RUN_BYTES]; /* "": none, or too long to be sent */
    char settings[PL_COLLECTIVE_BYTES_MOST - 800 - RUN_BYTES]; /* JSON */
} greeting;

_Static_assert(sizeof(greeting) <= PL_COLLECTIVE_BYTES_MOST, "one status");

/* If a rank has less data than the others, the job ends when its data ends. */
static void combine_greetings(void *total_bytes, const void *bytes)
{
    greeting *total = total_bytes;
    const greeting *one = bytes;
    if (one->end_step < total->end_step)
        total->end_step = one->end_step;
    total->fresh = total->fresh && one->fresh;
    total->astray = total->astray || one->held_step != total->step;
    if (total->unlike < 0 && memcmp(total->arithmetic, one->arithmetic,
                                    sizeof total->arithmetic) != 0)
        total->unlike = one->worker;
    for (size_t i = 0; i < sizeof total->present.bits / sizeof(uint64_t); i++)
        total->present.bits[i] |= one->present.bits[i];
}

static void keep_chief(void *total, const void *bytes)
{
    (void)total, (void)bytes;
}

/* A new process of the chief resumes from the last checkpoint; one that had
 * joined before keeps its parameters. */
static pl_status find_state(pl_allreduce_sync *self, pl_standing *at)
{
    if (self->joined) {
        at->step = self->step;
        return PL_OK;
    }
    if (self->opts.snapshot == NULL || at->step > 0)
        return PL_OK;
    pl_progress progress = { 0 };
    pl_status status = pl_snapshot_load(self->opts.snapshot, &progress);
    if (status == PL_NOTFOUND)
        return PL_OK;
    PL_TRY(status);
    at->step = progress.step;
    self->earlier_s = progress.seconds;
    if (progress.bucket_bytes > 0)
        self->bucket_bytes = progress.bucket_bytes;
    if (self->link != PL_LINK_BYTES && progress.link != PL_LINK_UNKNOWN)
        self->link = (pl_link_class)progress.link;
    return PL_OK;
}

static pl_status write_greeting(const pl_allreduce_sync *self,
                                const pl_standing *at, greeting *out)
{
    int64_t step = at->step;
    *out = (greeting) {
        .step = step,
        .deal = at->deal,
        .end_step = self->opts.end_step,
        .floats = self->floats,
        .bucket_bytes = self->bucket_bytes,
        .fresh = !self->joined && step == 0,
        .link = self->link,
        .keeps = self->opts.snapshot != NULL,
        .restored = !self->joined && step > 0 && self->opts.snapshot != NULL,
        .held_step = self->held_step,
        .astray = self->held_step != step,
        .unlike = -1,
        .worker = self->opts.worker,
    };
    if (self->opts.factors != NULL)
        snprintf(out->arithmetic, sizeof out->arithmetic, "%s",
                 self->opts.factors->arithmetic);
    pl_workers_add(&out->present, self->opts.worker);
    snprintf(out->kernels, sizeof out->kernels, "%s",
             self->opts.optim->kernels->name);
    if (self->opts.run != NULL && strlen(self->opts.run) < sizeof out->run) {
        snprintf(out->run, sizeof out->run, "%s", self->opts.run);
        out->job = self->opts.job;
    }
    if (self->opts.settings == NULL)
        return PL_OK;
    char *text;
    PL_TRY(pl_json_text(self->opts.settings, 0, &text));
    pl_status status = PL_OK;
    if (strlen(text) >= sizeof out->settings)
        status = PL_FAIL(PL_UNSUPPORTED,
                         "the settings take %zu bytes, at most %zu can be sent",
                         strlen(text), sizeof out->settings - 1);
    else
        memcpy(out->settings, text, strlen(text) + 1);
    pl_mem_free(text);
    return status;
}

static pl_status compare_settings(const pl_allreduce_sync *self,
                                  const greeting *chief)
{
    pl_json *agreed;
    char where[32];
    if (self->opts.settings == NULL)
        return PL_OK;
    PL_TRY(pl_json_parse(&agreed, chief->settings, strlen(chief->settings),
                         "the chief's settings"));
    snprintf(where, sizeof where, "at worker %d", self->opts.worker);
    pl_status status =
        pl_settings_compare(self->opts.settings, where, agreed, "at the chief");
    pl_json_free(agreed);
    return status;
}

/* Each worker makes the updates: they give the same bits only with the same
 * instructions. */
static pl_status compare(const pl_allreduce_sync *self, const greeting *chief)
{
    const char *own = self->opts.optim->kernels->name;
    PL_TRY(compare_settings(self, chief));
    if (chief->floats != self->floats)
        return PL_FAIL(PL_USAGE,
                       "worker %d has %lld parameters, the chief %lld: the "
                       "data of all must be of one kind",
                       self->opts.worker, (long long)self->floats,
                       (long long)chief->floats);
    if (strncmp(chief->kernels, own, sizeof chief->kernels) != 0)
        return PL_FAIL(PL_USAGE,
                       "worker %d computes with %s, the chief with %.31s: "
                       "all-reduce needs the same everywhere; give all tasks "
                       "the same --kernels",
                       self->opts.worker, own, chief->kernels);
    return PL_OK;
}

/* The chief's deal applies to the workers that are present. */
static pl_status take_deal(const pl_allreduce_sync *self, const greeting *all,
                           pl_standing *at)
{
    const pl_deal *deal = &all->deal;
    int32_t known = 0, count = pl_workers_count(&deal->workers);
    at->dealt = count > 0;
    if (!at->dealt)
        return PL_OK; /* it reads on its own */
    for (int32_t w = 0; w < self->opts.workers; w++)
        known += pl_workers_has(&deal->workers, w);
    if (deal->step < 0 || deal->step > all->step || deal->epoch < 0 ||
        known != count)
        return PL_FAIL(
            PL_PEER,
            "the chief shares the data among %d workers from step "
            "%lld on: that is no deal of a job of %d workers at step "
            "%lld",
            pl_workers_count(&deal->workers), (long long)deal->step,
            self->opts.workers, (long long)all->step);
    at->deal = *deal;
    at->present = (pl_workers) { { 0 } };
    for (int32_t w = 0; w < self->opts.workers; w++)
        if (pl_workers_has(&all->present, w))
            pl_workers_add(&at->present, w);
    return PL_OK;
}

/* If products differ between ranks, their sums would differ too. */
static void say_unlike(pl_allreduce_sync *self, const greeting *all)
{
    if (!self->said)
        pl_log(PL_LOG_WARN,
               "worker %lld does not multiply as the chief, which uses %.95s: "
               "gradients travel plain, not as factors; give all the same "
               "--threads and versions",
               (long long)all->unlike, all->arithmetic);
    self->said = true;
}

/* The chief's description of the state that all begin with. */
typedef struct standing {
    bool fresh;    /* no update was made anywhere */
    bool restored; /* the state is from a checkpoint */
    bool astray;   /* a rank holds back the state of another step */
} standing;

static pl_status greet(pl_allreduce_sync *self, pl_standing *at, standing *out)
{
    greeting own, *all = self->exchanged;
    PL_TRY(write_greeting(self, at, &own));
    PL_TRY(pl_allreduce_exchange(self, &own, sizeof own, combine_greetings));
    all->settings[sizeof all->settings - 1] = '\0';
    all->run[sizeof all->run - 1] = '\0';
    PL_TRY(compare(self, all));
    if (self->opts.located != NULL && !self->located)
        self->opts.located(self->opts.context, all->job, all->run);
    self->located = true;
    self->end_step = all->end_step;
    *out = (standing) { all->fresh != 0, all->restored != 0, all->astray != 0 };
    self->keeps = all->keeps != 0;
    self->present = all->present;
    self->step = all->step;
    self->bucket_bytes = all->bucket_bytes;
    self->link = (pl_link_class)all->link;
    self->unlike = all->unlike >= 0;
    if (self->opts.factors != NULL && self->unlike)
        say_unlike(self, all);
    return take_deal(self, all, at);
}

/* One sum over the first `count` floats; *seconds: the fastest of several
 * tries. */
static pl_status probe(pl_allreduce_sync *self, int64_t count, double *seconds)
{
    const pl_clock *clock = pl_clock_real();
    *seconds = 0;
    for (int try = 0; try < PROBE_TRIES; try++) {
        int32_t ticket;
        int64_t begin = pl_clock_now_ns(clock);
        PL_TRY(self->collective->ops->start(
            self->collective, &(pl_sum_range) { .count = count, .exact = true },
            &ticket));
        PL_TRY(pl_allreduce_wait(self, ticket));
        PL_TRY(pl_allreduce_quiet(self));
        double took = (double)(pl_clock_now_ns(clock) - begin) * 1e-9;
        if (try == 0 || took < *seconds)
            *seconds = took;
    }
    return PL_OK;
}

/* Which layers travel as factors depends on a link that was not measured
 * yet. */
static bool asks_link(const pl_allreduce_sync *self)
{
    return self->opts.factors != NULL && self->link == PL_LINK_UNKNOWN;
}

/* The results of the measurement. */
typedef struct link_found {
    int64_t bucket_bytes;
    int64_t link; /* pl_link_class */
} link_found;

/* A link carries 2 (n - 1) / n of the bytes of a sum. */
static pl_link_class class_of(const pl_allreduce_sync *self,
                              const pl_bucket_probe *probe)
{
    double n = (double)self->ranks.count;
    double bytes = (double)(probe->large_bytes - probe->small_bytes);
    return pl_link_class_of(2 * (n - 1) / n * bytes /
                            (probe->large_s - probe->small_s));
}

/* The chief's measurement counts for all. */
static pl_status measure(pl_allreduce_sync *self)
{
    float *memory = self->collective->ops->memory(self->collective);
    int64_t large = self->floats < PROBE_LARGE ? self->floats : PROBE_LARGE;
    link_found own = { PL_BUCKET_LEAST, PL_LINK_FAST }, all;
    pl_bucket_probe found = {
        .small_bytes = PROBE_SMALL * (int64_t)sizeof(float),
        .large_bytes = large * (int64_t)sizeof(float),
    };
    bool cuts = self->floats * (int64_t)sizeof(float) > PL_BUCKET_LEAST;
    if (cuts || (asks_link(self) && large > PROBE_SMALL)) {
        memset(memory, 0, (size_t)large * sizeof *memory);
        PL_TRY(probe(self, PROBE_SMALL, &found.small_s));
        PL_TRY(probe(self, large, &found.large_s));
        if (cuts)
            own.bucket_bytes = pl_buckets_choose(&found);
        own.link = class_of(self, &found);
    }
    PL_TRY(pl_allreduce_exchange(self, &own, sizeof own, keep_chief));
    memcpy(&all, self->exchanged, sizeof all);
    if (self->bucket_bytes == 0)
        self->bucket_bytes = all.bucket_bytes;
    if (asks_link(self))
        self->link = (pl_link_class)all.link;
    if (self->bucket_bytes <= 0)
        return PL_FAIL(PL_PEER, "the chief chose buckets of %lld bytes",
                       (long long)self->bucket_bytes);
    pl_log(PL_LOG_DEBUG, "gradients are summed in buckets of %lld KB",
           (long long)(self->bucket_bytes >> 10));
    return PL_OK;
}

/* Set `block` to the chief's values. */
static pl_status take_block(pl_allreduce_sync *self, float *block)
{
    float *memory = self->collective->ops->memory(self->collective);
    size_t bytes = (size_t)self->floats * sizeof(float);
    if (self->ranks.rank == 0)
        memcpy(memory, block, bytes);
    else
        self->opts.optim->kernels->fill(self->floats, -0.0f, memory);
    self->sums = 0;
    pl_buckets_begin(&self->buckets);
    PL_TRY(pl_allreduce_start(self, 0, true));
    for (int32_t t = 0; t < self->sums; t++)
        PL_TRY(pl_allreduce_wait(self, t));
    if (self->ranks.rank != 0)
        memcpy(block, memory, bytes);
    return pl_allreduce_quiet(self);
}

/* Before the first update the slots are the same at all ranks. */
static pl_status take_state(pl_allreduce_sync *self, const standing *chief)
{
    const pl_optim *optim = self->opts.optim;
    bool fresh = chief->fresh;
    int slots = fresh ? 0 : optim->ops->slot_count;
    PL_TRY(take_block(self, pl_params_block(self->opts.params)));
    for (int i = 0; i < slots; i++)
        PL_TRY(take_block(self, pl_params_block(optim->slots[i])));
    if (!fresh && optim->outer != NULL)
        PL_TRY(take_block(self, pl_params_block(optim->outer)));
    return pl_allreduce_held_join(self, chief->restored, chief->astray);
}

pl_status pl_allreduce_join(pl_sync *sync, pl_standing *at)
{
    pl_allreduce_sync *self = (pl_allreduce_sync *)sync;
    self->in_step = self->over = self->broken = false;
    if (self->joined && self->opts.local_steps > 1)
        pl_allreduce_undo_round(self);
    PL_TRY(self->collective->ops->join(self->collective, &self->ranks));
    if (self->opts.joined != NULL)
        self->opts.joined(self->opts.context);
    if (self->ranks.count < self->opts.workers)
        self->mixed = true;
    PL_TRY(find_state(self, at));
    standing chief;
    PL_TRY(greet(self, at, &chief));
    if (self->bucket_bytes == 0 || asks_link(self))
        PL_TRY(measure(self));
    PL_TRY(pl_factor_step_choose(&self->factors, &self->ranks,
                                 self->unlike ? PL_LINK_UNKNOWN : self->link,
                                 self->bucket_bytes));
    pl_buckets_init(&self->buckets, self->floats, self->bucket_bytes,
                    self->ranks.grain, PL_COLLECTIVE_SUMS_MOST);
    PL_TRY(take_state(self, &chief));
    if (self->opts.local_steps > 1)
        pl_allreduce_begin_round(self);
    /* If the chief is lost before the first regular checkpoint, it restarts
     * from this one. */
    if (!self->joined && self->step == 0)
        PL_TRY(pl_allreduce_save(sync, &at->start, true));
    self->joined = true;
    at->step = at->own = self->step;
    at->over = false;
    return PL_OK;
}
