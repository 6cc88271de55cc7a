/* What steps of models with keyed parameters need besides: the weights at a
 * batch's keys, batches read ahead, and sums of sparse gradients. */
#include "train/loop/loop_priv.h"

bool pl_loop_elsewhere(const pl_loop_opts *opts)
{
    return opts->sync->ops->keyed != NULL;
}

bool pl_loop_reads_ahead(const pl_loop_opts *opts)
{
    if (pl_loop_elsewhere(opts))
        return true;
    bool in_memory = opts->train->ops->reader_new == NULL;
    if (opts->sync->ops->local == NULL)
        return false; /* all parameters are exchanged between steps */
    return opts->network->sparse && in_memory && opts->hogwild == NULL &&
           opts->order.micro_batches <= 1 && pl_pool_threads(opts->pool) > 1;
}

pl_status pl_loop_check_sparse(const pl_loop_opts *opts)
{
    bool micro = opts->order.micro_batches > 1;
    if (!opts->network->sparse)
        return PL_OK;
    if (opts->clip > 0)
        return PL_FAIL(PL_UNSUPPORTED, "a sparse model does not clip "
                                       "gradients: leave out --clip");
    if (micro && opts->hogwild != NULL)
        return PL_FAIL(PL_UNSUPPORTED, "--hogwild has no batches: leave out "
                                       "--micro-batches");
    if (micro && pl_loop_elsewhere(opts))
        return PL_FAIL(PL_UNSUPPORTED,
                       "a sparse model with parameter servers has no "
                       "micro-batches: give a larger --batch");
    return PL_OK;
}

pl_status pl_loop_need_keys(pl_loop *l)
{
    pl_sync *sync = l->opts->sync;
    int count = pl_params_count(l->opts->network->params);
    PL_TRY(pl_compute_prepare(l->compute, &l->batch));
    if (pl_trace_on(l->opts->trace))
        pl_trace_span(l->opts->trace, 0, "find", l->result->progress.step + 1,
                      l->mark, pl_ticks_now());
    pl_loop_spent(l, PL_LOOP_COMPUTE);
    for (int p = 0; p < count; p++) {
        const pl_keys *keys;
        pl_compute_grad(l->compute, p, &keys);
        PL_TRY(sync->ops->need(sync, p, keys));
    }
    pl_loop_spent(l, PL_LOOP_WAIT);
    return PL_OK;
}

pl_status pl_loop_align_ahead(pl_loop *l)
{
    int64_t step = l->result->progress.step;
    if (l->opts->own_pace || l->next_read == step)
        return PL_OK;
    PL_TRY(pl_ahead_skip(l->ahead));
    l->next_read = step;
    pl_loop_go(l, step);
    return PL_OK;
}

/* If the weights are remote, the job may be a step further when they arrive,
 * because an earlier incarnation had already pushed its gradient for the step.
 * Then another batch is needed. */
static pl_status begin_current(pl_loop *l, pl_ahead_batch *at)
{
    for (;;) {
        PL_TRY(pl_loop_deal_step(l, l->result->progress.step));
        PL_TRY(pl_loop_align_ahead(l));
        PL_TRY(pl_ahead_begin(l->ahead, l->result->progress.step + 1, at));
        if (l->opts->own_pace || !pl_loop_elsewhere(l->opts) ||
            at->step == l->result->progress.step)
            return PL_OK;
        pl_loop_arrive(l, at->step);
    }
}

pl_status pl_loop_take_ahead(pl_loop *l)
{
    pl_ahead_batch at;
    PL_TRY(begin_current(l, &at));
    pl_loop_spent(l,
                  pl_loop_elsewhere(l->opts) ? PL_LOOP_WAIT : PL_LOOP_COMPUTE);
    l->computed = at.compute;
    l->batch = *at.batch;
    return PL_OK;
}

pl_status pl_loop_next_ahead(pl_loop *l)
{
    if (pl_loop_elsewhere(l->opts))
        PL_TRY(pl_loop_deal_step(l, l->result->progress.step + 1));
    return pl_ahead_next(l->ahead);
}

bool pl_loop_sums(const pl_loop *l)
{
    return l->opts->network->sparse && l->micro_batches > 1;
}

pl_status pl_loop_sum_put(pl_loop *l, int32_t micro_batch)
{
    const pl_network *network = l->opts->network;
    const pl_keys *keys;
    float bias = *pl_compute_grad(l->computed, network->bias, &keys);
    const float *grad = pl_compute_grad(l->computed, network->table, &keys);
    if (micro_batch == 0)
        pl_sparse_sum_clear(&l->sum);
    l->bias_sum = micro_batch == 0 ? bias : l->bias_sum + bias;
    PL_TRY(pl_sparse_sum_put(&l->sum, keys, grad));
    if (micro_batch < l->micro_batches - 1 ||
        l->opts->aggregate != PL_AGGREGATE_MEAN)
        return PL_OK;
    float factor = 1.0f / (float)l->micro_batches;
    pl_sparse_sum_scale(&l->sum, factor);
    l->bias_sum *= factor;
    return PL_OK;
}

const float *pl_loop_sum(const pl_loop *l, int param, const pl_keys **keys)
{
    bool table = param == l->opts->network->table;
    *keys = table ? &l->sum.keys : NULL;
    return table ? l->sum.values : &l->bias_sum;
}
