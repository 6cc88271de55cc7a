/* The share of recording and tracing in a step.
 *
 * A step is timed as in the training loop, without recording.  Its records are
 * timed separately, since less than a percent is lost in the difference of two
 * trainings:
 *
 *   every step   record.c's step without trace
 *   a point      of every curve, each 50 ms or step: with the accuracy
 *   the norm     the gradient norm, so rarely that it takes half a percent at
 *                most (train/recorder.h)
 *   a span       of one thread: two clock readings and their place in the
 *                buffer */
#include "base/clock.h"
#include "base/record/trace.h"
#include "base/thread.h"
#include "bench.h"
#include "data/synthetic.h"
#include "nn/models.h"
#include "sync/single/single.h"
#include "train/compute/compute.h"
#include "train/recorder.h"

#include <stdio.h>

#define QUEUE      16384
#define POINT_S    0.05
#define NORM_SHARE (1.0 / 201)
#define LOOP_SPANS 3 /* read, wait, apply: of the loop itself */

typedef struct workload {
    const char *name;
    const pl_model *model;
    int64_t batch;
    pl_shape example;
    int32_t classes;
    int64_t examples;
} workload;

static const workload workloads[] = {
    { "softmax", &pl_model_softmax, 100, { 2, { 28, 28 } }, 10, 10000 },
    { "alexnet", &pl_model_alexnet, 32, { 3, { 3, 224, 224 } }, 1000, 64 },
};

/* Everything a step needs. */
typedef struct stepper {
    pl_dataset *set;
    pl_network *network;
    pl_pool *pool;
    pl_optim *optim;
    pl_schedule schedule;
    pl_sync *sync;
    pl_reader *reader;
    pl_trace *trace;
    pl_compute *compute;
    pl_batch batch; /* the last */
    pl_metrics *metrics;
    pl_recorder recorder;
    uint64_t now; /* ticks, as passed to the recorder */
    int64_t step;
    pl_status status;
} stepper;

static pl_status one_step(stepper *s)
{
    pl_commit committed;
    PL_TRY(pl_reader_next(s->reader, &s->batch));
    pl_compute_gradient(s->compute, &s->batch, ++s->step, 0, s->sync);
    return s->sync->ops->commit(s->sync, &committed);
}

static void run_steps(void *arg, int64_t times)
{
    stepper *s = arg;
    for (int64_t i = 0; i < times && s->status == PL_OK; i++)
        s->status = one_step(s);
}

static double accuracy(void *context)
{
    const stepper *s = context;
    return pl_compute_accuracy(s->compute, &s->batch);
}

static void run_points(void *arg, int64_t times)
{
    stepper *s = arg;
    uint64_t apart = (uint64_t)(1.01e9 * POINT_S / pl_ticks_ns());
    for (int64_t i = 0; i < times; i++)
        pl_recorder_put(&s->recorder,
                        &(pl_recorder_step) {
                            .step = i, .loss = 1, .now = s->now += apart });
}

static void empty_queue(void *arg)
{
    stepper *s = arg;
    pl_scalar scalar;
    while (pl_metrics_take(s->metrics, &scalar))
        ;
}

static void run_norm(void *arg, int64_t times)
{
    stepper *s = arg;
    pl_params *diff = pl_compute_diff(s->compute);
    double sum = 0;
    for (int64_t i = 0; i < times; i++)
        sum += (double)pl_kernels_best()->sum_squares(
            pl_params_block_count(diff), pl_params_block(diff));
    measure_keep(&sum);
}

static void run_spans(void *arg, int64_t times)
{
    stepper *s = arg;
    uint64_t begin = pl_ticks_now();
    for (int64_t i = 0; i < times; i++) {
        uint64_t end = pl_ticks_now();
        pl_trace_span(s->trace, 0, "span", i, begin, end);
        begin = end;
    }
}

/* A lane cannot be emptied, so each run gets a new recorder. */
static void renew_trace(void *arg)
{
    stepper *s = arg;
    pl_trace_free(s->trace);
    s->trace = NULL;
    if (pl_trace_new(&s->trace, &(pl_trace_opts) { .lanes = 1 }) == PL_OK)
        pl_trace_switch(s->trace, true);
}

/* Spans of a step on the thread with the most. */
static int64_t count_spans(stepper *s)
{
    int64_t most = 0;
    pl_trace_switch(s->trace, true);
    run_steps(s, 1);
    pl_trace_switch(s->trace, false);
    for (int lane = 0; lane < pl_trace_lanes(s->trace); lane++)
        if (pl_trace_count(s->trace, lane) > most)
            most = pl_trace_count(s->trace, lane);
    return most + LOOP_SPANS;
}

static void close_stepper(stepper *s)
{
    pl_compute_free(s->compute);
    pl_trace_free(s->trace);
    pl_reader_free(s->reader);
    if (s->sync != NULL)
        s->sync->ops->free(s->sync);
    pl_optim_free(s->optim);
    pl_pool_free(s->pool);
    pl_network_free(s->network);
    pl_dataset_free(s->set);
    pl_metrics_free(s->metrics);
}

static pl_status open_model(stepper *s, const workload *work, int threads)
{
    PL_TRY(pl_synthetic_open(&s->set, PL_SPLIT_TRAIN,
                             &(pl_source_opts) { .shape = work->example,
                                                 .classes = work->classes,
                                                 .examples = work->examples }));
    PL_TRY(pl_network_new(&s->network, work->model,
                          &(pl_network_opts) { .example = work->example,
                                               .classes = work->classes }));
    PL_TRY(pl_pool_new(&s->pool, threads));
    PL_TRY(pl_optim_new(&s->optim, &(pl_optim_opts) { .name = "sgd" },
                        s->network->params, pl_kernels_best()));
    PL_TRY(pl_single_new(&s->sync,
                         &(pl_single_opts) { .params = s->network->params,
                                             .optim = s->optim,
                                             .schedule = &s->schedule,
                                             .pool = s->pool }));
    return pl_reader_new(&s->reader, s->set,
                         &(pl_reader_opts) { .batch = work->batch });
}

static pl_status open_stepper(stepper *s, const workload *work, int threads)
{
    PL_TRY(open_model(s, work, threads));
    PL_TRY(pl_trace_new(&s->trace, &(pl_trace_opts) { .lanes = threads }));
    PL_TRY(
        pl_compute_new(&s->compute, &(pl_compute_opts) { .network = s->network,
                                                         .batch = work->batch,
                                                         .pool = s->pool,
                                                         .trace = s->trace }));
    PL_TRY(pl_metrics_new(&s->metrics, &(pl_metrics_opts) { .queue = QUEUE }));
    return pl_recorder_init(&s->recorder, &(pl_recorder_opts) {
                                              .metrics = s->metrics,
                                              .schedule = &s->schedule,
                                              .kernels = pl_kernels_best(),
                                              .params = s->network->params,
                                              .sync = s->sync,
                                              .accuracy = accuracy,
                                              .context = s,
                                          });
}

/* Median nanoseconds of one call. */
static double timed(const bench *b, stepper *s, measure_opts opts)
{
    opts.arg = s;
    opts.window_s = b->window_s;
    return measure(&opts).median;
}

static void put_share(bench *b, const char *name, double share, double goal)
{
    char text[64];
    snprintf(text, sizeof text, "%.2f %%, at most %g %%: %s", 100 * share,
             100 * goal, share <= goal ? "met" : "missed");
    table_text(&b->table, name, text);
}

static pl_status put_row(bench *b, const workload *work, stepper *s,
                         double every_ns)
{
    double step = timed(b, s, (measure_opts) { .run = run_steps });
    double point = timed(b, s,
                         (measure_opts) { .run = run_points,
                                          .reset = empty_queue,
                                          .most_once = QUEUE / 16 });
    double norm = timed(b, s, (measure_opts) { .run = run_norm });
    int64_t spans = count_spans(s);
    double apart = step > 1e9 * POINT_S ? step : 1e9 * POINT_S;
    double norms = norm / apart < NORM_SHARE ? norm / apart : NORM_SHARE;
    pl_compute_free(s->compute); /* it writes to the renewed trace */
    s->compute = NULL;
    double span =
        timed(b, s,
              (measure_opts) {
                  .run = run_spans, .reset = renew_trace, .most_once = 65536 });
    table_text(&b->table, "model", work->name);
    table_count(&b->table, "batch", work->batch);
    table_number(&b->table, "step [us]", step * 1e-3);
    table_number(&b->table, "every step [ns]", every_ns);
    table_number(&b->table, "a point [ns]", point);
    table_number(&b->table, "norm [us]", norm * 1e-3);
    put_share(b, "recording", every_ns / step + point / apart + norms, 0.01);
    table_count(&b->table, "spans", spans);
    put_share(b, "tracing", (double)spans * span / step, 0.05);
    table_row_end(&b->table);
    return s->status;
}

pl_status bench_record_share(bench *b, double every_ns)
{
    pl_status status = PL_OK;
    table_begin(&b->table, "record_share", "Recording as a share of a step",
                "Each step, and each 50 ms a point of every curve; the length "
                "of the gradient no more\nthan half a percent of the time.  "
                "Spans are those of one thread.");
    for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++) {
        stepper s = { .schedule = { .lr = 0.001 } };
        status = open_stepper(&s, &workloads[i], b->threads);
        if (status == PL_OK)
            status = put_row(b, &workloads[i], &s, every_ns);
        close_stepper(&s);
        if (status != PL_OK)
            break;
    }
    table_end(&b->table);
    return status;
}
