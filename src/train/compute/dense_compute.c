/* Forward and backward of a dense batch. Decides how many shards a batch has
 * (from model and batch size only, so that the number of threads never changes
 * a bit), runs one execution per shard, and adds their gradients in order,
 * range by range, so that adding and updating stay in the first-level cache. */
#include "train/compute/compute_priv.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/record/confusion.h"
#include "base/rng.h"
#include "kernels/cpu/team.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A shard is worth a thread from about 15 us of work. */
#define SHARD_MULTIPLY_ADDS 750000
#define MAX_SHARDS          16
/* All shards' gradients together stay below this. */
#define SHARD_DIFF_BYTES ((int64_t)64 << 20)
/* A large model is scored this many rows at a time: more would not be faster,
 * and would need as much memory as training. */
#define SCORE_ROWS 32
/* Floats added and updated in one go: they stay in the first-level cache. */
#define RANGE 2048
/* Rows whose answers are read in one go. */
#define ANSWER_ROWS 64

/* Outputs of a plan; the last only when scoring a classifier. */
enum {
    LOSS = 0,
    LOGITS = 1,
    ACCURACY = 2,
};

typedef struct dense {
    pl_compute base;
    pl_compute_opts opts;
    pl_plan *plan;
    int shards;
    int64_t group; /* rows are split at multiples of this number */
    bool large;    /* all threads share one operator: one shard */
    int64_t most;  /* maximum rows of an execution */
    /* One per thread, so that a thread's next shard finds its memory in the
     * cache; or one per shard, if there are fewer shards. */
    pl_exec *execs[MAX_SHARDS];
    int64_t exec_rows[MAX_SHARDS];  /* of its last run; 0: not part of this
                                       batch */
    int64_t exec_first[MAX_SHARDS]; /* the first of these in the batch */
    pl_params *diffs[MAX_SHARDS];
    const float *blocks[MAX_SHARDS]; /* of diffs */
    pl_answer *answers; /* to the rows of a scored batch; or NULL... */
    bool keeps;         /* ... and whether they are kept */
    float *outputs;     /* logits of a scored batch; NULL: labels are classes */
    /* The current batch. */
    const pl_batch *batch;
    int64_t step;
    uint64_t key; /* of its random numbers */
    pl_sync *apply;
    pl_exec_hooks *hooks;
    /* Results, a cache line apart, since several threads write them. */
    struct {
        _Alignas(PL_CACHE_LINE) pl_score score;
    } results[MAX_SHARDS];
} dense;

/* The first row of shard s when `rows` are split into `shards`, at multiples
 * of `group`. */
static int64_t shard_first(int64_t rows, int64_t group, int shards, int s)
{
    int64_t groups = (rows + group - 1) / group;
    int64_t first = groups * s / shards * group;
    return first < rows ? first : rows;
}

static int threads_of(const pl_compute_opts *opts)
{
    return opts->pool != NULL ? pl_pool_threads(opts->pool) : opts->threads;
}

static int64_t class_count(const pl_compute_opts *opts)
{
    return pl_node_shape(opts->network->logits).dim[1];
}

static bool may_keep_answers(const pl_compute_opts *opts)
{
    return opts->forward && !opts->network->numeric &&
           class_count(opts) <= PL_CONFUSION_CLASSES;
}

static pl_status make_plan(pl_plan **out, const pl_compute_opts *opts,
                           int64_t batch)
{
    const pl_network *network = opts->network;
    pl_node *outputs[] = { network->loss, network->logits, network->accuracy };
    return pl_plan_new(
        out,
        &(pl_plan_opts) {
            .graph = network->graph,
            .batch = batch,
            .kernels = opts->kernels,
            .outputs = outputs,
            .output_count = opts->forward && !network->numeric ? 3 : 2,
            .diff = network->diff,
            .diff_count = opts->forward ? 0 : pl_params_count(network->params),
            .bf16 = opts->bf16 && !opts->forward,
            .threads = threads_of(opts),
        });
}

/* Number of shards, and rows of the largest. */
typedef struct split {
    int shards;
    int64_t rows;
} split;

/* For a batch that may be split. */
static int count_shards(const pl_compute_opts *opts, pl_plan_memory memory)
{
    int64_t work = memory.multiply_adds * opts->batch;
    int64_t groups = (opts->batch + memory.row_group - 1) / memory.row_group;

    int64_t shards = work / SHARD_MULTIPLY_ADDS;
    int64_t diff_bytes =
        pl_params_block_count(opts->network->params) * (int64_t)sizeof(float);
    if (!opts->forward && shards > SHARD_DIFF_BYTES / (diff_bytes + 1))
        shards = SHARD_DIFF_BYTES / (diff_bytes + 1);
    if (shards > groups)
        shards = groups;
    if (shards > MAX_SHARDS)
        shards = MAX_SHARDS;
    return shards > 1 ? (int)shards : 1;
}

/* A large model is scored in the memory used for training, if any, so in no
 * more rows than fit there. */
static int64_t score_rows(const pl_compute_opts *opts)
{
    int64_t rows = opts->batch < SCORE_ROWS ? opts->batch : SCORE_ROWS;
    if (opts->beside_batch > 0 && opts->beside_batch < rows)
        rows = opts->beside_batch;
    return rows;
}

static pl_status split_batch(const pl_compute_opts *opts, split *out)
{
    bool separable;
    *out = (split) { 1, opts->batch };
    PL_TRY(pl_graph_separable(opts->network->loss, !opts->forward, &separable));
    if (separable && opts->forward && !opts->network->numeric)
        PL_TRY(pl_graph_separable(opts->network->accuracy, false, &separable));
    if (!separable)
        return PL_OK;
    pl_plan *plan;
    PL_TRY(make_plan(&plan, opts, opts->batch));
    pl_plan_memory memory = pl_plan_measure(plan);
    pl_plan_free(plan);
    if (memory.large) {
        if (opts->forward)
            out->rows = score_rows(opts);
        return PL_OK;
    }
    out->shards = count_shards(opts, memory);
    out->rows = 0;
    for (int s = 0; s < out->shards; s++) {
        int64_t rows =
            shard_first(opts->batch, memory.row_group, out->shards, s + 1) -
            shard_first(opts->batch, memory.row_group, out->shards, s);
        out->rows = rows > out->rows ? rows : out->rows;
    }
    return PL_OK;
}

/* The plan of one shard, with the layouts of the whole batch's plan. */
static pl_status plan_shards(const pl_compute_opts *opts, pl_plan **plan,
                             split *out)
{
    PL_TRY(split_batch(opts, out));
    return make_plan(plan, opts, out->rows);
}

/* The executions that run concurrently. */
static int exec_count(const pl_compute_opts *opts, int shards)
{
    int threads = threads_of(opts);
    return threads < shards ? threads : shards;
}

static void dense_free(pl_compute *base)
{
    dense *compute = (dense *)base;
    for (int s = 0; s < MAX_SHARDS; s++) {
        pl_exec_free(compute->execs[s]);
        pl_params_free(compute->diffs[s]);
    }
    pl_plan_free(compute->plan);
    pl_mem_free(compute->answers);
    pl_mem_free(compute->outputs);
    pl_mem_free(compute);
}

/* See pl_factors.multiply: shard by shard, as gradients are combined. */
static void multiply_factors(const void *source, int layer, const float *block,
                             float *room, float *out)
{
    const dense *compute = source;
    const pl_factors *factors = compute->opts.factors;
    const pl_factor_layer *l = &factors->layers[layer];
    const pl_node *diff = compute->opts.network->diff[l->param];
    int64_t count = l->sizes.outputs * l->sizes.inputs;
    int64_t row = l->sizes.outputs + l->sizes.inputs;
    for (int s = 0; s < compute->shards; s++) {
        int64_t first =
            shard_first(factors->rows, compute->group, compute->shards, s);
        int64_t last =
            shard_first(factors->rows, compute->group, compute->shards, s + 1);
        pl_exec_multiply(compute->execs[0], diff, last - first,
                         block + l->first + first * row, block[1 + layer],
                         s == 0 ? out : room);
        if (s > 0)
            compute->opts.kernels->add(count, out, room, out);
    }
}

/* See pl_factors.multiply_add: shards are summed before they are added to
 * anything else. */
static bool multiply_add_factors(const void *source, int layer,
                                 const float *block, float *sum)
{
    const dense *compute = source;
    const pl_factors *factors = compute->opts.factors;
    const pl_factor_layer *l = &factors->layers[layer];
    const pl_node *diff = compute->opts.network->diff[l->param];
    return compute->shards == 1 &&
           pl_exec_multiply_add(compute->execs[0], diff, factors->rows,
                                block + l->first, block[1 + layer], sum);
}

static void offer_factors(dense *compute)
{
    pl_factors *factors = compute->opts.factors;
    if (factors == NULL)
        return;
    PL_ASSERT(factors->rows == compute->opts.batch);
    factors->multiply = multiply_factors;
    factors->needs_room = compute->shards > 1;
    factors->multiply_add = multiply_add_factors;
    factors->source = compute;
    factors->own[0] = 1;
    if (!compute->large)
        return;
    char library[PL_DNN_TEXT];
    pl_dnn_describe(library);
    snprintf(factors->arithmetic, sizeof factors->arithmetic,
             "%s and %d threads", library,
             pl_dnn_threads(threads_of(&compute->opts)));
}

static pl_status dense_new(pl_compute **out, const pl_compute_opts *opts)
{
    dense *compute;
    PL_TRY(PL_NEW_ALIGNED(compute, 1));
    compute->opts = *opts;
    pl_params *params = opts->network->params;
    pl_status status;
    split cut;
    PL_TRY_OUT(status, plan_shards(opts, &compute->plan, &cut));
    compute->shards = cut.shards;
    compute->most = cut.rows;
    compute->group = pl_plan_measure(compute->plan).row_group;
    compute->large = pl_plan_measure(compute->plan).large;
    if (may_keep_answers(opts))
        PL_TRY_OUT(status, PL_NEW(compute->answers, (size_t)opts->batch));
    if (opts->forward && opts->network->numeric)
        PL_TRY_OUT(status, PL_NEW(compute->outputs,
                                  (size_t)(opts->batch * class_count(opts))));
    for (int s = 0; s < compute->shards; s++) {
        if (!opts->forward) {
            PL_TRY_OUT(status, pl_params_like_in(&compute->diffs[s], params,
                                                 s == 0 ? opts->diff : NULL));
            compute->blocks[s] = pl_params_block(compute->diffs[s]);
        }
    }
    for (int e = 0; e < exec_count(opts, compute->shards); e++) {
        /* Several executions do not share: each stays in its own cache. */
        const dense *beside = (const dense *)opts->beside;
        const pl_exec *host =
            compute->large && beside != NULL ? beside->execs[e] : NULL;
        PL_TRY_OUT(status, pl_exec_new_in(&compute->execs[e], compute->plan,
                                          params, compute->diffs[e], host));
    }
    offer_factors(compute);
    *out = &compute->base;
    return PL_OK;
out:
    dense_free(&compute->base);
    return status;
}

static int dense_shards(const pl_compute *base)
{
    return ((const dense *)base)->shards;
}

static pl_status dense_memory(const pl_compute_opts *opts, pl_compute_size *out)
{
    pl_plan *plan;
    split cut;
    PL_TRY(plan_shards(opts, &plan, &cut));
    pl_plan_memory memory = pl_plan_measure(plan);
    *out = (pl_compute_size) {
        .bytes = exec_count(opts, cut.shards) * memory.bytes,
        .arena = memory.bytes,
        .large = memory.large,
    };
    if (!opts->forward)
        out->bytes += cut.shards *
                      pl_params_block_count(opts->network->params) *
                      (int64_t)sizeof(float);
    pl_plan_free(plan);
    return PL_OK;
}

/* The softmax probability of the largest logit. */
static float largest_share(const float *logits, int64_t classes, float largest)
{
    float sum = 0;
    for (int64_t c = 0; c < classes; c++)
        sum += expf(logits[c] - largest);
    return 1 / sum;
}

/* The first of equal logits wins, as in the accuracy. */
static void keep_answers(dense *compute, const float *logits, int64_t first,
                         int64_t rows)
{
    int64_t classes = class_count(&compute->opts);
    for (int64_t r = 0; r < rows; r++, logits += classes) {
        int32_t best = 0;
        for (int32_t c = 1; c < classes; c++)
            best = logits[c] > logits[best] ? c : best;
        bool right = pl_view_label(&compute->batch->labels, first + r) == best;
        compute->answers[first + r] = (pl_answer) {
            best, right ? 0 : largest_share(logits, classes, logits[best])
        };
    }
}

/* Rows whose label is among the PL_SCORE_TOP largest logits; ties go to the
 * lower class. */
static int64_t count_top(const dense *compute, const float *logits,
                         int64_t first, int64_t rows)
{
    int64_t classes = class_count(&compute->opts), found = 0;
    for (int64_t r = 0; r < rows; r++, logits += classes) {
        int64_t label = pl_view_label(&compute->batch->labels, first + r);
        int above = 0;
        for (int64_t c = 0; c < classes && above < PL_SCORE_TOP; c++)
            above += logits[c] > logits[label] ||
                     (logits[c] == logits[label] && c < label);
        found += above < PL_SCORE_TOP;
    }
    return found;
}

/* Store what a test needs of the rows from `first` on. */
static void score_rows_of(dense *compute, int s, const pl_exec *exec,
                          int64_t first, int64_t rows)
{
    pl_score *score = &compute->results[s].score;
    int64_t classes = class_count(&compute->opts);
    double all = (double)compute->batch->rows;
    const float *logits = pl_exec_output(exec, LOGITS);
    if (compute->outputs != NULL) {
        memcpy(compute->outputs + first * classes, logits,
               (size_t)(rows * classes) * sizeof *logits);
        return;
    }
    score->accuracy +=
        (double)rows / all * (double)*pl_exec_output(exec, ACCURACY);
    if (classes > PL_SCORE_TOP)
        score->top5 += (double)count_top(compute, logits, first, rows) / all;
    if (compute->keeps)
        keep_answers(compute, logits, first, rows);
}

/* Append the factors of the rows from `first` on. */
static void keep_factors(const dense *compute, pl_exec *exec, int64_t first)
{
    const pl_factors *factors = compute->opts.factors;
    for (int i = 0; factors != NULL && i < factors->count; i++) {
        const pl_factor_layer *layer = &factors->layers[i];
        int64_t row = layer->sizes.outputs + layer->sizes.inputs;
        pl_exec_keep_factors(exec, compute->opts.network->diff[layer->param],
                             factors->own + layer->first + first * row,
                             first == 0 ? &factors->own[1 + i] : NULL);
    }
}

/* Weights of the rows from `first` on; 1 if the batch has none, as in tests. */
static pl_view weights_of(const dense *compute, int64_t first)
{
    static const float one = 1;
    const pl_batch *batch = compute->batch;
    if (batch->weights.data != NULL && !compute->opts.forward)
        return pl_view_from(&batch->weights, first);
    return (pl_view) { .data = &one, .dtype = PL_FLOAT32, .scale = 1 };
}

/* Compute some rows of the batch on one execution; adds their part of the
 * score. */
static void run_rows(dense *compute, int s, int64_t first, int64_t rows,
                     int thread)
{
    const pl_batch *batch = compute->batch;
    pl_score *score = &compute->results[s].score;
    double share = (double)rows / (double)batch->rows;
    pl_view views[PL_INPUT_COUNT] = {
        [PL_INPUT_FEATURES] = pl_view_from(&batch->features, first),
        [PL_INPUT_LABELS] = pl_view_from(&batch->labels, first),
        [PL_INPUT_WEIGHTS] = weights_of(compute, first),
    };
    bool per_thread = pl_pool_threads(compute->opts.pool) < compute->shards;
    int index = per_thread ? thread : s;
    pl_exec *exec = compute->execs[index];
    compute->exec_rows[index] = rows;
    compute->exec_first[index] = first;
    if (!compute->opts.forward)
        pl_exec_bind(exec, compute->diffs[s]);
    keep_factors(compute, exec, first);
    pl_exec_run(exec,
                &(pl_exec_args) {
                    .rows = rows,
                    .views = views,
                    .seed = compute->opts.sum ? (float)rows : (float)share,
                    .key = compute->key,
                    .first_row = first,
                    .hooks = compute->hooks,
                    .finished = compute->opts.sync != NULL
                                    ? compute->opts.sync->ops->progress
                                    : NULL,
                    .finished_context = compute->opts.sync,
                    .trace = compute->opts.trace,
                    .lane = thread,
                    .step = compute->step,
                });
    score->loss += share * (double)*pl_exec_output(exec, LOSS);
    if (compute->opts.forward)
        score_rows_of(compute, s, exec, first, rows);
}

static void run_shard(dense *compute, int s, int thread)
{
    int64_t rows = compute->batch->rows;
    int64_t first = shard_first(rows, compute->group, compute->shards, s);
    int64_t last = shard_first(rows, compute->group, compute->shards, s + 1);
    compute->results[s].score = (pl_score) { 0 };
    /* Only evaluation has empty executions (a short last batch) or rows beyond
     * them. */
    PL_ASSERT(compute->opts.forward ||
              (first < last && last - first <= compute->most));
    for (; first < last; first += compute->most) {
        int64_t left = last - first;
        run_rows(compute, s, first, left < compute->most ? left : compute->most,
                 thread);
    }
}

/* The block is combined in ranges of whole cache lines, a few per thread. */
static int combine_parts(const dense *compute)
{
    int64_t count = pl_params_block_count(compute->diffs[0]);
    int64_t parts = (count + RANGE - 1) / RANGE;
    int64_t most = 2 * pl_pool_threads(compute->opts.pool);
    return (int)(parts < most ? parts : most);
}

/* Add the shards' gradients in one range of the block, and update the
 * parameters there. */
static void combine(dense *compute, int part, int parts)
{
    const pl_kernels *kernels = compute->opts.kernels;
    float *sum = pl_params_block(compute->diffs[0]);
    int64_t lines = pl_params_block_count(compute->diffs[0]) / 16;
    int64_t first = lines * part / parts * 16;
    int64_t last = lines * (part + 1) / parts * 16;
    for (; first < last; first += RANGE) {
        int64_t count = last - first < RANGE ? last - first : RANGE;
        const float *terms[MAX_SHARDS];
        for (int s = 0; s < compute->shards; s++)
            terms[s] = compute->blocks[s] + first;
        if (compute->shards > 1)
            kernels->sum_parts(count, compute->shards, terms, sum + first);
        if (compute->apply != NULL)
            compute->apply->ops->local->apply(compute->apply, first, count,
                                              sum + first);
    }
}

static void shard_job(void *arg, int item, int thread)
{
    run_shard(arg, item, thread);
}

static void combine_job(void *arg, int item, int thread)
{
    dense *compute = arg;
    uint64_t begin = pl_ticks_now();
    combine(compute, item, combine_parts(compute));
    if (pl_trace_on(compute->opts.trace))
        pl_trace_span(compute->opts.trace, thread, "combine", compute->step,
                      begin, pl_ticks_now());
}

/* After a oneDNN operation its threads still occupy the cores. */
static void run_items(dense *compute, int items, pl_pool_job *job)
{
    if (compute->large)
        pl_team_run(pl_dnn_threads(pl_pool_threads(compute->opts.pool)), items,
                    job, compute);
    else
        pl_pool_run(compute->opts.pool, items, job, compute);
}

static pl_score run_all(dense *compute, const pl_batch *batch)
{
    compute->batch = batch;
    memset(compute->exec_rows, 0, sizeof compute->exec_rows);
    run_items(compute, compute->shards, shard_job);
    if (!compute->opts.forward &&
        (compute->shards > 1 || compute->apply != NULL)) {
        /* A small block is not worth waking other threads. */
        if (pl_params_block_count(compute->diffs[0]) < 8 * RANGE)
            combine(compute, 0, 1);
        else
            run_items(compute, combine_parts(compute), combine_job);
    }
    pl_score total = { 0 };
    for (int s = 0; s < compute->shards; s++) {
        total.loss += compute->results[s].score.loss;
        total.accuracy += compute->results[s].score.accuracy;
        total.top5 += compute->results[s].score.top5;
    }
    if (class_count(&compute->opts) <= PL_SCORE_TOP)
        total.top5 = (double)NAN;
    return total;
}

static uint64_t batch_key(uint64_t seed, int64_t step, int64_t part)
{
    uint64_t key = pl_rng_key_text(seed, "batch");
    return pl_rng_key(pl_rng_key(key, (uint64_t)step), (uint64_t)part);
}

static double dense_gradient(pl_compute *base, const pl_batch *batch,
                             int64_t step, int64_t part, pl_sync *apply)
{
    dense *compute = (dense *)base;
    PL_ASSERT(!compute->opts.forward);
    compute->step = step;
    compute->key = batch_key(compute->opts.seed, step, part);
    compute->apply = apply;
    if (apply != NULL)
        apply->ops->local->begin(apply);
    return run_all(compute, batch).loss;
}

static pl_status dense_stream(pl_compute *base, const pl_batch *batch,
                              int64_t step, int64_t part, pl_exec_hooks *hooks,
                              double *loss)
{
    dense *compute = (dense *)base;
    PL_ASSERT(compute->shards == 1);
    hooks->status = PL_OK;
    compute->hooks = hooks;
    *loss = dense_gradient(base, batch, step, part, NULL);
    compute->hooks = NULL;
    return hooks->status;
}

static pl_params *dense_diff(const pl_compute *base)
{
    return ((const dense *)base)->diffs[0];
}

static const float *dense_grad(const pl_compute *base, int param,
                               const pl_keys **keys)
{
    *keys = NULL;
    return pl_params_data(dense_diff(base), param);
}

static pl_score dense_score(pl_compute *base, const pl_batch *batch)
{
    dense *compute = (dense *)base;
    PL_ASSERT(compute->opts.forward);
    compute->apply = NULL;
    return run_all(compute, batch);
}

static const float *dense_logits(const pl_compute *base, int64_t *rows)
{
    const dense *compute = (const dense *)base;
    PL_ASSERT(!compute->opts.forward);
    int index = 0;
    while (compute->exec_rows[index] == 0)
        index++;
    *rows = compute->exec_rows[index];
    return pl_exec_output(compute->execs[index], LOGITS);
}

static int64_t dense_keep_answers(pl_compute *base, bool keep)
{
    dense *compute = (dense *)base;
    compute->keeps = keep && compute->answers != NULL;
    return compute->answers != NULL ? class_count(&compute->opts) : 0;
}

static const pl_answer *dense_answers(const pl_compute *base)
{
    const dense *compute = (const dense *)base;
    return compute->keeps ? compute->answers : NULL;
}

static const float *dense_outputs(const pl_compute *base)
{
    return ((const dense *)base)->outputs;
}

/* Number of right answers among the rows of one execution. */
static double right_answers(const dense *compute, int index,
                            const pl_batch *batch)
{
    int64_t rows = compute->exec_rows[index];
    int64_t first = compute->exec_first[index];
    int64_t classes = class_count(&compute->opts);
    const float *logits = pl_exec_output(compute->execs[index], LOGITS);
    double right = 0;
    for (int64_t r = 0; r < rows; r += ANSWER_ROWS) {
        float hit[ANSWER_ROWS];
        int64_t count = rows - r < ANSWER_ROWS ? rows - r : ANSWER_ROWS;
        pl_view labels = pl_view_from(&batch->labels, first + r);
        compute->opts.kernels->accuracy(count, classes, logits + r * classes,
                                        &labels, hit);
        right += (double)compute->opts.kernels->sum(count, hit);
    }
    return right;
}

static double dense_accuracy(const pl_compute *base, const pl_batch *batch)
{
    const dense *compute = (const dense *)base;
    double right = 0, rows = 0;
    if (compute->opts.network->numeric)
        return (double)NAN;
    for (int e = 0; e < MAX_SHARDS; e++)
        if (compute->exec_rows[e] > 0) {
            right += right_answers(compute, e, batch);
            rows += (double)compute->exec_rows[e];
        }
    return right / rows;
}

const pl_compute_ops pl_dense_compute = {
    .make = dense_new,
    .free = dense_free,
    .memory = dense_memory,
    .shards = dense_shards,
    .gradient = dense_gradient,
    .grad = dense_grad,
    .diff = dense_diff,
    .stream = dense_stream,
    .score = dense_score,
    .accuracy = dense_accuracy,
    .logits = dense_logits,
    .keep_answers = dense_keep_answers,
    .answers = dense_answers,
    .outputs = dense_outputs,
};
