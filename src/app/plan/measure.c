/* measure.c - measures one worker's step on this machine: trains in one
 * process, in memory, and records when each layer's parameters are first read
 * and when its gradient is done, the time of input and update, and the cost of
 * a message and of a byte over the loopback interface.
 *
 * Other processes disturb some steps, on a busy machine most of them: steps
 * longer than 1.2 times the first quartile are left out of the means. */
#include "app/plan/work.h"

#include "base/clock.h"
#include "base/mem.h"
#include "net/probe/probe.h"
#include "sync/single/single.h"
#include "train/compute/compute.h"

#include <stdio.h>
#include <stdlib.h>

#define WARM_STEPS  2
#define FIRST_STEPS 512 /* the most steps for the quartile */
#define FIRST_LEAST 3
#define STEPS_LEAST 3
#define USUAL       1.2  /* longest usual step, in quartiles */
#define FIRST_SHARE 0.3  /* of the time, to find the quartile */
#define ALONE_SHARE 0.25 /* of the time, for one thread */
#define PROBE_MS    200
#define ADD_FLOATS  ((int64_t)1 << 22)
#define ADD_ROUNDS  5

/* Seconds since the start of a step. */
typedef struct profile {
    double *need, *ready; /* [params] */
    double input, computed, all;
} profile;

typedef struct rig {
    const pl_job *job;
    int params;
    pl_pool *pool;
    pl_reader *reader;
    pl_compute *compute;
    pl_sync *sync;
    bool stream;
    profile now, sum;
    int64_t begin_ns;
    int64_t step, counted;
    int64_t keys; /* of a sparse gradient */
} rig;

static int64_t now_ns(void)
{
    return pl_clock_now_ns(pl_clock_real());
}

static double since(int64_t begin_ns)
{
    return 1e-9 * (double)(now_ns() - begin_ns);
}

static pl_status note_need(void *context, int param)
{
    rig *r = context;
    r->now.need[param] = since(r->begin_ns);
    return PL_OK;
}

static pl_status note_ready(void *context, int param)
{
    rig *r = context;
    r->now.ready[param] = since(r->begin_ns);
    return PL_OK;
}

static pl_status open_profile(profile *p, int params)
{
    PL_TRY(PL_NEW(p->need, (size_t)params));
    return PL_NEW(p->ready, (size_t)params);
}

static pl_status open_rig(rig *r, const pl_job *job, int threads)
{
    const pl_train_options *train = &job->options->train;
    *r = (rig) { .job = job, .params = pl_params_count(job->network->params) };
    PL_TRY(open_profile(&r->now, r->params));
    PL_TRY(open_profile(&r->sum, r->params));
    PL_TRY(pl_pool_new(&r->pool, threads));
    PL_TRY(pl_reader_new(&r->reader, job->train,
                         &(pl_reader_opts) {
                             .batch = train->batch,
                             .seed = (uint64_t)train->seed,
                         }));
    PL_TRY(pl_compute_new(&r->compute, &(pl_compute_opts) {
                                           .network = job->network,
                                           .batch = train->batch,
                                           .pool = r->pool,
                                           .kernels = job->kernels,
                                           .bf16 = pl_options_bf16(train),
                                           .seed = (uint64_t)train->seed,
                                       }));
    r->stream = !job->network->sparse && train->micro_batches == 1 &&
                pl_compute_shards(r->compute) == 1;
    return pl_single_new(&r->sync, &(pl_single_opts) {
                                       .params = job->network->params,
                                       .optim = job->optim,
                                       .schedule = &job->schedule,
                                       .pool = r->pool,
                                   });
}

static void close_rig(rig *r)
{
    if (r->sync != NULL)
        r->sync->ops->free(r->sync);
    pl_compute_free(r->compute);
    pl_reader_free(r->reader);
    pl_pool_free(r->pool);
    pl_mem_free(r->now.need);
    pl_mem_free(r->now.ready);
    pl_mem_free(r->sum.need);
    pl_mem_free(r->sum.ready);
}

static pl_status compute(rig *r)
{
    pl_exec_hooks hooks = { note_need, note_ready, r, PL_OK };
    pl_batch batch;
    double loss;
    PL_TRY(pl_reader_next(r->reader, &batch));
    r->now.input = since(r->begin_ns);
    if (r->stream)
        return pl_compute_stream(r->compute, &batch, r->step, 0, &hooks, &loss);
    if (r->job->network->sparse)
        PL_TRY(pl_compute_prepare(r->compute, &batch));
    (void)pl_compute_gradient(r->compute, &batch, r->step, 0, NULL);
    return PL_OK;
}

/* As in the training loop. */
static pl_status make_step(rig *r)
{
    pl_commit committed;
    r->step++;
    r->begin_ns = now_ns();
    PL_TRY(compute(r));
    r->now.computed = since(r->begin_ns);
    r->keys = 0;
    for (int p = r->params - 1; p >= 0; p--) {
        const pl_keys *keys;
        const float *grad = pl_compute_grad(r->compute, p, &keys);
        r->keys += keys != NULL ? keys->count : 0;
        PL_TRY(r->sync->ops->ready(r->sync, p, grad, keys));
    }
    PL_TRY(r->sync->ops->commit(r->sync, &committed));
    r->now.all = since(r->begin_ns);
    return PL_OK;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The longest time of a usual step. */
static pl_status find_usual(rig *r, double seconds, double *usual)
{
    double times[FIRST_STEPS];
    size_t count = 0;
    for (int i = 0; i < WARM_STEPS; i++)
        PL_TRY(make_step(r));
    int64_t begin = now_ns();
    while (count < FIRST_STEPS &&
           (count < FIRST_LEAST || since(begin) < seconds)) {
        PL_TRY(make_step(r));
        times[count++] = r->now.all;
    }
    qsort(times, count, sizeof *times, by_size);
    *usual = USUAL * times[count / 4];
    return PL_OK;
}

static void add_profile(rig *r)
{
    for (int p = 0; p < r->params; p++) {
        r->sum.need[p] += r->now.need[p];
        r->sum.ready[p] += r->now.ready[p];
    }
    r->sum.input += r->now.input;
    r->sum.computed += r->now.computed;
    r->sum.all += r->now.all;
    r->counted++;
}

static void divide_profile(rig *r)
{
    double n = (double)r->counted;
    for (int p = 0; p < r->params; p++) {
        r->sum.need[p] /= n;
        r->sum.ready[p] /= n;
    }
    r->sum.input /= n;
    r->sum.computed /= n;
    r->sum.all /= n;
}

/* The mean of the usual steps, in r->sum. */
static pl_status make_steps(rig *r, double seconds)
{
    double usual;
    PL_TRY(find_usual(r, FIRST_SHARE * seconds, &usual));
    int64_t begin = now_ns();
    double left = (1 - FIRST_SHARE) * seconds;
    for (int64_t i = 0; i < STEPS_LEAST || since(begin) < left; i++) {
        PL_TRY(make_step(r));
        if (r->now.all <= usual || r->counted == 0)
            add_profile(r);
    }
    divide_profile(r);
    return PL_OK;
}

static double at_least_0(double seconds)
{
    return seconds > 0 ? seconds : 0;
}

/* Forward lasts from one layer's first use to the next one's, backward from one
 * gradient to the next; the time in between belongs to the last layer. */
static void take_layers(pl_forecast_work *work, const rig *r)
{
    const profile *mean = &r->sum;
    int last = r->params - 1;
    double turn = at_least_0(mean->ready[last] - mean->need[last]);
    for (int p = 0; p < last; p++) {
        work->layers[p].forward_s =
            at_least_0(mean->need[p + 1] - mean->need[p]);
        work->layers[p].backward_s =
            at_least_0(mean->ready[p] - mean->ready[p + 1]);
    }
    work->layers[last].forward_s = PL_FORECAST_FORWARD * turn;
    work->layers[last].backward_s = (1 - PL_FORECAST_FORWARD) * turn;
}

/* All gradients become ready together: one layer represents all. */
static void take_whole(pl_forecast_work *work, const rig *r)
{
    double seconds = at_least_0(r->sum.computed - r->sum.input) *
                     (double)r->job->options->train.micro_batches;
    pl_step_layer all = { PL_FORECAST_FORWARD * seconds,
                          (1 - PL_FORECAST_FORWARD) * seconds, 0, 0 };
    for (size_t i = 0; i < work->step.layer_count; i++) {
        all.push_bytes += work->layers[i].push_bytes;
        all.pull_bytes += work->layers[i].pull_bytes;
    }
    if (r->job->network->sparse) {
        /* A value, its key and a key of the next batch, 2 bytes each
         * (sync/ps/messages/key_list.h); the reply is a value. */
        all.push_bytes = 8.0 * (double)r->keys;
        all.pull_bytes = 4.0 * (double)r->keys;
    }
    work->layers[0] = all;
    work->step.layer_count = 1;
    work->step.whole = true;
}

static void take_profile(pl_forecast_work *work, const rig *r)
{
    work->step.input_s = r->sum.input;
    work->step.update_s = at_least_0(r->sum.all - r->sum.computed);
    if (r->stream)
        take_layers(work, r);
    else
        take_whole(work, r);
}

static pl_status measure_threads(pl_forecast_work *work, const pl_job *job,
                                 double seconds)
{
    rig r;
    double all, alone, threads = work->threads;
    pl_status status;
    PL_TRY_OUT(status, open_rig(&r, job, work->threads));
    PL_TRY_OUT(status, make_steps(&r, seconds));
    take_profile(work, &r);
    all = r.sum.computed - r.sum.input;
    if (work->threads > 1 && !(all <= 0)) {
        close_rig(&r);
        PL_TRY_OUT(status, open_rig(&r, job, 1));
        PL_TRY_OUT(status, make_steps(&r, ALONE_SHARE * seconds));
        alone = r.sum.computed - r.sum.input;
        work->serial = (all / alone - 1 / threads) / (1 - 1 / threads);
        work->serial = at_least_0(work->serial < 1 ? work->serial : 1);
    }
out:
    close_rig(&r);
    return status;
}

/* The time to add one gradient to another: the best of several tries. */
static pl_status measure_adding(pl_forecast_work *work, const pl_job *job)
{
    int64_t floats = work->parameter_bytes / 4;
    int64_t count = floats < ADD_FLOATS ? floats : ADD_FLOATS;
    float *memory;
    if (job->network->sparse) {
        work->step.add_s = work->step.update_s; /* both are done key by key */
        return PL_OK;
    }
    PL_TRY(PL_NEW_ALIGNED(memory, (size_t)(2 * count + 64)));
    double best = 0;
    for (int i = 0; i < ADD_ROUNDS; i++) {
        int64_t begin = now_ns();
        job->kernels->add(count, memory, memory + count, memory);
        double seconds = since(begin);
        best = i == 0 || seconds < best ? seconds : best;
    }
    pl_mem_free(memory);
    work->step.add_s = best * (double)floats / (double)count;
    return PL_OK;
}

/* The processor time of a message and of a byte. */
static pl_status measure_messages(pl_forecast_work *work)
{
    char token[PL_PROBE_TOKEN + 1], address[32];
    pl_probe *probe;
    pl_probe_result found;
    for (int i = 0; i < PL_PROBE_TOKEN; i++)
        token[i] = (char)('a' + i % 26); /* this probe needs no secret */
    token[PL_PROBE_TOKEN] = '\0';
    PL_TRY(pl_probe_new(&probe, "127.0.0.1:0", token));
    snprintf(address, sizeof address, "127.0.0.1:%d", pl_probe_port(probe));
    pl_status status = pl_probe_measure(&found, address, token, PROBE_MS);
    pl_probe_free(probe);
    PL_TRY(status);
    work->net.message_s = 1e-6 * found.round_trip_us / 2;
    work->net.byte_s = 1 / found.bytes_per_s;
    work->net.local_bytes_per_s = PL_FORECAST_LOCAL_RATE;
    return PL_OK;
}

pl_status pl_forecast_measure(pl_forecast_work *out, const pl_options *options,
                              double seconds)
{
    pl_forecast_work work = { 0 };
    pl_job job = { 0 };
    pl_status status;
    PL_TRY(pl_job_init(&job, &(pl_job_opts) { .options = options }));
    PL_TRY_OUT(status, pl_forecast_work_init(&work, &job));
    PL_TRY_OUT(status, measure_threads(&work, &job, seconds));
    PL_TRY_OUT(status, measure_adding(&work, &job));
    PL_TRY_OUT(status, measure_messages(&work));
    *out = work;
    work = (pl_forecast_work) { 0 };
out:
    pl_forecast_work_close(&work);
    pl_job_close(&job);
    return status;
}
