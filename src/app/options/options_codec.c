/* What --codec means for a strategy, and where it has no effect and is
 * refused.  auto is never refused: without a choice it is plain. */
#include "app/options/options.h"
#include "sync/allreduce/held.h"
#include "sync/codec.h"

static const char *const names[] = {
    [PL_TRAIN_CODEC_AUTO] = "auto",       [PL_TRAIN_CODEC_PLAIN] = "plain",
    [PL_TRAIN_CODEC_FACTORS] = "factors", [PL_TRAIN_CODEC_BF16] = "bf16",
    [PL_TRAIN_CODEC_TOPK] = "topk",
};

const pl_codec *pl_options_codec(const pl_train_options *train,
                                 pl_codec_topk *topk)
{
    switch (train->codec) {
    case PL_TRAIN_CODEC_BF16:
        return &pl_codec_bf16;
    case PL_TRAIN_CODEC_TOPK:
        *topk = pl_codec_topk_of(train->topk_share);
        return &topk->base;
    default:
        return &pl_codec_plain;
    }
}

double pl_options_own_momentum(const pl_train_options *train)
{
    bool own = train->codec == PL_TRAIN_CODEC_TOPK &&
               train->strategy == PL_TRAIN_STRATEGY_ALLREDUCE &&
               train->optimizer == PL_OPTIM_MOMENTUM;
    return own ? train->momentum : 0;
}

bool pl_options_bf16(const pl_train_options *train)
{
    return train->precision == PL_TRAIN_PRECISION_BF16;
}

bool pl_options_codec_needs_ring(const pl_train_options *train)
{
    return train->codec != PL_TRAIN_CODEC_AUTO &&
           train->codec != PL_TRAIN_CODEC_PLAIN;
}

bool pl_options_may_use_bf16(const pl_options *options)
{
    const pl_train_options *train = &options->train;
    bool exact = train->codec == PL_TRAIN_CODEC_AUTO ||
                 train->codec == PL_TRAIN_CODEC_PLAIN;
    bool ring = train->strategy == PL_TRAIN_STRATEGY_ALLREDUCE &&
                train->engine == PL_TRAIN_ENGINE_RING &&
                train->local_steps <= 1;
    return exact && !options->model->sparse &&
           (ring || train->strategy == PL_TRAIN_STRATEGY_PS);
}

static pl_status refuse(const pl_train_options *train, const char *why)
{
    return PL_FAIL(PL_USAGE, "--codec %s: %s", names[train->codec], why);
}

static pl_status check_factors(const pl_train_options *train)
{
    if (train->strategy == PL_TRAIN_STRATEGY_PS)
        return refuse(train, "parameter servers add gradients, not factors; "
                             "leave it out, or train without --ps");
    if (pl_options_bf16(train))
        return refuse(train, "factors are multiplied in float32; leave it "
                             "out, or --precision bf16");
    if (train->micro_batches > 1)
        return refuse(train, "with --micro-batches a gradient is the mean of "
                             "several products; leave out one of them");
    return PL_OK;
}

static pl_status check_topk(const pl_train_options *train)
{
    if (train->strategy == PL_TRAIN_STRATEGY_PS)
        return PL_OK;
    if (train->workers > PL_HELD_WORKERS_MOST)
        return refuse(train, "is for at most 64 workers, since a checkpoint "
                             "stores the residual of each of them");
    if (train->nesterov)
        return refuse(train, "each worker keeps a momentum of its own, which "
                             "cannot look ahead; leave out --nesterov");
    return PL_OK;
}

pl_status pl_options_check_codec(const pl_options *options)
{
    const pl_train_options *train = &options->train;
    if (!pl_options_codec_needs_ring(train) ||
        train->strategy == PL_TRAIN_STRATEGY_SINGLE)
        return PL_OK;
    if (options->model->sparse)
        return refuse(train, "gradients of a sparse model are sent key by "
                             "key, as float32; leave it out");
    if (train->strategy == PL_TRAIN_STRATEGY_ALLREDUCE &&
        train->engine == PL_TRAIN_ENGINE_MPI)
        return refuse(train, "MPI adds float32; add --engine ring");
    if (train->local_steps > 1)
        return refuse(train, "with --local-steps no gradient is sent; leave "
                             "out one of them");
    return train->codec == PL_TRAIN_CODEC_FACTORS ? check_factors(train)
           : train->codec == PL_TRAIN_CODEC_TOPK  ? check_topk(train)
                                                  : PL_OK;
}
