/* Decides what may travel as factors, and by what layers are chosen; counts the
 * bytes that a codec saves, layer by layer. */
#include "app/train/coding.h"

#include "app/view/layout.h"
#include "base/mem.h"
#include "net/address.h"

#include <stdio.h>
#include <string.h>

/* Each worker keeps the factors of all. */
#define WORKERS_MOST 64

/* The gradient must be that of one batch, not the mean of several, nor a step
 * of this worker alone; and others multiply factors in float32. */
pl_status pl_coding_factors(pl_factors **factors, const pl_options *options,
                            const pl_network *network, int32_t workers)
{
    const pl_train_options *train = &options->train;
    bool wanted = train->codec == PL_TRAIN_CODEC_AUTO ||
                  train->codec == PL_TRAIN_CODEC_FACTORS;
    *factors = NULL;
    if (!wanted || pl_options_bf16(train) || train->micro_batches > 1 ||
        train->local_steps > 1 || workers > WORKERS_MOST)
        return PL_OK;
    return pl_factors_new(factors, network, train->batch, workers);
}

static bool all_on_loopback(const pl_cluster *cluster)
{
    for (int32_t w = 0; w < cluster->workers; w++) {
        pl_address address;
        if (pl_address_split(&address, cluster->worker_address[w]) != PL_OK ||
            !pl_address_is_loopback(&address))
            return false;
    }
    return true;
}

/* Between processes of one host memory is faster than any product. */
pl_link_class pl_coding_link(const pl_train_options *train,
                             const pl_cluster *cluster, int64_t kept)
{
    if (train->codec == PL_TRAIN_CODEC_FACTORS)
        return PL_LINK_BYTES;
    if (kept > 0)
        return (pl_link_class)kept;
    return all_on_loopback(cluster) ? PL_LINK_FAST : PL_LINK_UNKNOWN;
}

/* What the busiest link of a step carries of a parameter, in float32. */
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

static void add_rounded(pl_codec_use *use, const pl_params *params,
                        const pl_train_options *train, int32_t workers)
{
    for (int p = 0; p < pl_params_count(params); p++) {
        const pl_params_item *item = pl_params_get(params, p);
        int64_t plain = plain_bytes(item, train, workers);
        add_row(use, item, plain, plain / 2);
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
    bool rounded = train->codec == PL_TRAIN_CODEC_BF16;
    out->has_codec = workers > 1;
    if (!out->has_codec)
        return PL_OK;
    snprintf(use->name, sizeof use->name, "%s",
             rounded              ? "bf16"
             : by_factors(coding) ? "factors"
                                  : "plain");
    use->changes_bits = rounded;
    use->seconds = coding->seconds;
    PL_TRY(PL_NEW(use->layers, (size_t)pl_params_count(params)));
    if (rounded)
        add_rounded(use, params, train, workers);
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
