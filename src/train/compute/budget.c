/* Adds up the memory that a training will need and searches for the largest
 * batch that fits. */
#include "train/compute/budget.h"

#include "train/compute/ahead.h"

#define GROUP 16 /* rows in the widest vectors */

pl_status pl_budget_make(pl_budget *out, const pl_budget_opts *opts)
{
    int64_t block =
        pl_params_block_count(opts->network->params) * (int64_t)sizeof(float);
    pl_budget budget = {
        .params = block,
        .optimizer = opts->slots * block,
        .checkpoint =
            opts->saves ? pl_frozen_pool((1 + opts->slots) * block) : 0,
        .data = opts->data_bytes,
        .addresses = opts->address_bytes,
    };
    if (opts->elsewhere)
        budget.params = budget.optimizer = budget.checkpoint = 0;
    static const pl_hogwild_opts hogwild;
    pl_compute_opts compute = {
        .network = opts->network,
        .batch = opts->batch,
        .kernels = opts->kernels,
        .bf16 = opts->bf16,
        .threads = opts->threads > 0 ? opts->threads : 1,
        .hogwild = opts->hogwild ? &hogwild : NULL,
        .elsewhere = opts->elsewhere,
    };
    pl_compute_size work, tests;
    PL_TRY(pl_compute_memory(&compute, &work));
    budget.work = work.bytes;
    bool ahead = opts->elsewhere || (!opts->streams && !opts->aggregates);
    if (opts->network->sparse && !opts->hogwild && ahead)
        budget.work *=
            pl_ahead_batches(opts->elsewhere, opts->batch, compute.threads);
    if (opts->aggregates)
        budget.work += block;
    if (opts->eval_batch > 0) {
        compute.batch = opts->eval_batch;
        compute.forward = true;
        compute.beside_batch = opts->batch;
        PL_TRY(pl_compute_memory(&compute, &tests));
        bool shared = tests.large && tests.arena <= work.arena;
        budget.evaluation = shared ? 0 : tests.bytes;
    }
    budget.total = budget.params + budget.optimizer + budget.work +
                   budget.evaluation + budget.checkpoint + budget.data +
                   budget.addresses;
    *out = budget;
    return PL_OK;
}

static pl_status fits(const pl_budget_opts *opts, int64_t batch, int64_t bytes,
                      bool *out)
{
    pl_budget_opts other = *opts;
    pl_budget budget;
    other.batch = batch;
    PL_TRY(pl_budget_make(&budget, &other));
    *out = budget.total <= bytes;
    return PL_OK;
}

/* A batch of whole vectors can need less memory than a slightly smaller one, so
 * whole vectors are searched first, then the sizes between two of them. */
pl_status pl_budget_largest(const pl_budget_opts *opts, int64_t bytes,
                            int64_t *batch)
{
    /* `low` groups fit (or low is 0), `high` do not. */
    int64_t low = 0, high = opts->batch / GROUP + 1;
    bool fit = false;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        PL_TRY(fits(opts, middle * GROUP, bytes, &fit));
        if (fit)
            low = middle;
        else
            high = middle;
    }
    *batch = high * GROUP - 1;
    if (*batch > opts->batch)
        *batch = opts->batch;
    for (; *batch > low * GROUP; --*batch) {
        PL_TRY(fits(opts, *batch, bytes, &fit));
        if (fit)
            break;
    }
    return PL_OK;
}
