/* Decides which gradients may travel as factors, and how layers are chosen;
 * counts the bytes that a codec saves, layer by layer. */
#include "app/train/coding.h"

#include "app/view/layout.h"
#include "base/mem.h"
#include "net/address.h"
#include "train/optim/optim.h"

#include <stdio.h>
#include <string.h>

/* Each worker keeps the factors of all workers. */
#define WORKERS_MOST 64

/* The gradient must be that of one batch, not the mean of several, nor the
 * result of local steps; and the other workers multiply factors in float32. */
static bool may_be_factors(const pl_train_options *train, int32_t workers)
{
    return !pl_options_bf16(train) && train->micro_batches <= 1 &&
           train->local_steps <= 1 && workers <= WORKERS_MOST;
}

pl_status pl_coding_factors(pl_factors **factors, const pl_options *options,
                            const pl_network *network, int32_t workers)
{
    const pl_train_options *train = &options->train;
    bool wanted = train->codec == PL_TRAIN_CODEC_AUTO ||
                  train->codec == PL_TRAIN_CODEC_FACTORS;
    *factors = NULL;
    if (!wanted || !may_be_factors(train, workers))
        return PL_OK;
    return pl_factors_new(factors, network, train->batch, workers);
}

/* If a codec sends only a part of the gradient, the rest is state. */
pl_status pl_coding_held(pl_held **held, const pl_options *options,
                         const pl_network *network, int32_t workers, bool chief)
{
    const pl_train_options *train = &options->train;
    if (train->codec != PL_TRAIN_CODEC_TOPK ||
        train->strategy == PL_TRAIN_STRATEGY_SINGLE)
        return PL_OK;
    if (network->average_rate > 0)
        return PL_FAIL(PL_USAGE,
                       "--codec topk: %s keeps running averages, which would "
                       "decay to 0 where nothing is sent; try bf16",
                       options->model->name);
    if (train->strategy != PL_TRAIN_STRATEGY_ALLREDUCE)
        return PL_OK;
    return pl_held_new(held, workers, pl_params_block_count(network->params),
                       pl_options_own_momentum(train), chief);
}

pl_coding pl_coding_of(const pl_allreduce_sync *sync, pl_factors *factors,
                       double seconds)
{
    if (sync == NULL)
        return (pl_coding) { .seconds = seconds };
    pl_allreduce_sync_view view = pl_allreduce_sync_look(sync);
    return (pl_coding) {
        .factors = view.factors ? factors : NULL,
        .chosen = view.chosen,
        .seconds = view.coding_seconds,
    };
}

static bool all_on_loopback(const pl_cluster *cluster)
{
    for (int32_t w = 0; w < cluster->workers; w++) {
        pl_address address;
        if (pl_address_split(&address, cluster->worker_address[w]) != PL_OK ||
            pl_address_resolve(&address) != PL_OK ||
            !pl_address_is_loopback(&address))
            return false;
    }
    return true;
}

/* Within one host, memory is faster than computing products. */
pl_link_class pl_coding_link(const pl_train_options *train,
                             const pl_cluster *cluster, int64_t kept)
{
    if (train->codec == PL_TRAIN_CODEC_FACTORS)
        return PL_LINK_BYTES;
    if (kept > 0)
        return (pl_link_class)kept;
    return all_on_loopback(cluster) ? PL_LINK_FAST : PL_LINK_UNKNOWN;
}

/* Float32 bytes of a parameter on the busiest link, per step. */
static int64_t plain_bytes(const pl_params_item *item,
                           const pl_train_options *train, int32_t workers)
{
    int64_t bytes = item->count * (int64_t)sizeof(float);
    return train->strategy == PL_TRAIN_STRATEGY_PS
               ? bytes
               : 2 * (workers - 1) * bytes / workers;
}

static void add_row(pl_codec_use *use, const pl_params_item *item,
                    int64_t plain, int64_t sent)
{
    pl_codec_layer *row = &use->layers[use->layer_count++];
    snprintf(row->layer, sizeof row->layer, "%s", item->name);
    row->plain_bytes = plain;
    row->sent_bytes = sent;
}

static void add_factors(pl_codec_use *use, const pl_coding *coding,
                        const pl_params *params, int32_t workers)
{
    const pl_factors *factors = coding->factors;
    for (int i = 0; i < factors->count; i++)
        if (coding->chosen[i])
            add_row(
                use, pl_params_get(params, factors->layers[i].param),
                pl_factors_plain_bytes(&factors->layers[i], workers),
                pl_factors_bytes(&factors->layers[i], factors->rows, workers));
}

/* Each number sent takes two: its value and its index. */
static double part_of_topk(const pl_train_options *train)
{
    return 2 * train->topk_share < 1 ? 2 * train->topk_share : 1;
}

static void add_lossy(pl_codec_use *use, const pl_params *params,
                      const pl_train_options *train, int32_t workers)
{
    for (int p = 0; p < pl_params_count(params); p++) {
        const pl_params_item *item = pl_params_get(params, p);
        int64_t plain = plain_bytes(item, train, workers);
        add_row(use, item, plain,
                train->codec == PL_TRAIN_CODEC_BF16
                    ? plain / 2
                    : (int64_t)((double)plain * part_of_topk(train)));
    }
}

static bool by_factors(const pl_coding *coding)
{
    return coding->factors != NULL;
}

pl_status pl_coding_sum_up(pl_summary *out, const pl_coding *coding,
                           const pl_train_options *train,
                           const pl_params *params, int32_t workers)
{
    pl_codec_use *use = &out->codec;
    bool topk = train->codec == PL_TRAIN_CODEC_TOPK;
    bool lossy = train->codec == PL_TRAIN_CODEC_BF16 || topk;
    out->has_codec = workers > 1;
    if (!out->has_codec)
        return PL_OK;
    snprintf(use->name, sizeof use->name, "%s",
             topk                 ? "topk"
             : lossy              ? "bf16"
             : by_factors(coding) ? "factors"
                                  : "plain");
    use->local_steps = train->local_steps > 1 ? train->local_steps : 0;
    use->changes_bits = lossy || use->local_steps > 0;
    use->seconds = coding->seconds;
    PL_TRY(PL_NEW(use->layers, (size_t)pl_params_count(params)));
    if (lossy)
        add_lossy(use, params, train, workers);
    else if (by_factors(coding))
        add_factors(use, coding, params, workers);
    return PL_OK;
}

void pl_coding_text(const pl_codec_use *use, char *text, size_t room)
{
    char plain[16], sent[16];
    double all = 0, some = 0;
    for (size_t i = 0; i < use->layer_count; i++) {
        all += (double)use->layers[i].plain_bytes;
        some += (double)use->layers[i].sent_bytes;
    }
    pl_layout_number(all, plain);
    pl_layout_number(some, sent);
    snprintf(text, room,
             "%s: %sB instead of %sB a step and link, in %zu parameter%s%s",
             use->name, sent, plain, use->layer_count,
             use->layer_count == 1 ? "" : "s",
             use->changes_bits ? "; the result depends on it" : "");
}

/* The share of the busiest link's bytes with every layer as factors for which
 * that is smaller; the other layers are added in the order of ranks, and travel
 * twice. */
static pl_status offer_factors(pl_bottleneck_opts *out,
                               const pl_train_options *train,
                               const pl_network *network, int32_t workers)
{
    pl_factors *factors;
    double all = 0, left, sent = 0;
    PL_TRY(pl_factors_new(&factors, network, train->batch, workers));
    if (factors == NULL)
        return PL_OK;
    for (int p = 0; p < pl_params_count(network->params); p++)
        all += (double)plain_bytes(pl_params_get(network->params, p), train,
                                   workers);
    left = all;
    for (int i = 0; i < factors->count; i++) {
        const pl_factor_layer *layer = &factors->layers[i];
        left -= (double)pl_factors_plain_bytes(layer, workers);
        sent += (double)pl_factors_bytes(layer, factors->rows, workers);
        out->factors_s += pl_factors_seconds(layer, factors->rows, workers);
    }
    double n = workers, twice = n > 2 ? n / (n - 1) : 1;
    out->factors_bytes = (left * twice + sent) / all;
    pl_factors_free(factors);
    return PL_OK;
}

pl_status pl_coding_offer(pl_bottleneck_opts *out, const pl_options *options,
                          const pl_network *network, int32_t workers)
{
    const pl_train_options *train = &options->train;
    out->may_use_bf16 = pl_options_may_use_bf16(options);
    if (train->strategy != PL_TRAIN_STRATEGY_ALLREDUCE || workers < 2)
        return PL_OK;
    if (train->local_steps <= 1 && train->aggregate != PL_AGGREGATE_SUM)
        out->planes = 1 + pl_optim_list()[train->optimizer]->slot_count;
    if (!out->may_use_bf16)
        return PL_OK;
    if (workers <= PL_HELD_WORKERS_MOST && !train->nesterov &&
        !(network->average_rate > 0))
        out->topk_bytes = part_of_topk(train);
    return may_be_factors(train, workers)
               ? offer_factors(out, train, network, workers)
               : PL_OK;
}
