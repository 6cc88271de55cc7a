/* What --codec means for a strategy, and where it has no effect and is
 * refused.  auto is never refused: where there is no choice it is plain. */
#include "app/options/options.h"
#include "sync/codec.h"

const pl_codec *pl_options_codec(const pl_train_options *train)
{
    return train->codec == PL_TRAIN_CODEC_BF16 ? &pl_codec_bf16
                                               : &pl_codec_plain;
}

bool pl_options_bf16(const pl_train_options *train)
{
    return train->precision == PL_TRAIN_PRECISION_BF16;
}

bool pl_options_codec_needs_ring(const pl_train_options *train)
{
    return train->codec == PL_TRAIN_CODEC_BF16 ||
           train->codec == PL_TRAIN_CODEC_FACTORS;
}

static pl_status refuse(const pl_train_options *train, const char *why)
{
    return PL_FAIL(PL_USAGE, "--codec %s: %s",
                   train->codec == PL_TRAIN_CODEC_BF16 ? "bf16" : "factors",
                   why);
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

pl_status pl_options_check_codec(const pl_options *options)
{
    const pl_train_options *train = &options->train;
    if (!pl_options_codec_needs_ring(train) ||
        train->strategy == PL_TRAIN_STRATEGY_SINGLE)
        return PL_OK;
    if (options->model->sparse)
        return refuse(train, "gradients of a sparse model travel key by key, "
                             "as float32; leave it out");
    if (train->strategy == PL_TRAIN_STRATEGY_ALLREDUCE &&
        train->engine == PL_TRAIN_ENGINE_MPI)
        return refuse(train, "MPI adds float32; add --engine ring");
    if (train->local_steps > 1)
        return refuse(train, "with --local-steps no gradient is sent; leave "
                             "out one of them");
    return train->codec == PL_TRAIN_CODEC_FACTORS ? check_factors(train)
                                                  : PL_OK;
}
