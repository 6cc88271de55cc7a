/* Decides which layers may be sent as factors, and up to which link speed that
 * is faster, from the bytes sent and the time that the products take on a
 * typical core. */
#include "train/factors.h"

#include "base/mem.h"

#define LINE 16 /* floats of a cache line */
/* Of one core, estimated: large products and sums of large blocks. */
#define PRODUCT_FLOPS 5e10
#define MEMORY_BYTES  8e9

pl_link_class pl_link_class_of(double bytes_per_second)
{
    /* Boundaries are the geometric means of the classes' rates. */
    if (!(bytes_per_second > 0) || bytes_per_second > 2.5e9)
        return PL_LINK_FAST;
    if (bytes_per_second > 4e8)
        return PL_LINK_10G;
    return bytes_per_second > 4e7 ? PL_LINK_1G : PL_LINK_SLOW;
}

static double rate(pl_link_class link)
{
    return link == PL_LINK_10G ? 1.25e9 : link == PL_LINK_1G ? 1.25e8 : 1.25e7;
}

int64_t pl_factors_bytes(const pl_factor_layer *layer, int64_t rows,
                         int32_t workers)
{
    int64_t floats = rows * (layer->sizes.outputs + layer->sizes.inputs);
    return (workers - 1) * floats * (int64_t)sizeof(float);
}

int64_t pl_factors_plain_bytes(const pl_factor_layer *layer, int32_t workers)
{
    int64_t floats = layer->sizes.outputs * layer->sizes.inputs;
    return 2 * (workers - 1) * floats / workers * (int64_t)sizeof(float);
}

double pl_factors_seconds(const pl_factor_layer *layer, int64_t rows,
                          int32_t workers)
{
    double floats = (double)layer->sizes.outputs * (double)layer->sizes.inputs;
    double one = 2 * (double)rows * floats / PRODUCT_FLOPS +
                 3 * sizeof(float) * floats / MEMORY_BYTES;
    return (workers - 1) * one;
}

bool pl_factors_pay(const pl_factor_layer *layer, int64_t rows, int32_t workers,
                    pl_link_class link)
{
    int64_t saved = pl_factors_plain_bytes(layer, workers) -
                    pl_factors_bytes(layer, rows, workers);
    if (link == PL_LINK_UNKNOWN || link == PL_LINK_FAST || saved <= 0)
        return false;
    return link == PL_LINK_BYTES ||
           (double)saved / rate(link) >
               pl_factors_seconds(layer, rows, workers);
}

/* All layers for which factors pay if only bytes count. */
static void find_layers(pl_factors *self, const pl_network *network,
                        int32_t workers)
{
    for (int p = 0; p < pl_params_count(network->params); p++) {
        pl_factor_layer layer = { .param = p };
        if (pl_plan_factors(network->diff[p], &layer.sizes) &&
            pl_factors_pay(&layer, self->rows, workers, PL_LINK_BYTES))
            self->layers[self->count++] = layer;
    }
}

static int64_t whole_lines(int64_t floats)
{
    return (floats + LINE - 1) / LINE * LINE;
}

pl_status pl_factors_new(pl_factors **out, const pl_network *network,
                         int64_t rows, int32_t workers)
{
    pl_factors *self;
    *out = NULL;
    if (network->sparse || workers < 2)
        return PL_OK;
    PL_TRY(PL_NEW(self, 1));
    pl_status status;
    self->rows = rows;
    PL_TRY_OUT(status,
               PL_NEW(self->layers, (size_t)pl_params_count(network->params)));
    find_layers(self, network, workers);
    if (self->count == 0)
        goto out;
    self->floats = whole_lines(1 + self->count);
    for (int i = 0; i < self->count; i++) {
        pl_factor_layer *layer = &self->layers[i];
        layer->first = self->floats;
        self->floats +=
            whole_lines(rows * (layer->sizes.outputs + layer->sizes.inputs));
    }
    PL_TRY_OUT(status, PL_NEW_ALIGNED(self->own, (size_t)self->floats));
    *out = self;
    return PL_OK;
out:
    pl_factors_free(self);
    return status;
}

void pl_factors_free(pl_factors *factors)
{
    if (factors == NULL)
        return;
    pl_mem_free(factors->layers);
    pl_mem_free(factors->own);
    pl_mem_free(factors);
}
