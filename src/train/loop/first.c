/* Describes initial values as JSON and fills any range of them, so that a
 * server initializes its part of a huge table itself and nothing is sent. */
#include "train/loop/first.h"

#include "base/assert.h"
#include "nn/init.h"
#include "tensor/shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_MOST (INT64_MAX / 8)

static pl_status describe_tensor(pl_json **out, const pl_params_item *item,
                                 const char *init)
{
    pl_json *tensor;
    pl_status status;
    PL_ASSERT(item->shape.rank == 1);
    PL_TRY(pl_json_new_object(&tensor));
    PL_TRY_OUT(status, pl_json_set_text(tensor, "name", item->name));
    PL_TRY_OUT(status, pl_json_set_int(tensor, "first", item->offset));
    PL_TRY_OUT(status, pl_json_set_int(tensor, "count", item->count));
    PL_TRY_OUT(status, pl_json_set_text(tensor, "init", init));
    *out = tensor;
    return PL_OK;
out:
    pl_json_free(tensor);
    return status;
}

static pl_status describe_all(pl_json *tensors, const pl_network *network)
{
    int index = 0;
    const pl_node *node = NULL;
    while ((node = pl_graph_next_param(network->graph, node)) != NULL) {
        pl_json *tensor;
        PL_TRY(describe_tensor(&tensor, pl_params_get(network->params, index),
                               node->init != NULL ? node->init : "zeros"));
        PL_TRY(pl_json_append_take(tensors, tensor));
        index++;
    }
    return PL_OK;
}

pl_status pl_first_describe(pl_json **out, const pl_network *network,
                            uint64_t seed)
{
    char text[32];
    pl_json *description, *tensors = NULL;
    pl_status status;
    PL_TRY(pl_json_new_object(&description));
    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    PL_TRY_OUT(status, pl_json_set_text(description, "seed", text));
    PL_TRY_OUT(status, pl_json_new_array(&tensors));
    PL_TRY_OUT(status, pl_json_set_take(description, "tensors", tensors));
    PL_TRY_OUT(status, describe_all(tensors, network));
    *out = description;
    return PL_OK;
out:
    pl_json_free(description);
    return status;
}

/* The part of [first, first + count) that lies in `part`. */
static pl_first_range overlap(pl_first_range tensor, pl_first_range part)
{
    int64_t first = tensor.first > part.first ? tensor.first : part.first;
    int64_t end = tensor.first + tensor.count, last = part.first + part.count;
    end = end < last ? end : last;
    return (pl_first_range) { first, end > first ? end - first : 0 };
}

static pl_status fill_tensor(const pl_json *tensor, uint64_t seed,
                             pl_first_range part, float *params)
{
    const char *name, *init;
    pl_first_range all;
    PL_TRY(pl_json_get_text(tensor, "name", &name));
    PL_TRY(pl_json_get_int(tensor, "first", 0, PLACES_MOST, &all.first));
    PL_TRY(pl_json_get_int(tensor, "count", 1, PLACES_MOST, &all.count));
    PL_TRY(pl_json_get_text(tensor, "init", &init));
    pl_first_range here = overlap(all, part);
    if (here.count == 0)
        return pl_init_check(init);
    return pl_init_fill_part(init, PL_SHAPE(all.count), seed, name,
                             here.first - all.first, here.count,
                             params + (here.first - part.first));
}

pl_status pl_first_fill(const pl_json *description, pl_first_range part,
                        float *params)
{
    const char *seed;
    const pl_json *tensors;
    PL_TRY(pl_json_get_text(description, "seed", &seed));
    PL_TRY(pl_json_get_array(description, "tensors", &tensors));
    memset(params, 0, (size_t)part.count * sizeof *params);
    for (size_t i = 0; i < pl_json_length(tensors); i++)
        PL_TRY(fill_tensor(pl_json_at(tensors, i), strtoull(seed, NULL, 10),
                           part, params));
    return PL_OK;
}
