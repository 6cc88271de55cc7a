/* One step: decides which batch is read, how its gradient is computed and
 * handed over (as a whole, or parameter by parameter during the computation),
 * and what is counted. */
#include "train/loop/loop_priv.h"

#include "base/assert.h"

#include <math.h>
#include <string.h>

pl_status pl_loop_need_all(pl_loop *l)
{
    pl_sync *sync = l->opts->sync;
    int count = pl_params_count(l->opts->network->params);
    for (int p = 0; p < count; p++)
        PL_TRY(sync->ops->need(sync, p, NULL));
    return PL_OK;
}

const float *pl_loop_gradient(const pl_loop *l, int param, const pl_keys **keys)
{
    *keys = NULL;
    if (l->aggregator != NULL)
        return pl_params_data(pl_aggregator_diff(l->aggregator), param);
    if (pl_loop_sums(l))
        return pl_loop_sum(l, param, keys);
    return pl_compute_grad(l->computed, param, keys);
}

/* Hand over the gradients, those of the last layers first, in the order in
 * which they were computed. */
static pl_status ready_all(pl_loop *l)
{
    pl_sync *sync = l->opts->sync;
    for (int p = pl_params_count(l->opts->network->params) - 1; p >= 0; p--) {
        const pl_keys *keys;
        const float *grad = pl_loop_gradient(l, p, &keys);
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

/* Hand over finished gradients in the order of the block, down to `first`. */
static pl_status ready_down_to(pl_loop *l, int first)
{
    pl_sync *sync = l->opts->sync;
    pl_params *diff = pl_compute_diff(l->compute);
    for (; l->left > first && l->done[l->left - 1]; l->left--)
        PL_TRY(sync->ops->ready(sync, l->left - 1,
                                pl_params_data(diff, l->left - 1), NULL));
    return PL_OK;
}

/* The first parameter's gradient is held back until the loss was checked: no
 * push is complete without it. */
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

void pl_loop_align_reader(pl_loop *l)
{
    if (l->opts->own_pace || l->next_read == l->result->progress.step)
        return;
    l->next_read = l->result->progress.step;
    pl_loop_go(l, l->next_read);
}

pl_status pl_loop_next_batch(pl_loop *l)
{
    PL_TRY(pl_loop_deal_step(l, l->result->progress.step));
    pl_loop_align_reader(l);
    PL_TRY(pl_reader_next(l->other != NULL ? l->other : l->reader, &l->batch));
    pl_loop_spent(l, PL_LOOP_INPUT);
    return PL_OK;
}

/* The first value of the batch that is not finite, or 0. */
static float find_not_finite(const pl_batch *batch, int64_t row_values)
{
    bool sparse = batch->row_start != NULL;
    if (sparse ? batch->values == NULL : batch->features.dtype != PL_FLOAT32)
        return 0;
    for (int64_t r = 0; r < batch->rows; r++) {
        int64_t at = batch->row_index != NULL ? batch->row_index[r] : r;
        const float *values = sparse ? batch->values + batch->row_start[at]
                                     : pl_view_row_f32(&batch->features, r);
        int64_t count = sparse ? batch->row_start[at + 1] - batch->row_start[at]
                               : row_values;
        for (int64_t i = 0; i < count; i++)
            if (!isfinite(values[i]))
                return values[i];
    }
    return 0;
}

static pl_status check_loss(pl_loop *l, double loss, int64_t step)
{
    const pl_dataset *set = l->opts->train;
    PL_TRY(pl_dataset_check(set, false));
    if (isfinite(loss))
        return PL_OK;
    PL_TRY(pl_compute_check(l->computed));
    l->course.stopped_by = PL_STOPPED_NAN;
    float found = find_not_finite(&l->batch, pl_shape_row(set->shape));
    if (!isfinite(found))
        return PL_FAIL(PL_NUMERIC,
                       "the loss is %s at step %lld, because an example of %s "
                       "has the value %g: fill or leave out such values; "
                       "earlier checkpoints are unaffected",
                       isnan(loss) ? "not a number" : "infinite",
                       (long long)step, set->name, (double)found);
    return PL_FAIL(PL_NUMERIC,
                   "the loss is %s at step %lld: try a smaller --lr or "
                   "--clip; earlier checkpoints are unaffected",
                   isnan(loss) ? "not a number" : "infinite", (long long)step);
}

/* Gradient of one step, waiting for parameters as they are needed and handing
 * over gradients as they are done. */
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
    PL_TRY(check_loss(l, *loss, step));
    PL_TRY(ready_down_to(l, 0));
    PL_ASSERT(l->left == 0);
    pl_loop_spent(l, PL_LOOP_SEND);
    return PL_OK;
}

/* Get the next batch, if it was not read ahead, and prepare it. */
static pl_status get_batch(pl_loop *l)
{
    if (l->ahead != NULL)
        return PL_OK;
    PL_TRY(pl_loop_next_batch(l));
    return l->opts->network->sparse ? pl_loop_need_keys(l) : PL_OK;
}

/* Add the gradient of a micro-batch to those before it. */
static pl_status combine(pl_loop *l, int32_t micro_batch)
{
    if (l->aggregator != NULL)
        pl_aggregator_put(l->aggregator, micro_batch,
                          pl_compute_diff(l->computed));
    if (l->factors != NULL && l->aggregator != NULL)
        l->factors->own[0] = pl_aggregator_factor(l->aggregator);
    return pl_loop_sums(l) ? pl_loop_sum_put(l, micro_batch) : PL_OK;
}

/* Is the update made during the computation, instead of handing gradients
 * over? */
static bool applies(const pl_loop *l)
{
    if (l->opts->network->sparse)
        return l->opts->hogwild != NULL;
    return l->aggregator == NULL && l->opts->sync->ops->local != NULL;
}

/* Gradient of one step, computed as a whole over its micro-batches; their mean
 * loss. */
static pl_status whole_step(pl_loop *l, int64_t step, double *loss)
{
    bool here = applies(l);
    int32_t micro = l->micro_batches;
    if (!l->opts->network->sparse) {
        PL_TRY(pl_loop_need_all(l));
        pl_loop_spent(l, PL_LOOP_WAIT);
    }
    *loss = 0;
    for (int32_t m = 0; m < micro; m++) {
        PL_TRY(get_batch(l));
        *loss += pl_compute_gradient(l->computed, &l->batch, step,
                                     l->opts->order.worker * micro + m,
                                     here ? l->opts->sync : NULL);
        PL_TRY(combine(l, m));
        pl_loop_spent(l, PL_LOOP_COMPUTE);
    }
    *loss /= micro;
    PL_TRY(check_loss(l, *loss, step));
    if (here)
        return PL_OK;
    if (l->ahead != NULL) {
        PL_TRY(pl_loop_next_ahead(l));
        pl_loop_spent(l, PL_LOOP_INPUT);
    }
    PL_TRY(ready_all(l));
    pl_loop_spent(l, PL_LOOP_SEND);
    return PL_OK;
}

/* Examples of the last gradient: fewer if an epoch ends within a batch. */
static int64_t step_examples(const pl_loop *l)
{
    return l->opts->order.keep_rest ? l->batch.rows : l->grad_examples;
}

static void record_step(pl_loop *l, double loss, int64_t behind)
{
    const pl_progress *progress = &l->result->progress;
    pl_recorder_put(&l->recorder, &(pl_recorder_step) {
                                      .step = progress->step,
                                      .examples = progress->examples,
                                      .own = l->course.own,
                                      .own_examples = l->result->own_examples,
                                      .dropped = l->result->dropped,
                                      .behind = behind,
                                      .loss = loss,
                                      .loss_examples = step_examples(l),
                                      .now = l->mark,
                                      .waited = l->phase_ticks[PL_LOOP_WAIT],
                                  });
    pl_loop_watch(l, loss);
}

/* Count this worker's own time, without waiting. */
static void count_own(pl_loop *l)
{
    uint64_t own = l->phase_ticks[PL_LOOP_INPUT] +
                   l->phase_ticks[PL_LOOP_COMPUTE] +
                   l->phase_ticks[PL_LOOP_SEND];
    float seconds = (float)pl_loop_seconds(own - l->own_ticks);
    pl_histogram_add(&l->own_steps, &seconds, 1);
    l->own_ticks = own;
}

/* Enable the trace for this step, or disable it. */
static void switch_trace(const pl_loop *l)
{
    const pl_loop_opts *opts = l->opts;
    int64_t step = l->result->progress.step + 1;
    if (opts->trace != NULL)
        pl_trace_switch(opts->trace,
                        step >= opts->trace_first && step <= opts->trace_last);
}

/* A commit waits for other tasks, then may make the update locally. */
static void spent_commit(pl_loop *l, int64_t step, const pl_commit *committed)
{
    uint64_t now = pl_ticks_now(), all = now - l->mark;
    bool local = l->opts->sync->ops->local != NULL;
    uint64_t own =
        local || committed->own_ticks > all ? all : committed->own_ticks;
    if (own < all)
        pl_loop_spent_until(l, PL_LOOP_WAIT, now - own);
    if (own == 0)
        return;
    pl_trace_span(l->opts->trace, 0, "apply", step, l->mark, now);
    pl_loop_spent_until(l, PL_LOOP_COMPUTE, now);
}

pl_status pl_loop_step(pl_loop *l)
{
    const pl_loop_opts *opts = l->opts;
    pl_progress *progress = &l->result->progress;
    switch_trace(l);
    if (l->ahead != NULL)
        PL_TRY(pl_loop_take_ahead(l));
    if (pl_course_is_over(&l->course))
        return PL_OK; /* an earlier incarnation had pushed the last step */
    int64_t step = progress->step + 1;
    l->result->held_seconds += l->held;
    l->held = 0;
    if (opts->sync->ops->save_follows != NULL &&
        pl_course_save_follows(&l->course))
        opts->sync->ops->save_follows(opts->sync);
    double loss;
    pl_commit committed;
    PL_TRY(l->stream ? stream_step(l, step, &loss)
                     : whole_step(l, step, &loss));
    PL_TRY(opts->sync->ops->commit(opts->sync, &committed));
    spent_commit(l, step, &committed);
    count_own(l);
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
