/* The steps of the training loop for models with keyed parameters: batches
 * read ahead, and micro-batches whose sparse gradients are summed. */
#include "train/loop/loop_priv.h"

bool pl_loop_elsewhere(const pl_loop_opts *opts)
{
    return opts->sync->ops->ask != NULL;
}

bool pl_loop_reads_ahead(const pl_loop_opts *opts)
{
    if (pl_loop_elsewhere(opts))
        return true;
    bool in_memory = opts->train->ops->reader_new == NULL;
    return opts->network->sparse && in_memory && opts->hogwild == NULL &&
           opts->order.micro_batches <= 1 && pl_pool_threads(opts->pool) > 1;
}

pl_status pl_loop_check_sparse(const pl_loop_opts *opts)
{
    bool micro = opts->order.micro_batches > 1;
    if (!opts->network->sparse)
        return PL_OK;
    if (opts->clip > 0)
        return PL_FAIL(PL_UNSUPPORTED, "a sparse model takes its gradients as "
                                       "they are: leave out --clip");
    if (micro && opts->hogwild != NULL)
        return PL_FAIL(PL_UNSUPPORTED, "--hogwild has no batches: leave out "
                                       "--micro-batches");
    if (micro && pl_loop_elsewhere(opts))
        return PL_FAIL(PL_UNSUPPORTED,
                       "a sparse model with parameter servers has no "
                       "micro-batches: give a larger --batch");
    return PL_OK;
}

pl_status pl_loop_need_keys(pl_loop *l, const pl_batch *batch)
{
    pl_sync *sync = l->opts->sync;
    int count = pl_params_count(l->opts->network->params);
    PL_TRY(pl_compute_prepare(l->compute, batch));
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
    pl_reader_go(l->reader, step);
    return PL_OK;
}

/* Where the weights are elsewhere, the job may be a step further when they
 * come: a step that a process before this one had pushed its gradient for.
 * Then the batch is another. */
static pl_status begin_current(pl_loop *l, pl_ahead_batch *at)
{
    for (;;) {
        PL_TRY(pl_loop_align_ahead(l));
        PL_TRY(pl_ahead_begin(l->ahead, at));
        if (l->opts->own_pace || !pl_loop_elsewhere(l->opts) ||
            at->step == l->result->progress.step)
            return PL_OK;
        pl_loop_arrive(l, at->step);
    }
}

pl_status pl_loop_ahead_step(pl_loop *l, int64_t step, double *loss)
{
    pl_sync *sync = l->opts->sync;
    const pl_network *network = l->opts->network;
    pl_ahead_batch at;
    const pl_keys *keys;
    PL_TRY(begin_current(l, &at));
    pl_loop_spent(l,
                  pl_loop_elsewhere(l->opts) ? PL_LOOP_WAIT : PL_LOOP_COMPUTE);
    *loss = pl_compute_gradient(at.compute, at.batch, step,
                                l->opts->order.worker, NULL);
    l->computed = at.compute;
    l->batch = *at.batch;
    pl_loop_spent(l, PL_LOOP_COMPUTE);
    PL_TRY(pl_loop_check_loss(l, *loss, step));
    PL_TRY(pl_ahead_next(l->ahead));
    pl_loop_spent(l, PL_LOOP_INPUT);
    for (int p = pl_params_count(network->params) - 1; p >= 0; p--) {
        const float *grad = pl_compute_grad(at.compute, p, &keys);
        PL_TRY(sync->ops->ready(sync, p, grad, keys));
    }
    pl_loop_spent(l, PL_LOOP_SEND);
    return PL_OK;
}

/* Hand over what the micro-batches of a sparse model add up to. */
static pl_status ready_sums(pl_loop *l)
{
    const pl_network *network = l->opts->network;
    pl_sync *sync = l->opts->sync;
    PL_TRY(sync->ops->ready(sync, network->bias, &l->bias_sum, NULL));
    return sync->ops->ready(sync, network->table, l->sum.values, &l->sum.keys);
}

pl_status pl_loop_micro_step(pl_loop *l, int64_t step, double *loss)
{
    const pl_network *network = l->opts->network;
    int32_t micro = l->opts->order.micro_batches;
    const pl_keys *keys;
    *loss = 0;
    pl_sparse_sum_clear(&l->sum);
    for (int32_t m = 0; m < micro; m++) {
        PL_TRY(pl_loop_next_batch(l));
        PL_TRY(pl_loop_need_keys(l, &l->batch));
        *loss += pl_compute_gradient(l->compute, &l->batch, step,
                                     l->opts->order.worker * micro + m, NULL);
        float bias = *pl_compute_grad(l->compute, network->bias, &keys);
        l->bias_sum = m == 0 ? bias : l->bias_sum + bias;
        const float *grad = pl_compute_grad(l->compute, network->table, &keys);
        PL_TRY(pl_sparse_sum_put(&l->sum, keys, grad));
        pl_loop_spent(l, PL_LOOP_COMPUTE);
    }
    *loss /= micro;
    if (l->opts->aggregate == PL_AGGREGATE_MEAN) {
        pl_sparse_sum_scale(&l->sum, 1.0f / (float)micro);
        l->bias_sum *= 1.0f / (float)micro;
    }
    PL_TRY(pl_loop_check_loss(l, *loss, step));
    PL_TRY(ready_sums(l));
    pl_loop_spent(l, PL_LOOP_SEND);
    return PL_OK;
}
