/* cures.c - which changes apply to a cause, and how much faster the model of
 * the step (observe/steps) expects the job to be with each.
 *
 * A run records how long a step took and what its workers computed, but not how
 * fast its links were.  So the cost that the cause names (of a byte, of a
 * message, or of an update) is fitted until the model reproduces the measured
 * step; then the job is changed and replayed. */
#include "app/run/bottleneck_priv.h"

#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORTH     1.05 /* the speed-up from which a cure is named */
#define ROUNDS    60   /* of bisection */
#define LARGER    4    /* a larger batch */
#define MORE      2    /* workers, servers */
#define RARER     10   /* tests, checkpoints */
#define APART     8    /* local steps of a round */
#define CURES_MAX 5

/* A job for the model; `examples` of a gradient, in batches. */
typedef struct scene {
    pl_step_layer layer;
    pl_step_work work;
    pl_step_net net;
    pl_step_job job;
    double examples;
} scene;

static double slow_step(const pl_job_times *t)
{
    const pl_worker_report *row = &t->summary->per_worker[t->slow];
    return row->seconds / (double)row->steps;
}

static scene make_scene(const pl_job_times *t, pl_cause cause)
{
    bool slow = cause == PL_CAUSE_SLOW_WORKER;
    /* Slow, but not, or not only, because of computing. */
    bool late =
        slow && (t->slowness == PL_SLOW_LINK || t->slowness == PL_SLOW_QUOTA ||
                 t->slowness == PL_SLOW_STOPS);
    double compute = slow && t->others_own > 0 ? t->others_own : t->compute;
    scene s = {
        .layer = { .forward_s = compute,
                   .push_bytes = t->push,
                   .pull_bytes = t->pull },
        .work = { .layer_count = 1,
                  .whole = true,
                  .input_s = slow ? 0 : t->input },
        .job = { .strategy = t->strategy,
                 .workers = t->workers,
                 .servers = t->summary->ps,
                 .hosts = t->hosts,
                 .apart = t->apart },
        .examples = 1,
    };
    if (slow && !late)
        s.job.slowdown = t->slowdown;
    if (late) /* its gradients are late by the time it holds up others */
        s.job.stall_s = t->held * slow_step(t);
    return s;
}

/* Examples a second, in batches. */
static pl_status speed(scene *s, double *out)
{
    pl_step_time time;
    s->work.layers = &s->layer;
    PL_TRY(pl_step_replay(&time, &s->work, &s->net, &s->job));
    *out = time.gradients_per_s * s->examples;
    return PL_OK;
}

/* Set the cost that the cause names. */
static void set_cost(scene *s, pl_cause cause, double cost)
{
    switch (cause) {
    case PL_CAUSE_LATENCY:
        if (s->job.hosts > 1 || s->job.apart)
            s->net.latency_s = cost;
        else /* on one host processors take the time */
            s->net.message_s = cost;
        break;
    case PL_CAUSE_SERVER:
        s->work.update_s = cost;
        break;
    default: /* all links, including those within a host */
        s->net.bytes_per_s = s->net.local_bytes_per_s = 1 / cost;
        break;
    }
}

/* Fit the cost so that the model reproduces the measured step. */
static pl_status fit(scene *s, const pl_job_times *t, pl_cause cause)
{
    double low = -40, high = 10;
    for (int i = 0; i < ROUNDS; i++) {
        double found, middle = (low + high) / 2;
        set_cost(s, cause, exp2(middle));
        PL_TRY(speed(s, &found));
        if (found > t->speed)
            low = middle;
        else
            high = middle;
    }
    return PL_OK;
}

static pl_status add_cure(pl_bottleneck *b, double gain, const char *text)
{
    if (!(gain > WORTH) || !isfinite(gain))
        return PL_OK;
    pl_cure *cures = pl_mem_resize(b->cures, b->cure_count + 1, sizeof *cures);
    PL_TRY(pl_mem_check(cures, b->cure_count + 1, sizeof *cures));
    b->cures = cures;
    cures[b->cure_count] = (pl_cure) { .gain = gain };
    snprintf(cures[b->cure_count].text, sizeof cures->text, "%s", text);
    b->cure_count++;
    return PL_OK;
}

/* Compare a changed job with the measured one. */
static pl_status try_scene(pl_bottleneck *b, const scene *before, scene after,
                           const char *text)
{
    scene was = *before;
    double old, now;
    PL_TRY(speed(&was, &old));
    PL_TRY(speed(&after, &now));
    return add_cure(b, now / old, text);
}

static pl_status try_larger_batch(pl_bottleneck *b, const scene *s)
{
    scene after = *s;
    after.layer.forward_s *= LARGER;
    after.work.input_s *= LARGER;
    after.examples = LARGER;
    return try_scene(b, s, after, "a --batch 4 times as large");
}

static pl_status try_servers(pl_bottleneck *b, const scene *s)
{
    char text[64];
    scene after = *s;
    after.job.servers = MORE * s->job.servers;
    if (s->job.servers < 1 || after.job.servers > s->job.workers)
        return PL_OK;
    snprintf(text, sizeof text, "--ps %d", after.job.servers);
    return try_scene(b, s, after, text);
}

/* Not for sparse models: their messages carry keys, not all parameters. */
static pl_status try_ring(pl_bottleneck *b, const scene *s,
                          const pl_summary *summary)
{
    scene after = *s;
    if (s->job.servers < 1 || s->job.workers < 2 || summary->has_dense_traffic)
        return PL_OK;
    after.job.strategy = PL_STEP_ALLREDUCE;
    after.work.add_s = 0;
    return try_scene(b, s, after, "--strategy allreduce");
}

/* Half the bytes in both directions. */
static pl_status try_bf16(pl_bottleneck *b, const scene *s,
                          const pl_job_times *t)
{
    scene after = *s;
    if (!t->opts->may_use_bf16)
        return PL_OK;
    after.layer.push_bytes /= 2;
    after.layer.pull_bytes /= 2;
    return try_scene(b, s, after, "--codec bf16 (changes the result)");
}

/* Lossless, but each worker computes products. */
static pl_status try_factors(pl_bottleneck *b, const scene *s,
                             const pl_job_times *t)
{
    scene after = *s;
    if (!(t->opts->factors_bytes > 0))
        return PL_OK;
    after.layer.push_bytes *= t->opts->factors_bytes;
    after.work.update_s += t->opts->factors_s;
    return try_scene(b, s, after, "--codec factors");
}

static pl_status try_topk(pl_bottleneck *b, const scene *s,
                          const pl_job_times *t)
{
    scene after = *s;
    if (!(t->opts->topk_bytes > 0))
        return PL_OK;
    after.layer.push_bytes *= t->opts->topk_bytes;
    return try_scene(b, s, after, "--codec topk (changes the result)");
}

static pl_status try_local_steps(pl_bottleneck *b, const scene *s,
                                 const pl_job_times *t)
{
    char text[64];
    scene after = *s;
    if (t->opts->planes < 1)
        return PL_OK;
    after.job.local_steps = APART;
    after.job.planes = t->opts->planes;
    snprintf(text, sizeof text, "--local-steps %d (changes the result)", APART);
    return try_scene(b, s, after, text);
}

/* Changes that shorten the exchange of a step. */
static pl_status try_less_traffic(pl_bottleneck *b, const scene *s,
                                  const pl_job_times *t, pl_cause cause)
{
    if (cause == PL_CAUSE_LINK || cause == PL_CAUSE_SERVER_LINK) {
        PL_TRY(try_bf16(b, s, t));
        PL_TRY(try_factors(b, s, t));
        PL_TRY(try_topk(b, s, t));
    }
    return try_local_steps(b, s, t);
}

static pl_status try_async(pl_bottleneck *b, const scene *s)
{
    scene after = *s;
    if (s->job.strategy != PL_STEP_SYNC)
        return PL_OK;
    after.job.strategy = PL_STEP_ASYNC;
    return try_scene(b, s, after, "--mode async");
}

/* The share of a step that is saved once the worker is no longer slow: the time
 * in which only its gradient was missing, or, if it computes or reads longer,
 * that extra time.  Other workers that are late by chance reduce the former. */
static double freed_share(const pl_job_times *t)
{
    double step = slow_step(t), longer = (t->slowdown - 1) * t->others_own;
    double by = 0;
    switch (t->slowness) {
    case PL_SLOW_QUOTA:
        by = fmax(t->throttled, longer / step);
        break;
    case PL_SLOW_STARVED:
        by = fmax(t->lacked, longer) / step;
        break;
    case PL_SLOW_STOLEN:
    case PL_SLOW_HARDWARE:
    case PL_SLOW_INPUT:
        by = longer / step;
        break;
    default:
        break;
    }
    return fmin(fmax(t->held, by), 1 - t->others_own / step);
}

/* The others make steps without waiting for it. */
static pl_status try_backup(pl_bottleneck *b, const pl_job_times *t)
{
    char text[64];
    int32_t left = t->workers - 1;
    if (t->strategy != PL_STEP_SYNC || left < 2)
        return PL_OK;
    snprintf(text, sizeof text, "--replicas-to-aggregate %d", left);
    return add_cure(b, left / (t->workers * (1 - freed_share(t))), text);
}

/* The worker becomes as fast as the others.  In lock step the time that it
 * holds them up was measured and need not be predicted. */
static pl_status try_freed(pl_bottleneck *b, const scene *s,
                           const pl_job_times *t, const char *text)
{
    scene after = *s;
    if (t->strategy == PL_STEP_SYNC || t->strategy == PL_STEP_ALLREDUCE)
        return add_cure(b, 1 / (1 - freed_share(t)), text);
    after.job.slowdown = after.job.stall_s = 0;
    return try_scene(b, s, after, text);
}

static pl_status cure_slow(pl_bottleneck *b, const scene *s,
                           const pl_job_times *t)
{
    static const char *const freed[] = {
        [PL_SLOW_NONE] = "",
        [PL_SLOW_QUOTA] = "a larger quota",
        [PL_SLOW_STARVED] = "free its processor",
        [PL_SLOW_STOLEN] = "a host that it need not share",
        [PL_SLOW_HARDWARE] = "a host like the others'",
        [PL_SLOW_STOPS] = "keep it from being stopped",
        [PL_SLOW_INPUT] = "faster input for it",
        [PL_SLOW_LINK] = "a link like the others'",
    };
    PL_TRY(try_freed(b, s, t, freed[t->slowness]));
    PL_TRY(try_backup(b, t));
    return try_async(b, s);
}

static pl_status cure_exchange(pl_bottleneck *b, const scene *s,
                               const pl_job_times *t, pl_cause cause)
{
    if (cause != PL_CAUSE_LATENCY)
        PL_TRY(try_servers(b, s));
    PL_TRY(try_less_traffic(b, s, t, cause));
    PL_TRY(try_ring(b, s, t->summary));
    PL_TRY(try_async(b, s));
    return try_larger_batch(b, s);
}

static pl_status cure_computing(pl_bottleneck *b, const scene *s,
                                const pl_job_times *t)
{
    char text[64];
    scene after = *s;
    if (t->strategy == PL_STEP_SINGLE)
        return PL_OK; /* no network was measured: see plan */
    after.job.workers = MORE * s->job.workers;
    after.job.hosts = MORE * s->job.hosts;
    snprintf(text, sizeof text, "--workers %d on as many more hosts",
             after.job.workers);
    return try_scene(b, s, after, text);
}

/* The seconds are saved completely. */
static pl_status cure_share(pl_bottleneck *b, double share, const char *text)
{
    return add_cure(b, 1 / (1 - share), text);
}

/* A server without a processor: the time for which it waited for one is
 * saved. */
static pl_status try_server_freed(pl_bottleneck *b, const pl_job_times *t)
{
    double busy = t->server_busy + t->server_queued;
    double share = busy > 0 ? b->share * t->server_queued / busy : 0;
    return cure_share(b, share, "free its processor");
}

/* The first and the last checkpoint and the last test are always made.  A
 * summary without counts has 0. */
static double rarer_share(double share, int64_t count, int64_t least)
{
    int64_t left = (count + RARER - 1) / RARER;
    if (count <= 0)
        return share * (1 - 1.0 / RARER);
    left = left < least ? least : left;
    return left < count ? share * (1 - (double)left / (double)count) : 0;
}

static int by_gain(const void *a, const void *b)
{
    double x = ((const pl_cure *)a)->gain, y = ((const pl_cure *)b)->gain;
    return x > y ? -1 : x < y;
}

static pl_status find(pl_bottleneck *b, const pl_job_times *t, pl_cause cause)
{
    scene s = make_scene(t, cause);
    switch (cause) {
    case PL_CAUSE_SLOW_WORKER:
        PL_TRY(fit(&s, t, PL_CAUSE_LINK)); /* the remaining cost of a step */
        return cure_slow(b, &s, t);
    case PL_CAUSE_SERVER:
        if (t->server_queued > t->server_busy) /* updates are not slow */
            return try_server_freed(b, t);
        PL_TRY(fit(&s, t, cause));
        return cure_exchange(b, &s, t, cause);
    case PL_CAUSE_SERVER_LINK:
    case PL_CAUSE_LINK:
    case PL_CAUSE_LATENCY:
        PL_TRY(fit(&s, t, cause));
        return cure_exchange(b, &s, t, cause);
    case PL_CAUSE_COMPUTING:
        PL_TRY(fit(&s, t, cause));
        return cure_computing(b, &s, t);
    case PL_CAUSE_CORES:
        return cure_share(b, t->queued,
                          t->crowded_out ? "stop other processes on these cores"
                          : t->workers > t->hosts
                              ? "fewer --workers or --threads a host"
                              : "fewer --threads");
    case PL_CAUSE_READING:
        return cure_share(b, t->input / t->step,
                          pl_reading_of(t) == PL_READING_PARSING
                              ? "a cache (`data convert`)"
                              : "a cache (`data convert`), or a faster disk");
    case PL_CAUSE_EVALUATION:
        return cure_share(b, rarer_share(t->evaluation, t->summary->tests, 1),
                          "--eval-every 10 times less often");
    case PL_CAUSE_CHECKPOINTS:
        return cure_share(
            b, rarer_share(t->checkpoints, t->summary->checkpoints, 2),
            "--checkpoint-every 10 times less often");
    case PL_CAUSE_STALENESS:
        return cure_share(b, t->stale,
                          "a larger --staleness, or fewer workers");
    default:
        return PL_OK;
    }
}

pl_status pl_cures_find(pl_bottleneck *found, const pl_job_times *times,
                        pl_cause cause)
{
    PL_TRY(find(found, times, cause));
    if (found->cure_count > 1)
        qsort(found->cures, found->cure_count, sizeof *found->cures, by_gain);
    if (found->cure_count > CURES_MAX)
        found->cure_count = CURES_MAX;
    return PL_OK;
}
