/* Dispatches to dense or sparse computation; the two tables are in
 * dense_compute.c and sparse_compute.c. */
#include "train/compute/compute.h"

#include "base/assert.h"
#include "train/compute/compute_priv.h"

#include <math.h>

static const pl_compute_ops *ops_for(const pl_compute_opts *opts)
{
    if (!opts->network->sparse)
        return &pl_dense_compute;
    return opts->hogwild != NULL && !opts->forward ? &pl_hogwild_compute
                                                   : &pl_sparse_compute;
}

static pl_compute_opts resolve(const pl_compute_opts *opts)
{
    pl_compute_opts complete = *opts;
    if (complete.kernels == NULL)
        complete.kernels = pl_kernels_best();
    return complete;
}

pl_status pl_compute_new(pl_compute **out, const pl_compute_opts *opts)
{
    pl_compute_opts complete = resolve(opts);
    const pl_compute_ops *ops = ops_for(opts);
    PL_TRY(ops->make(out, &complete));
    (*out)->ops = ops;
    return PL_OK;
}

void pl_compute_free(pl_compute *compute)
{
    if (compute != NULL)
        compute->ops->free(compute);
}

int pl_compute_shards(const pl_compute *compute)
{
    return compute->ops->shards != NULL ? compute->ops->shards(compute) : 1;
}

pl_status pl_compute_memory(const pl_compute_opts *opts, pl_compute_size *out)
{
    pl_compute_opts complete = resolve(opts);
    return ops_for(opts)->memory(&complete, out);
}

pl_status pl_compute_prepare(pl_compute *compute, const pl_batch *batch)
{
    if (compute->ops->prepare == NULL)
        return PL_OK;
    return compute->ops->prepare(compute, batch);
}

void pl_compute_place(pl_compute *compute, const pl_values *values)
{
    PL_ASSERT(compute->ops->place != NULL);
    compute->ops->place(compute, values);
}

double pl_compute_gradient(pl_compute *compute, const pl_batch *batch,
                           int64_t step, int64_t part, pl_sync *apply)
{
    return compute->ops->gradient(compute, batch, step, part, apply);
}

pl_status pl_compute_stream(pl_compute *compute, const pl_batch *batch,
                            int64_t step, int64_t part, pl_exec_hooks *hooks,
                            double *loss)
{
    PL_ASSERT(compute->ops->stream != NULL);
    return compute->ops->stream(compute, batch, step, part, hooks, loss);
}

pl_status pl_compute_check(const pl_compute *compute)
{
    return compute->ops->check != NULL ? compute->ops->check(compute) : PL_OK;
}

pl_status pl_compute_beyond(uint64_t id, int64_t features)
{
    return PL_FAIL(PL_FORMAT,
                   "an example has the feature %llu, but the table has %lld; "
                   "give a larger --features",
                   (unsigned long long)id, (long long)features);
}

const float *pl_compute_grad(const pl_compute *compute, int param,
                             const pl_keys **keys)
{
    return compute->ops->grad(compute, param, keys);
}

pl_params *pl_compute_diff(const pl_compute *compute)
{
    PL_ASSERT(compute->ops->diff != NULL);
    return compute->ops->diff(compute);
}

pl_score pl_compute_score(pl_compute *compute, const pl_batch *batch)
{
    return compute->ops->score(compute, batch);
}

double pl_compute_accuracy(const pl_compute *compute, const pl_batch *batch)
{
    return compute->ops->accuracy != NULL
               ? compute->ops->accuracy(compute, batch)
               : NAN;
}

const float *pl_compute_logits(const pl_compute *compute, int64_t *rows)
{
    PL_ASSERT(compute->ops->logits != NULL);
    return compute->ops->logits(compute, rows);
}

int64_t pl_compute_keep_answers(pl_compute *compute, bool keep)
{
    return compute->ops->keep_answers != NULL
               ? compute->ops->keep_answers(compute, keep)
               : 0;
}

const pl_answer *pl_compute_answers(const pl_compute *compute)
{
    return compute->ops->answers != NULL ? compute->ops->answers(compute)
                                         : NULL;
}

const float *pl_compute_outputs(const pl_compute *compute)
{
    return compute->ops->outputs != NULL ? compute->ops->outputs(compute)
                                         : NULL;
}

const float *pl_compute_probs(const pl_compute *compute)
{
    return compute->ops->probs != NULL ? compute->ops->probs(compute) : NULL;
}
