/* Decides which codecs a plan compares, and what they cost: factors where they
 * are faster for a layer on the planned link, as --codec auto would choose, or
 * where they have fewer bytes, as with --codec factors; bf16 and topk only on
 * request, since they change the result. */
#include "app/plan/coded.h"

#include <math.h>

const char *const pl_coded_names[PL_CODED_KINDS] = { "plain", "factors", "bf16",
                                                     "topk" };

static pl_link_class link_of(const pl_forecast_opts *opts)
{
    const pl_options *options = opts->options;
    if (PL_GIVEN(options, codec) &&
        options->train.codec == PL_TRAIN_CODEC_FACTORS)
        return PL_LINK_BYTES;
    return pl_link_class_of(opts->link_bytes_per_s);
}

/* Parameters without sizes do not belong to a dense layer. */
static bool pays(const pl_forecast_opts *opts, size_t param, int32_t workers)
{
    const pl_factor_layer *dense = &opts->work->dense[param];
    return dense->sizes.outputs > 0 &&
           pl_factors_pay(dense, opts->work->examples, workers, link_of(opts));
}

static bool any_pays(const pl_forecast_opts *opts, int32_t workers)
{
    for (size_t p = 0; opts->hosts > 1 && p < opts->work->dense_count; p++)
        if (pays(opts, p, workers))
            return true;
    return false;
}

bool pl_coded_is_wanted(const pl_forecast_opts *opts, pl_coded coded,
                        pl_step_strategy strategy, int32_t workers)
{
    const pl_options *options = opts->options;
    bool given = PL_GIVEN(options, codec);
    int codec = given ? options->train.codec : PL_TRAIN_CODEC_AUTO;
    bool lossy = strategy != PL_STEP_SINGLE && !options->model->sparse;
    bool rounds = lossy && codec == PL_TRAIN_CODEC_BF16;
    bool selects = lossy && codec == PL_TRAIN_CODEC_TOPK;
    bool apart = pl_forecast_local_steps(opts) > 1;
    bool factors =
        strategy == PL_STEP_ALLREDUCE && !apart && /* no gradient is sent */
        (codec == PL_TRAIN_CODEC_AUTO || codec == PL_TRAIN_CODEC_FACTORS) &&
        any_pays(opts, workers);
    switch (coded) {
    case PL_CODED_FACTORS:
        return factors;
    case PL_CODED_BF16:
        return rounds;
    case PL_CODED_TOPK:
        return selects;
    case PL_CODED_PLAIN:
    case PL_CODED_KINDS:
        break;
    }
    return !rounds && !selects && !(factors && codec == PL_TRAIN_CODEC_FACTORS);
}

/* The bytes that factors save on the busiest link. */
static double saved_bytes(const pl_forecast_opts *opts, size_t param,
                          int32_t workers)
{
    const pl_factor_layer *dense = &opts->work->dense[param];
    return (double)(pl_factors_plain_bytes(dense, workers) -
                    pl_factors_bytes(dense, opts->work->examples, workers));
}

static double plain_bytes(const pl_forecast_opts *opts, size_t param)
{
    const pl_factor_sizes *sizes = &opts->work->dense[param].sizes;
    return (double)sizeof(float) * (double)(sizes->outputs * sizes->inputs);
}

/* In the model of the ring, each link carries 2 (n - 1) / n of a layer's bytes.
 * For layers that are added in the order of ranks, the busiest link carries all
 * bytes twice.  Measured layers need not be parameters, so each gets its share
 * of the total. */
static double apply_factors(const pl_forecast_opts *opts, int32_t workers,
                            pl_step_layer *layers)
{
    const pl_forecast_work *work = opts->work;
    double n = workers, twice = n > 2 ? n / (n - 1) : 1;
    double all = 0, seconds = 0, rest = 0, factors = 0;
    for (size_t i = 0; i < work->step.layer_count; i++)
        all += layers[i].push_bytes;
    rest = all;
    for (size_t p = 0; p < work->dense_count; p++) {
        if (!pays(opts, p, workers))
            continue;
        double plain = plain_bytes(opts, p);
        rest -= plain;
        factors += plain - saved_bytes(opts, p, workers) * n / (2 * (n - 1));
        seconds += pl_factors_seconds(&work->dense[p], work->examples, workers);
    }
    for (size_t i = 0; i < work->step.layer_count; i++)
        layers[i].push_bytes *= (rest * twice + factors) / all;
    return seconds;
}

double pl_coded_apply(const pl_forecast_opts *opts, pl_coded coded,
                      int32_t workers, pl_step_layer *layers)
{
    if (coded == PL_CODED_FACTORS)
        return apply_factors(opts, workers, layers);
    double push = 1, pull = 1;
    if (coded == PL_CODED_BF16)
        push = pull = 0.5;
    else if (coded == PL_CODED_TOPK)
        push = fmin(1, 2 * opts->options->train.topk_share);
    for (size_t i = 0; push < 1 && i < opts->work->step.layer_count; i++) {
        layers[i].push_bytes *= push;
        layers[i].pull_bytes *= pull;
    }
    return 0;
}
