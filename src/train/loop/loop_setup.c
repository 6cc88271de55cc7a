/* Builds a loop from its options: which examples count for an update, when the
 * run ends, which objects compute and score, and what is recorded. */
#include "train/loop/loop_priv.h"

#include "base/assert.h"
#include "base/mem.h"

#include <math.h>

/* Continue where the run was.  With a different number of workers the order
 * differs: skip about as many examples as were read. */
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

/* Set the examples, gradients and updates per epoch. */
static void set_pace(pl_loop *l)
{
    const pl_loop_opts *opts = l->opts;
    int32_t workers = at_least_one(opts->order.workers);
    int32_t replicas = opts->replicas > 0 ? opts->replicas : workers;
    int64_t per_epoch = pl_loop_steps_per_epoch(l);
    l->micro_batches = at_least_one(opts->order.micro_batches);
    l->grad_examples = opts->order.batch * l->micro_batches;
    l->update_examples = l->grad_examples * (opts->own_pace ? 1 : replicas);
    l->epoch_updates =
        per_epoch > 0 ? per_epoch * (opts->own_pace ? workers : 1) : 0;
}

/* Set how the run ends, and what is due during it. */
static void open_course(pl_loop *l)
{
    const pl_loop_opts *opts = l->opts;
    const pl_sync_ops *sync = opts->sync->ops;
    const pl_progress *start = &opts->start;
    int64_t per_epoch = pl_loop_steps_per_epoch(l);
    pl_course_opts course = {
        .worker = opts->order.worker,
        .follower = opts->follower,
        .own_pace = opts->own_pace,
        .shares = opts->own_pace && sync->data != NULL &&
                  opts->order.workers > 1 && per_epoch > 0 &&
                  !opts->train->local,
        .tests = opts->test != NULL,
        .foretells = sync->save_follows != NULL,
        .by_steps = opts->steps > 0,
        .end_step = INT64_MAX,
        .end_own = INT64_MAX,
        .per_epoch = per_epoch,
        .eval_every = opts->eval_every,
        .save_every = opts->save_every,
        .histograms_every = opts->histograms_every,
        .pace = { l->update_examples, l->epoch_updates },
        .targets = opts->targets,
        .kept_loss = opts->kept_loss > 0 ? opts->kept_loss : INFINITY,
        .best_loss = start->best_loss,
        .worse = start->worse,
    };
    if (opts->steps > 0)
        course.end_step = opts->own_pace ? INT64_MAX : opts->steps;
    else if (opts->own_pace)
        course.end_own = opts->epochs * per_epoch;
    else
        course.end_step = opts->epochs * per_epoch;
    pl_course_init(&l->course, &course, opts->start.step);
}

/* Create the objects that compute gradients and scores and combine
 * micro-batches. */
static pl_status open_compute(pl_loop *l)
{
    const pl_loop_opts *opts = l->opts;
    pl_sync *sync = opts->sync;
    int32_t micro = l->micro_batches;
    bool sparse = opts->network->sparse;
    bool combine = !sparse && (micro > 1 || opts->clip > 0);
    PL_TRY(pl_loop_check_sparse(opts));
    float *diff =
        sync->ops->gradient != NULL ? sync->ops->gradient(sync) : NULL;
    if (sync->ops->factors != NULL)
        l->factors = sync->ops->factors(sync);
    PL_ASSERT(l->factors == NULL || micro == 1);
    pl_compute_opts compute = {
        .network = opts->network,
        .batch = opts->order.batch,
        .pool = opts->pool,
        .kernels = opts->kernels,
        .bf16 = opts->bf16,
        .trace = opts->trace,
        .diff = combine ? NULL : diff,
        .sum = opts->batch_reduction == PL_AGGREGATE_SUM,
        .seed = opts->order.seed,
        .hogwild = opts->hogwild,
        .elsewhere = pl_loop_elsewhere(opts),
        .any_key_order = !pl_loop_elsewhere(opts) && micro == 1,
        .sync = sync,
        .factors = l->factors,
    };
    if (pl_loop_reads_ahead(opts))
        PL_TRY(pl_ahead_new(&l->ahead, &compute, l->reader, sync));
    PL_TRY(pl_compute_new(&l->compute, &compute));
    l->computed = l->compute;
    if (opts->test != NULL) {
        compute.forward = true;
        compute.factors = NULL;
        compute.trace = NULL;
        compute.beside = l->compute;
        compute.beside_batch = opts->order.batch;
        compute.batch = pl_loop_eval_batch(opts->test, opts->eval_batch);
        PL_TRY(pl_compute_new(&l->scorer, &compute));
    }
    l->stream = !combine && !sparse && sync->ops->local == NULL &&
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

/* The gradient of the last step, for the recorder. */
static const float *last_gradient(void *context, int param, int64_t *count)
{
    const pl_loop *l = context;
    const pl_keys *keys;
    const float *grad = pl_loop_gradient(l, param, &keys);
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

/* Not available for remote parameters. */
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
                          .epoch_steps = pl_loop_steps_per_epoch(l),
                          .every = opts->record_every,
                          .pace = { l->update_examples, l->epoch_updates },
                          .start_step = opts->start.step,
                          .gradient = has_gradient(opts) ? last_gradient : NULL,
                          .accuracy = last_accuracy,
                          .context = l,
                      });
}

pl_status pl_loop_open(pl_loop *l)
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

void pl_loop_close(pl_loop *l)
{
    pl_reader_free(l->other);
    pl_reader_free(l->reader);
    pl_compute_free(l->scorer); /* shares the other's memory */
    pl_compute_free(l->compute);
    pl_aggregator_free(l->aggregator);
    pl_ahead_free(l->ahead);
    pl_sparse_sum_close(&l->sum);
    pl_mem_free(l->done);
}
