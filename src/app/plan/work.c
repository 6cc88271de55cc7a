/* work.c - the parts of a step other than times: bytes by layer, and the memory
 * of a process. */
#include "app/plan/work.h"

#include "app/train/memory.h"
#include "base/mem.h"

void pl_forecast_work_close(pl_forecast_work *work)
{
    pl_mem_free(work->layers);
    pl_mem_free(work->dense);
    *work = (pl_forecast_work) { 0 };
}

static pl_status count_memory(pl_forecast_work *work, const pl_job *job)
{
    pl_budget budget;
    pl_budget_opts opts = pl_memory_plan(&(pl_memory_opts) {
        .options = job->options,
        .network = job->network,
        .kernels = job->kernels,
        .train = job->train,
    });
    PL_TRY(pl_budget_make(&budget, &opts));
    work->worker_bytes = budget.total;
    work->optimizer_bytes = budget.optimizer;
    work->parameter_bytes = budget.params;
    return PL_OK;
}

static pl_status find_dense(pl_forecast_work *work, const pl_job *job)
{
    const pl_network *network = job->network;
    int count = pl_params_count(network->params);
    const pl_train_options *train = &job->options->train;
    if (network->sparse || train->micro_batches > 1 || pl_options_bf16(train))
        return PL_OK;
    PL_TRY(PL_NEW(work->dense, (size_t)count));
    work->dense_count = (size_t)count;
    for (int p = 0; p < count; p++) {
        pl_factor_layer *dense = &work->dense[p];
        if (!pl_plan_factors(network->diff[p], &dense->sizes))
            *dense = (pl_factor_layer) { 0 };
    }
    return PL_OK;
}

pl_status pl_forecast_work_init(pl_forecast_work *work, const pl_job *job)
{
    const pl_params *params = job->network->params;
    const pl_train_options *train = &job->options->train;
    int count = pl_params_count(params);
    *work = (pl_forecast_work) {
        .threads = (int32_t)train->threads,
        .examples = train->batch * train->micro_batches,
    };
    PL_TRY(PL_NEW(work->layers, (size_t)count));
    for (int p = 0; p < count; p++) {
        double bytes = 4.0 * (double)pl_params_get(params, p)->count;
        work->layers[p].push_bytes = work->layers[p].pull_bytes = bytes;
    }
    work->step.layers = work->layers;
    work->step.layer_count = (size_t)count;
    PL_TRY(find_dense(work, job));
    return count_memory(work, job);
}
