/* Does what the course of a training (course.c) says: computes steps, tests,
 * saves; decides which batch a step reads and what is counted and recorded. */
#include "train/loop/loop_priv.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

static double seconds_of(uint64_t ticks)
{
    return (double)ticks * pl_ticks_ns() * 1e-9;
}

/* Go on where the run was.  With other workers than before the order is
 * another: about as many examples are passed over as were seen. */
static pl_status resume_reader(pl_loop *l)
{
    const pl_progress *start = &l->opts->start;
    if (start->step == 0)
        return PL_OK;
    pl_status status = pl_reader_seek(l->reader, &start->position);
    if (status != PL_UNSUPPORTED)
        return status;
    pl_reader_go(l->reader, start->examples / l->update_examples);
    l->result->progress.mixed = true;
    return PL_OK;
}

static int32_t at_least_one(int32_t count)
{
    return count > 0 ? count : 1;
}

int64_t pl_loop_steps_per_epoch(const pl_loop *l)
{
    return l->opts->epoch_steps > 0 ? l->opts->epoch_steps
                                    : l->reader->steps_per_epoch;
}

/* How examples, gradients, updates and epochs count. */
static void set_pace(pl_loop *l)
{
    const pl_loop_opts *opts = l->opts;
    int32_t workers = at_least_one(opts->order.workers);
    int32_t replicas = opts->replicas > 0 ? opts->replicas : workers;
    int64_t per_epoch = pl_loop_steps_per_epoch(l);
    l->grad_examples =
        opts->order.batch * at_least_one(opts->order.micro_batches);
    l->update_examples = l->grad_examples * (opts->own_pace ? 1 : replicas);
    l->epoch_updates =
        per_epoch > 0 ? per_epoch * (opts->own_pace ? workers : 1) : 0;
}

/* How the run ends, and what is due on the way. */
static void open_course(pl_loop *l)
{
    const pl_loop_opts *opts = l->opts;
    const pl_sync_ops *sync = opts->sync->ops;
    int64_t per_epoch = pl_loop_steps_per_epoch(l);
    pl_course_opts course = {
        .worker = opts->order.worker,
        .follower = opts->follower,
        .own_pace = opts->own_pace,
        .shares = opts->own_pace && sync->share != NULL &&
                  opts->order.workers > 1 && per_epoch > 0 &&
                  !opts->train->local,
        .tests = opts->test != NULL,
        .loose = sync->loose != NULL && sync->loose(opts->sync),
        .by_steps = opts->steps > 0,
        .end_step = INT64_MAX,
        .end_own = INT64_MAX,
        .per_epoch = per_epoch,
        .eval_every = opts->eval_every,
        .save_every = opts->save_every,
        .record_every = opts->histograms_every,
        .pace = { l->update_examples, l->epoch_updates },
        .has_stop_loss = opts->has_stop_loss,
        .stop_loss = opts->stop_loss,
    };
    if (opts->steps > 0)
        course.end_step = opts->own_pace ? INT64_MAX : opts->steps;
    else if (opts->own_pace)
        course.end_own = opts->epochs * per_epoch;
    else
        course.end_step = opts->epochs * per_epoch;
    pl_course_init(&l->course, &course, opts->start.step);
}

/* What computes gradients and scores, and what combines micro-batches. */
static pl_status open_compute(pl_loop *l)
{
    const pl_loop_opts *opts = l->opts;
    pl_sync *sync = opts->sync;
    int32_t micro = at_least_one(opts->order.micro_batches);
    bool sparse = opts->network->sparse;
    bool combine = !sparse && (micro > 1 || opts->clip > 0);
    PL_TRY(pl_loop_check_sparse(opts));
    float *diff =
        sync->ops->gradient != NULL ? sync->ops->gradient(sync) : NULL;
    pl_compute_opts compute = {
        .network = opts->network,
        .batch = opts->order.batch,
        .pool = opts->pool,
        .kernels = opts->kernels,
        .trace = opts->trace,
        .diff = combine ? NULL : diff,
        .sum = opts->batch_reduction == PL_AGGREGATE_SUM,
        .seed = opts->order.seed,
        .hogwild = opts->hogwild,
        .elsewhere = pl_loop_elsewhere(opts),
        .any_key_order = !pl_loop_elsewhere(opts) && micro == 1,
    };
    if (pl_loop_reads_ahead(opts))
        PL_TRY(pl_ahead_new(&l->ahead, &compute, l->reader, sync));
    PL_TRY(pl_compute_new(&l->compute, &compute));
    l->computed = l->compute;
    if (opts->test != NULL) {
        compute.forward = true;
        compute.trace = NULL;
        compute.beside = l->compute;
        compute.beside_batch = opts->order.batch;
        compute.batch = pl_loop_eval_batch(opts->test, opts->eval_batch);
        PL_TRY(pl_compute_new(&l->scorer, &compute));
    }
    l->stream = !combine && !sparse && sync->ops->apply_range == NULL &&
                pl_compute_shards(l->compute) == 1;
    if (l->stream)
        PL_TRY(PL_NEW(l->done, (size_t)pl_params_count(opts->network->params)));
    if (!combine)
        return PL_OK;
    return pl_aggregator_new(&l->aggregator,
                             &(pl_aggregator_opts) {
                                 .params = opts->network->params,
                                 .pool = opts->pool,
                                 .kernels = opts->kernels,
                                 .micro_batches = micro,
                                 .sum = opts->aggregate == PL_AGGREGATE_SUM,
                                 .clip = opts->clip,
                                 .diff = diff,
                             });
}

/* The gradient of the last step, as the recorder wants it. */
static const float *last_gradient(void *context, int param, int64_t *count)
{
    const pl_loop *l = context;
    const pl_keys *keys = NULL;
    const float *grad =
        l->aggregator != NULL
            ? pl_params_data(pl_aggregator_diff(l->aggregator), param)
            : pl_compute_grad(l->computed, param, &keys);
    *count = keys != NULL
                 ? keys->count
                 : pl_params_get(l->opts->network->params, param)->count;
    return grad;
}

static double last_accuracy(void *context)
{
    const pl_loop *l = context;
    return l->batch.rows > 0 ? pl_compute_accuracy(l->computed, &l->batch)
                             : (double)NAN;
}

void pl_loop_forget_batch(pl_loop *l)
{
    pl_recorder_flush(&l->recorder, l->batch.rows > 0);
    l->batch.rows = 0;
}

/* Of parameters that are elsewhere it is not kept. */
static bool has_gradient(const pl_loop_opts *opts)
{
    return opts->hogwild == NULL && !pl_loop_elsewhere(opts);
}

static pl_status open_recorder(pl_loop *l)
{
    const pl_loop_opts *opts = l->opts;
    return pl_recorder_init(
        &l->recorder, &(pl_recorder_opts) {
                          .metrics = opts->metrics,
                          .schedule = opts->schedule,
                          .kernels = opts->kernels != NULL ? opts->kernels
                                                           : pl_kernels_best(),
                          .params = opts->network->params,
                          .sync = opts->sync,
                          .own_pace = opts->own_pace,
                          .epoch_updates = l->epoch_updates,
                          .gradient = has_gradient(opts) ? last_gradient : NULL,
                          .accuracy = last_accuracy,
                          .context = l,
                      });
}

static pl_status open_loop(pl_loop *l)
{
    const pl_loop_opts *opts = l->opts;
    PL_ASSERT(!opts->order.keep_rest || opts->hogwild != NULL);
    PL_TRY(pl_reader_new(&l->reader, opts->train, &opts->order));
    l->ranks = at_least_one(opts->order.workers);
    l->rank = opts->order.worker;
    l->deal = pl_deal_first(l->ranks);
    l->present = l->deal.workers;
    set_pace(l);
    open_course(l);
    PL_TRY(open_recorder(l));
    PL_TRY(resume_reader(l));
    return open_compute(l);
}

/* Join the job; one that runs already tells where to go on. */
static pl_status join(pl_loop *l)
{
    const pl_loop_opts *opts = l->opts;
    pl_sync *sync = opts->sync;
    int64_t step = l->result->progress.step;
    bool joined = l->course.joined;
    pl_standing at = { .step = step,
                       .start = l->result->progress,
                       .restored = INT64_MAX,
                       .deal = l->deal };
    pl_reader_position(l->reader, &at.start.position);
    PL_TRY(sync->ops->join(sync, &at));
    l->next_read = opts->own_pace ? at.own : at.step;
    if (at.step != step || at.own > 0 || joined)
        pl_loop_go(l, l->next_read);
    PL_TRY(pl_loop_deal_join(l, &at));
    if (l->ahead != NULL)
        pl_ahead_reset(l->ahead, at.ahead);
    pl_loop_share_end(l);
    pl_course_joined(&l->course, &at);
    l->restored = at.restored < at.step ? at.restored : at.step;
    l->result->progress.step = at.step;
    l->result->progress.examples += (at.step - step) * l->update_examples;
    return PL_OK;
}

/* Join; after a loss, count what is made again. */
static pl_status join_or_rejoin(pl_loop *l)
{
    PL_TRY(join(l));
    int64_t step = l->course.step;
    if (l->before < 0)
        return PL_OK;
    if (l->restored < l->before)
        l->result->rolled_back += l->before - l->restored;
    l->before = -1;
    pl_recorder_restart(&l->recorder, step);
    pl_log(PL_LOG_INFO, "going on at step %lld", (long long)step);
    return PL_OK;
}

static void close_loop(pl_loop *l)
{
    pl_reader_free(l->other);
    pl_reader_free(l->reader);
    pl_compute_free(l->scorer); /* in the memory of the other */
    pl_compute_free(l->compute);
    pl_aggregator_free(l->aggregator);
    pl_ahead_free(l->ahead);
    pl_sparse_sum_close(&l->sum);
    pl_mem_free(l->done);
}

/* What computes traces its operators itself. */
void pl_loop_spent(pl_loop *l, pl_loop_phase p)
{
    static const char *const names[] = { [PL_LOOP_INPUT] = "read",
                                         [PL_LOOP_SEND] = "send",
                                         [PL_LOOP_WAIT] = "wait" };
    uint64_t now = pl_ticks_now();
    if (p != PL_LOOP_COMPUTE)
        pl_trace_span(l->opts->trace, 0, names[p], l->result->progress.step + 1,
                      l->mark, now);
    l->phase_ticks[p] += now - l->mark;
    l->mark = now;
}

static pl_status need_all(pl_loop *l)
{
    pl_sync *sync = l->opts->sync;
    int count = pl_params_count(l->opts->network->params);
    for (int p = 0; p < count; p++)
        PL_TRY(sync->ops->need(sync, p, NULL));
    return PL_OK;
}

/* Hand the gradients over, those of the last layers first: they were done
 * first. */
static pl_status ready_all(pl_loop *l)
{
    pl_sync *sync = l->opts->sync;
    for (int p = pl_params_count(l->opts->network->params) - 1; p >= 0; p--) {
        const pl_keys *keys = NULL;
        const float *grad =
            l->aggregator != NULL
                ? pl_params_data(pl_aggregator_diff(l->aggregator), p)
                : pl_compute_grad(l->compute, p, &keys);
        PL_TRY(sync->ops->ready(sync, p, grad, keys));
    }
    return PL_OK;
}

static pl_status need_one(void *context, int param)
{
    pl_loop *l = context;
    pl_sync *sync = l->opts->sync;
    pl_loop_spent(l, PL_LOOP_COMPUTE);
    PL_TRY(sync->ops->need(sync, param, NULL));
    l->needed++;
    pl_loop_spent(l, PL_LOOP_WAIT);
    return PL_OK;
}

/* Hand over what is done, in the order of the block, down to `first`. */
static pl_status ready_down_to(pl_loop *l, int first)
{
    pl_sync *sync = l->opts->sync;
    pl_params *diff = pl_compute_diff(l->compute);
    for (; l->left > first && l->done[l->left - 1]; l->left--)
        PL_TRY(sync->ops->ready(sync, l->left - 1,
                                pl_params_data(diff, l->left - 1), NULL));
    return PL_OK;
}

/* The first parameter's is held back until the loss was looked at: no push is
 * complete without it. */
static pl_status ready_one(void *context, int param)
{
    pl_loop *l = context;
    l->done[param] = true;
    if (l->needed < pl_params_count(l->opts->network->params))
        return PL_OK;
    pl_loop_spent(l, PL_LOOP_COMPUTE);
    PL_TRY(ready_down_to(l, 1));
    pl_loop_spent(l, PL_LOOP_SEND);
    return PL_OK;
}

/* In lock step the batch belongs to the step, whatever was dropped. */
static void align_reader(pl_loop *l)
{
    if (l->opts->own_pace || l->next_read == l->result->progress.step)
        return;
    l->next_read = l->result->progress.step;
    pl_loop_go(l, l->next_read);
}

pl_status pl_loop_next_batch(pl_loop *l)
{
    PL_TRY(pl_loop_deal_step(l));
    align_reader(l);
    PL_TRY(pl_reader_next(l->other != NULL ? l->other : l->reader, &l->batch));
    pl_loop_spent(l, PL_LOOP_INPUT);
    return PL_OK;
}

pl_status pl_loop_check_loss(pl_loop *l, double loss, int64_t step)
{
    PL_TRY(pl_dataset_check(l->opts->train, false));
    if (isfinite(loss))
        return PL_OK;
    PL_TRY(pl_compute_check(l->computed));
    l->course.stopped_by = PL_STOPPED_NAN;
    return PL_FAIL(PL_NUMERIC,
                   "the loss is %s at step %lld: try a smaller --lr or "
                   "--clip; what checkpoints there are, are from before",
                   isnan(loss) ? "not a number" : "infinite", (long long)step);
}

/* Gradient of one step, with parameters that are waited for when they are
 * needed, and gradients that leave when they are done. */
static pl_status stream_step(pl_loop *l, int64_t step, double *loss)
{
    pl_exec_hooks hooks = { need_one, ready_one, l, PL_OK };
    int count = pl_params_count(l->opts->network->params);
    memset(l->done, 0, (size_t)count * sizeof *l->done);
    l->needed = 0;
    l->left = count;
    PL_TRY(pl_loop_next_batch(l));
    PL_TRY(pl_compute_stream(l->compute, &l->batch, step, l->opts->order.worker,
                             &hooks, loss));
    pl_loop_spent(l, PL_LOOP_COMPUTE);
    PL_TRY(pl_loop_check_loss(l, *loss, step));
    PL_TRY(ready_down_to(l, 0));
    PL_ASSERT(l->left == 0);
    pl_loop_spent(l, PL_LOOP_SEND);
    return PL_OK;
}

/* Gradient of one step; the mean loss of its micro-batches. */
static pl_status compute_step(pl_loop *l, int64_t step, double *loss)
{
    pl_sync *sync = l->opts->sync;
    int64_t worker = l->opts->order.worker;
    bool sparse = l->opts->network->sparse;
    if (l->ahead != NULL)
        return pl_loop_ahead_step(l, step, loss);
    if (sparse && l->opts->order.micro_batches > 1)
        return pl_loop_micro_step(l, step, loss);
    if (l->aggregator == NULL) {
        bool apply =
            sparse ? l->opts->hogwild != NULL : sync->ops->apply_range != NULL;
        PL_TRY(pl_loop_next_batch(l));
        if (sparse)
            PL_TRY(pl_loop_need_keys(l, &l->batch));
        *loss = pl_compute_gradient(l->compute, &l->batch, step, worker,
                                    apply ? sync : NULL);
        pl_loop_spent(l, PL_LOOP_COMPUTE);
        PL_TRY(pl_loop_check_loss(l, *loss, step));
        if (apply)
            return PL_OK;
    } else {
        int32_t micro = pl_aggregator_micro_batches(l->aggregator);
        *loss = 0;
        for (int32_t m = 0; m < micro; m++) {
            PL_TRY(pl_loop_next_batch(l));
            *loss += pl_compute_gradient(l->compute, &l->batch, step,
                                         worker * micro + m, NULL);
            pl_aggregator_put(l->aggregator, m, pl_compute_diff(l->compute));
            pl_loop_spent(l, PL_LOOP_COMPUTE);
        }
        *loss /= micro;
        PL_TRY(pl_loop_check_loss(l, *loss, step));
    }
    PL_TRY(ready_all(l));
    pl_loop_spent(l, PL_LOOP_SEND);
    return PL_OK;
}

/* Examples of the last gradient: fewer where an epoch ends in a part of a
 * batch. */
static int64_t step_examples(const pl_loop *l)
{
    return l->opts->order.keep_rest ? l->batch.rows : l->grad_examples;
}

static void record_step(pl_loop *l, double loss, int64_t behind)
{
    const pl_progress *progress = &l->result->progress;
    int64_t per_epoch = pl_loop_steps_per_epoch(l);
    double weight = (double)step_examples(l) / (double)l->grad_examples;
    if (per_epoch > 0 && (l->next_read - 1) % per_epoch == 0)
        l->loss_sum = l->loss_weight = 0;
    l->loss_sum += weight * loss;
    l->loss_weight += weight;
    pl_recorder_put(&l->recorder, &(pl_recorder_step) {
                                      .step = progress->step,
                                      .examples = progress->examples,
                                      .own = l->course.own,
                                      .own_examples = l->result->own_examples,
                                      .dropped = l->result->dropped,
                                      .behind = behind,
                                      .loss = loss,
                                      .now = l->mark,
                                      .waited = l->phase_ticks[PL_LOOP_WAIT],
                                  });
}

static void sum_up(pl_loop *l)
{
    pl_loop_result *result = l->result;
    double s[PL_LOOP_PHASES], total = 0;
    for (int p = 0; p < PL_LOOP_PHASES; p++)
        total += s[p] = seconds_of(l->phase_ticks[p]);
    result->phases = (pl_phases) {
        .input_s = s[PL_LOOP_INPUT],
        .compute_s = s[PL_LOOP_COMPUTE],
        .send_s = s[PL_LOOP_SEND],
        .wait_s = s[PL_LOOP_WAIT],
    };
    result->progress.seconds = l->opts->start.seconds + total;
    pl_recorder_end(&l->recorder, result->own_examples, result->dropped);
    if (l->epoch_updates > 0)
        result->epochs =
            (double)result->progress.step / (double)l->epoch_updates;
    if (l->loss_weight > 0)
        result->train_loss = l->loss_sum / l->loss_weight;
    result->tested = l->course.tested;
}

void pl_loop_arrive(pl_loop *l, int64_t step)
{
    pl_progress *progress = &l->result->progress;
    progress->examples += (step - progress->step) * l->update_examples;
    progress->step = step;
    pl_course_arrived(&l->course, step);
}

/* Get parameters that can be tested or saved. */
static pl_status pause_job(pl_loop *l)
{
    pl_sync *sync = l->opts->sync;
    int64_t step = l->result->progress.step;
    if (l->course.pauses_for == PL_ACT_TEST)
        pl_recorder_flush(&l->recorder, true);
    if (l->course.pauses_for == PL_ACT_SAVE)
        sum_up(l);
    l->paused = pl_ticks_now();
    if (sync->ops->pause == NULL)
        return PL_OK;
    PL_TRY(sync->ops->pause(sync, false, &step));
    pl_loop_arrive(l, step);
    return PL_OK;
}

/* Nobody shall take a test for a worker that is stuck. */
static void tell_testing(const pl_loop *l, bool begins)
{
    pl_sync *sync = l->opts->sync;
    if (sync->ops->testing != NULL && l->opts->follower)
        sync->ops->testing(sync, l->result->progress.step, begins);
}

static pl_status evaluate(pl_loop *l)
{
    uint64_t begin = l->opts->follower ? pl_ticks_now() : l->paused;
    int64_t step = l->result->progress.step;
    if (l->opts->follower) /* the test overwrites what the last batch left */
        pl_recorder_flush(&l->recorder, true);
    if (!pl_loop_elsewhere(l->opts))
        PL_TRY(need_all(l));
    tell_testing(l, true);
    PL_TRY(pl_loop_evaluate(l->scorer, l->opts->test, l->opts->eval_batch,
                            l->opts->sync, &l->result->test));
    tell_testing(l, false);
    pl_course_tested(&l->course, l->result->test.loss);
    pl_recorder_test(&l->recorder, step, &l->result->test);
    uint64_t end = pl_ticks_now();
    pl_trace_span(l->opts->trace, 0, "evaluate", step, begin, end);
    l->result->eval_seconds += seconds_of(end - begin);
    return PL_OK;
}

/* A checkpoint that fails in mid-run is a warning: the one before still
 * counts, and the next may succeed.  The last one's failure is the run's. */
static pl_status save(pl_loop *l, bool last)
{
    uint64_t begin = pl_ticks_now();
    pl_sync *sync = l->opts->sync;
    PL_TRY(pl_dataset_check(l->opts->train, true));
    if (l->ahead != NULL && l->other == NULL) {
        PL_TRY(pl_loop_align_ahead(l));
        pl_ahead_position(l->ahead, &l->result->progress.position);
    } else {
        align_reader(l);
        pl_reader_position(l->reader, &l->result->progress.position);
    }
    pl_status status = sync->ops->save(sync, &l->result->progress, last);
    uint64_t end = pl_ticks_now();
    pl_trace_span(l->opts->trace, 0, "checkpoint", l->result->progress.step,
                  begin, end);
    l->result->save_seconds += seconds_of(end - begin);
    if (status == PL_OK || last)
        return status;
    if (status != PL_AGAIN)
        pl_log(PL_LOG_WARN, "checkpoint of step %lld: %s",
               (long long)l->result->progress.step, pl_error_message());
    return PL_OK;
}

static pl_status train_step(pl_loop *l)
{
    const pl_loop_opts *opts = l->opts;
    pl_progress *progress = &l->result->progress;
    int64_t step = progress->step + 1;
    if (opts->trace != NULL)
        pl_trace_switch(opts->trace,
                        step >= opts->trace_first && step <= opts->trace_last);
    double loss;
    pl_commit committed;
    if (l->stream) {
        PL_TRY(stream_step(l, step, &loss));
    } else {
        if (!opts->network->sparse) {
            PL_TRY(need_all(l));
            pl_loop_spent(l, PL_LOOP_WAIT);
        }
        PL_TRY(compute_step(l, step, &loss));
    }
    PL_TRY(opts->sync->ops->commit(opts->sync, &committed));
    bool local = opts->sync->ops->apply_range != NULL;
    if (local)
        pl_trace_span(opts->trace, 0, "apply", step, l->mark, pl_ticks_now());
    pl_loop_spent(l, local ? PL_LOOP_COMPUTE : PL_LOOP_WAIT);
    l->next_read++;
    bool used = !committed.dropped && !committed.unsent;
    pl_course_stepped(&l->course, &committed);
    l->result->own_steps += used;
    l->result->own_examples += used ? step_examples(l) : 0;
    l->result->dropped += committed.dropped;
    pl_loop_arrive(l, committed.step);
    progress->examples -= l->grad_examples - step_examples(l);
    record_step(l, loss, committed.step > step ? committed.step - step : 0);
    return PL_OK;
}

/* The answers to the last batch of training. */
static void record_predictions(pl_loop *l)
{
    int64_t step = l->result->progress.step, rows;
    if (l->opts->network->sparse) {
        const float *probs = pl_compute_probs(l->computed);
        if (probs != NULL) /* --hogwild keeps none */
            pl_recorder_probabilities(&l->recorder, step, probs, l->batch.rows);
        return;
    }
    const float *logits = pl_compute_logits(l->computed, &rows);
    pl_recorder_predictions(&l->recorder, step, logits, rows,
                            pl_node_shape(l->opts->network->logits).dim[1]);
}

static pl_status record_histograms(pl_loop *l)
{
    record_predictions(l);
    if (pl_loop_elsewhere(l->opts))
        return PL_OK; /* nobody has all parameters */
    PL_TRY(need_all(l));
    pl_recorder_histograms(&l->recorder, l->result->progress.step);
    return PL_OK;
}

static bool interrupted(const pl_loop *l)
{
    return l->opts->interrupt != NULL &&
           atomic_load_explicit(l->opts->interrupt, memory_order_relaxed);
}

/* Wait for the final parameters. */
static pl_status settle(pl_loop *l)
{
    pl_sync *sync = l->opts->sync;
    int64_t step = l->result->progress.step;
    if (sync->ops->pause == NULL)
        return PL_OK;
    PL_TRY(sync->ops->pause(sync, true, &step));
    pl_loop_arrive(l, step);
    return PL_OK;
}

static pl_status stop(pl_loop *l)
{
    pl_sync *sync = l->opts->sync;
    if (sync->ops->stop == NULL)
        return PL_OK;
    return sync->ops->stop(sync, pl_stopped_text(l->course.stopped_by));
}

static pl_status save_last(pl_loop *l)
{
    sum_up(l);
    l->result->ended = true;
    pl_status status = save(l, true);
    if (status == PL_NUMERIC) /* the last update was one too many */
        l->course.stopped_by = PL_STOPPED_NAN;
    return status;
}

static pl_status leave(pl_loop *l)
{
    sum_up(l);
    l->result->ended = true;
    return l->opts->sync->ops->finish(l->opts->sync);
}

static pl_status act(pl_loop *l, pl_act what)
{
    switch (what) {
    case PL_ACT_JOIN:
        return join_or_rejoin(l);
    case PL_ACT_SHARE:
        return pl_loop_share(l);
    case PL_ACT_STEP:
        return train_step(l);
    case PL_ACT_RECORD:
        return record_histograms(l);
    case PL_ACT_PAUSE:
        return pause_job(l);
    case PL_ACT_TEST:
    case PL_ACT_TEST_LAST:
        return evaluate(l);
    case PL_ACT_SAVE:
        return save(l, false);
    case PL_ACT_SUM_UP:
        pl_recorder_flush(&l->recorder, true);
        sum_up(l);
        return PL_OK;
    case PL_ACT_STOP:
        return stop(l);
    case PL_ACT_SETTLE:
        return settle(l);
    case PL_ACT_SAVE_LAST:
        return save_last(l);
    case PL_ACT_LEAVE:
        return leave(l);
    case PL_ACT_END:
        break;
    }
    return PL_OK;
}

/* What the servers had is lost: go on from where the job then stands. */
static void go_back(pl_loop *l)
{
    pl_log(PL_LOG_WARN, "%s", pl_error_message());
    if (l->before < 0)
        l->before = l->result->progress.step;
    pl_course_rolled(&l->course);
}

static pl_status follow_course(pl_loop *l)
{
    for (;;) {
        pl_act what = pl_course_next(&l->course, interrupted(l), l->mark);
        if (what == PL_ACT_END)
            return PL_OK;
        pl_status status = act(l, what);
        if (status == PL_ROLLED)
            go_back(l);
        else
            PL_TRY(status);
        if (what != PL_ACT_STEP && what != PL_ACT_SHARE)
            l->mark = pl_ticks_now();
    }
}

pl_status pl_loop_run(const pl_loop_opts *opts, pl_loop_result *result)
{
    pl_loop l = { .opts = opts, .result = result, .before = -1 };
    *result = (pl_loop_result) { .progress = opts->start, .train_loss = NAN };
    pl_status status = open_loop(&l);
    bool opened = status == PL_OK;
    if (opened)
        status = follow_course(&l);
    if (status == PL_NUMERIC) {
        pl_recorder_flush(&l.recorder, false);
        sum_up(&l);
    }
    result->stopped_by = l.course.stopped_by;
    result->tested = result->tested && (status == PL_OK || result->ended);
    /* A worker that was interrupted leaves; the job has not failed. */
    if (status != PL_OK && status != PL_INTERRUPTED && opened &&
        opts->sync->ops->abort != NULL)
        opts->sync->ops->abort(opts->sync, pl_error_message());
    close_loop(&l);
    return status;
}
