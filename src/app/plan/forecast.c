/* forecast.c - which rows a plan has, which of them is best, and the smallest
 * cluster for a speed-up.
 *
 * Async and ssp use gradients of older parameters, so their examples/s are not
 * comparable: they are shown, but are only chosen as best if --mode requests
 * them. */
#include "app/plan/forecast.h"

#include "app/plan/coded.h"
#include "base/buffer.h"
#include "base/mem.h"
#include "train/optim/optim.h"

#include <math.h>

#define ROWS_MAX 4096 /* limit for JSON; a plan has fewer */

static const pl_field row_rows[] = {
    { "strategy", PL_FIELD_TEXT(pl_forecast_row, strategy) },
    { "mode", PL_FIELD_TEXT(pl_forecast_row, mode), .when = PL_WHEN_KNOWN,
      .or_null = true },
    { "workers", PL_FIELD_INT(pl_forecast_row, workers) },
    { "ps", PL_FIELD_INT(pl_forecast_row, ps) },
    { "codec", PL_FIELD_TEXT(pl_forecast_row, codec) },
    { "step_seconds", PL_FIELD_REAL(pl_forecast_row, step_seconds) },
    { "examples_per_s", PL_FIELD_REAL(pl_forecast_row, examples_per_s) },
    { "speedup", PL_FIELD_REAL(pl_forecast_row, speedup) },
    { "efficiency", PL_FIELD_REAL(pl_forecast_row, efficiency) },
    { "link_bytes", PL_FIELD_INT(pl_forecast_row, link_bytes) },
    { "worker_bytes", PL_FIELD_INT(pl_forecast_row, worker_bytes) },
    { "server_bytes", PL_FIELD_INT(pl_forecast_row, server_bytes) },
    { "limit", PL_FIELD_TEXT(pl_forecast_row, limit) },
};
const pl_fields pl_forecast_row_fields = PL_FIELDS(pl_forecast_row, row_rows);

static const pl_field choice_rows[] = {
    { NULL, PL_FIELD_INLINE(pl_forecast_choice, row, &pl_forecast_row_fields) },
    { "command", PL_FIELD_OWN_TEXT(pl_forecast_choice, command) },
};
static const pl_fields choice_fields =
    PL_FIELDS(pl_forecast_choice, choice_rows);

static const pl_field plan_rows[] = {
    { "model", PL_FIELD_TEXT(pl_forecast, model) },
    { "batch", PL_FIELD_INT(pl_forecast, batch) },
    { "hosts", PL_FIELD_INT(pl_forecast, hosts) },
    { "cores", PL_FIELD_INT(pl_forecast, cores) },
    { "link_bytes_per_s", PL_FIELD_REAL(pl_forecast, link_bytes_per_s) },
    { "round_trip_seconds", PL_FIELD_REAL(pl_forecast, round_trip_seconds) },
    { "rows",
      PL_FIELD_LIST(pl_forecast, rows, row_count, &pl_forecast_row_fields),
      .most = ROWS_MAX },
    { "best", PL_FIELD_OBJECT(pl_forecast, best, &choice_fields) },
    { "wanted_speedup", PL_FIELD_REAL(pl_forecast, wanted),
      PL_FIELD_GIVEN(pl_forecast, has_wanted) },
    { "smallest", PL_FIELD_OBJECT(pl_forecast, smallest, &choice_fields),
      PL_FIELD_GIVEN(pl_forecast, has_smallest), .or_null = true },
};
const pl_fields pl_forecast_fields = PL_FIELDS(pl_forecast, plan_rows);

/* The strategies and modes of the table, for the model of the step. */
static const struct {
    pl_step_strategy step;
    pl_train_strategy strategy;
    pl_train_mode mode; /* of ps */
    const char *name, *mode_name;
    bool alike; /* updates are those of one process */
} kinds[] = {
    { PL_STEP_SINGLE, PL_TRAIN_STRATEGY_SINGLE, 0, "single", NULL, true },
    { PL_STEP_ALLREDUCE, PL_TRAIN_STRATEGY_ALLREDUCE, 0, "allreduce", NULL,
      true },
    { PL_STEP_SYNC, PL_TRAIN_STRATEGY_PS, PL_TRAIN_MODE_SYNC, "ps", "sync",
      true },
    { PL_STEP_ASYNC, PL_TRAIN_STRATEGY_PS, PL_TRAIN_MODE_ASYNC, "ps", "async",
      false },
    { PL_STEP_SSP, PL_TRAIN_STRATEGY_PS, PL_TRAIN_MODE_SSP, "ps", "ssp",
      false },
};
#define KINDS (sizeof kinds / sizeof *kinds)

int32_t pl_forecast_local_steps(const pl_forecast_opts *opts)
{
    return PL_GIVEN(opts->options, local_steps)
               ? (int32_t)opts->options->train.local_steps
               : 1;
}

/* Do the given flags allow this kind?  ssp is left out without --mode: among
 * equally fast workers it behaves like async. */
static bool is_wanted(const pl_forecast_opts *opts, size_t kind)
{
    const pl_options *options = opts->options;
    const pl_train_options *train = &options->train;
    bool ps = kinds[kind].strategy == PL_TRAIN_STRATEGY_PS;
    if (kinds[kind].step == PL_STEP_ALLREDUCE && options->model->sparse)
        return false; /* its gradients are lists of keys */
    if (PL_GIVEN(options, strategy) &&
        train->strategy != (int)kinds[kind].strategy)
        return false;
    if (pl_forecast_local_steps(opts) > 1 &&
        kinds[kind].step != PL_STEP_ALLREDUCE)
        return false; /* that flag is for all-reduce only */
    if (PL_GIVEN(options, ps) && ps != (train->ps > 0))
        return false;
    if (PL_GIVEN(options, mode))
        return ps && train->mode == (int)kinds[kind].mode;
    return kinds[kind].step != PL_STEP_SSP;
}

/* Async is only chosen as best if it was requested. */
static bool may_be_best(const pl_forecast_opts *opts, size_t kind)
{
    return kinds[kind].alike || PL_GIVEN(opts->options, mode);
}

/* The most workers of a row: one per host, or on a single host one per core. */
static int32_t most_workers(const pl_forecast_opts *opts)
{
    return opts->hosts > 1 ? opts->hosts : opts->cores;
}

/* More threads than measured only shorten the parallel part. */
static double thread_factor(const pl_forecast_work *work, int32_t threads)
{
    double serial = work->serial;
    return (serial + (1 - serial) / threads) /
           (serial + (1 - serial) / work->threads);
}

static pl_status predict(const pl_forecast_opts *opts, size_t kind,
                         int32_t workers, int32_t ps, pl_coded coded,
                         bool with_limit, pl_step_time *out)
{
    const pl_forecast_work *work = opts->work;
    const pl_train_options *train = &opts->options->train;
    int32_t hosts = opts->hosts < workers ? opts->hosts : workers;
    int32_t per_host = (workers + hosts - 1) / hosts;
    int32_t threads = PL_GIVEN(opts->options, threads) ? (int32_t)train->threads
                      : opts->cores > per_host         ? opts->cores / per_host
                                                       : 1;
    pl_step_work step = work->step;
    pl_step_layer *layers;
    PL_TRY(PL_NEW(layers, step.layer_count));
    double factor = thread_factor(work, threads);
    for (size_t i = 0; i < step.layer_count; i++) {
        layers[i] = work->layers[i];
        layers[i].forward_s *= factor;
        layers[i].backward_s *= factor;
    }
    step.update_s += pl_coded_apply(opts, coded, workers, layers);
    step.layers = layers;
    pl_step_net net = work->net;
    net.bytes_per_s = PL_FORECAST_PAYLOAD * opts->link_bytes_per_s;
    net.latency_s = opts->round_trip_s / 2;
    pl_step_job job = {
        .strategy = kinds[kind].step,
        .workers = workers,
        .servers = ps,
        .hosts = hosts,
        .cores = opts->cores,
        .threads = threads,
        .local_steps = pl_forecast_local_steps(opts),
        .planes = 1 + pl_optim_list()[train->optimizer]->slot_count,
    };
    pl_status status = with_limit ? pl_step_predict(out, &step, &net, &job)
                                  : pl_step_replay(out, &step, &net, &job);
    pl_mem_free(layers);
    return status;
}

/* A server holds its partition of the parameters and slots, and in lock step a
 * gradient of each worker. */
static int64_t server_bytes(const pl_forecast_work *work, size_t kind,
                            int32_t workers, int32_t ps)
{
    int64_t gradients = kinds[kind].step == PL_STEP_SYNC ? workers : 1;
    int64_t all =
        work->parameter_bytes * (1 + gradients) + work->optimizer_bytes;
    return ps > 0 ? all / ps : 0;
}

static pl_status make_row(const pl_forecast_opts *opts, size_t kind,
                          int32_t workers, int32_t ps, pl_coded coded,
                          double alone_per_s, bool with_limit,
                          pl_forecast_row *out)
{
    const pl_forecast_work *work = opts->work;
    pl_step_time time;
    PL_TRY(predict(opts, kind, workers, ps, coded, with_limit, &time));
    double per_s = time.gradients_per_s * (double)work->examples;
    *out = (pl_forecast_row) {
        .strategy = kinds[kind].name,
        .mode = kinds[kind].mode_name,
        .workers = workers,
        .ps = ps,
        .codec = pl_coded_names[coded],
        .step_seconds = time.step_s,
        .examples_per_s = per_s,
        .speedup = per_s / alone_per_s,
        .efficiency = per_s / alone_per_s / workers,
        .link_bytes = (int64_t)llround(time.link_bytes),
        .worker_bytes =
            work->worker_bytes - (ps > 0 ? work->optimizer_bytes : 0),
        .server_bytes = server_bytes(work, kind, workers, ps),
        .limit = with_limit ? pl_step_limit_names[time.limit] : "",
    };
    return PL_OK;
}

/* 1, 2, 4, ..., then the last; 0: no more. */
static int32_t next_count(int32_t count, int32_t last)
{
    if (count >= last)
        return 0;
    return 2 * count < last ? 2 * count : last;
}

/* The action of a search on each row. */
typedef struct visitor {
    const pl_forecast_opts *opts;
    double alone_per_s;
    bool with_limit;
    pl_forecast *plan; /* receives all rows; or NULL */
    bool found;
    pl_forecast_row best;
    size_t best_kind;
    pl_coded best_coded;
} visitor;

static pl_status add_row(pl_forecast *plan, const pl_forecast_row *row)
{
    pl_forecast_row *rows =
        pl_mem_resize(plan->rows, plan->row_count + 1, sizeof *rows);
    PL_TRY(pl_mem_check(rows, plan->row_count + 1, sizeof *rows));
    plan->rows = rows;
    rows[plan->row_count++] = *row;
    return PL_OK;
}

static pl_status visit_coded(visitor *v, size_t kind, int32_t workers,
                             int32_t ps, pl_coded coded)
{
    pl_forecast_row row;
    PL_TRY(make_row(v->opts, kind, workers, ps, coded, v->alone_per_s,
                    v->with_limit, &row));
    if (may_be_best(v->opts, kind) &&
        (!v->found || row.examples_per_s > v->best.examples_per_s)) {
        v->found = true;
        v->best = row;
        v->best_kind = kind;
        v->best_coded = coded;
    }
    return v->plan != NULL ? add_row(v->plan, &row) : PL_OK;
}

static pl_status visit(visitor *v, size_t kind, int32_t workers, int32_t ps)
{
    for (int c = 0; c < PL_CODED_KINDS; c++)
        if (pl_coded_is_wanted(v->opts, (pl_coded)c, kinds[kind].step, workers))
            PL_TRY(visit_coded(v, kind, workers, ps, (pl_coded)c));
    return PL_OK;
}

/* All rows of a kind with that many workers. */
static pl_status visit_workers(visitor *v, size_t kind, int32_t workers)
{
    const pl_options *options = v->opts->options;
    if (kinds[kind].step == PL_STEP_SINGLE)
        return workers == 1 ? visit(v, kind, 1, 0) : PL_OK;
    if (workers < 2)
        return PL_OK;
    if (kinds[kind].step == PL_STEP_ALLREDUCE)
        return visit(v, kind, workers, 0);
    if (PL_GIVEN(options, ps))
        return visit(v, kind, workers, (int32_t)options->train.ps);
    for (int32_t ps = 1; ps > 0; ps = next_count(ps, workers))
        PL_TRY(visit(v, kind, workers, ps));
    return PL_OK;
}

static pl_status visit_kinds(visitor *v, int32_t workers)
{
    for (size_t kind = 0; kind < KINDS; kind++)
        if (is_wanted(v->opts, kind))
            PL_TRY(visit_workers(v, kind, workers));
    return PL_OK;
}

/* The command that trains as in a row. */
static pl_status write_command(const pl_forecast_opts *opts,
                               pl_forecast_choice *choice)
{
    const pl_forecast_row *row = &choice->row;
    bool here = opts->hosts == 1 || row->workers == 1;
    pl_buffer text = { 0 };
    pl_buffer_text(&text, here ? opts->here : opts->command);
    if (row->workers > 1)
        pl_buffer_format(&text, " --workers %d", row->workers);
    if (row->ps > 0)
        pl_buffer_format(&text, " --ps %d --mode %s", row->ps, row->mode);
    else if (row->workers > 1)
        pl_buffer_text(&text, " --strategy allreduce");
    if (row->codec != pl_coded_names[PL_CODED_PLAIN] &&
        !PL_GIVEN(opts->options, codec))
        pl_buffer_format(&text, " --codec %s", row->codec);
    pl_status status = pl_buffer_status(&text);
    if (status == PL_OK)
        choice->command = text.data;
    else
        pl_buffer_close(&text);
    return status;
}

/* The smallest number of workers that reaches the speed-up. */
static pl_status find_smallest(pl_forecast *plan, const pl_forecast_opts *opts,
                               double alone_per_s)
{
    const pl_options *options = opts->options;
    bool given = PL_GIVEN(options, workers);
    int32_t first = given ? (int32_t)options->train.workers : 1;
    int32_t last = given ? first : most_workers(opts);
    plan->has_wanted = true;
    plan->wanted = opts->speedup;
    for (int32_t w = first; w <= last && !plan->has_smallest; w++) {
        visitor v = { .opts = opts, .alone_per_s = alone_per_s };
        PL_TRY(visit_kinds(&v, w));
        if (!v.found || v.best.speedup < opts->speedup)
            continue;
        PL_TRY(make_row(opts, v.best_kind, w, v.best.ps, v.best_coded,
                        alone_per_s, true, &plan->smallest.row));
        plan->has_smallest = true;
    }
    return plan->has_smallest ? write_command(opts, &plan->smallest) : PL_OK;
}

static pl_status fill(pl_forecast *plan, const pl_forecast_opts *opts)
{
    const pl_options *options = opts->options;
    visitor v = { .opts = opts, .with_limit = !opts->no_limits, .plan = plan };
    pl_step_time alone;
    PL_TRY(predict(opts, 0, 1, 0, PL_CODED_PLAIN, false, &alone));
    v.alone_per_s = alone.gradients_per_s * (double)opts->work->examples;
    if (PL_GIVEN(options, workers))
        PL_TRY(visit_kinds(&v, (int32_t)options->train.workers));
    else
        for (int32_t w = 1; w > 0; w = next_count(w, most_workers(opts)))
            PL_TRY(visit_kinds(&v, w));
    if (!v.found)
        return PL_FAIL(PL_USAGE,
                       "--strategy, --mode, --workers, --ps and --local-steps "
                       "leave nothing to compare on %d host%s: leave out some "
                       "of them",
                       opts->hosts, opts->hosts == 1 ? "" : "s");
    plan->best.row = v.best;
    PL_TRY(write_command(opts, &plan->best));
    return opts->speedup > 0 ? find_smallest(plan, opts, v.alone_per_s) : PL_OK;
}

pl_status pl_forecast_make(pl_forecast *out, const pl_forecast_opts *opts)
{
    pl_forecast plan = {
        .model = opts->options->model->name,
        .batch = opts->options->train.batch,
        .hosts = opts->hosts,
        .cores = opts->cores,
        .link_bytes_per_s = opts->link_bytes_per_s,
        .round_trip_seconds = opts->round_trip_s,
    };
    pl_status status = fill(&plan, opts);
    if (status == PL_OK)
        *out = plan;
    else
        pl_forecast_close(&plan);
    return status;
}

void pl_forecast_close(pl_forecast *plan)
{
    pl_fields_close(&pl_forecast_fields, plan);
}
