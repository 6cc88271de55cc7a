/* net.c - a model that is a list of layers made at run time: keeps the list,
 * and builds the graph from it wherever a model's function is called. */
#include "base/error.h"
#include "base/mem.h"
#include "graph/graph.h"
#include "nn/model.h"
#include "paceline/model.h"
#include "tensor/shape.h"

#include <stdio.h>
#include <string.h>

#define LAYERS_MOST 10000
#define NAME_BYTES  200

struct pl_net {
    pl_model model;
    char *name;
    pl_layer *layers; /* number 1 is layers[0] */
    char **names;     /* of each layer, its own */
    size_t count, room, name_room;
    int32_t logits, loss; /* 0: not said */
    pl_error failed;      /* the first mistake */
};

static const struct layer_kind {
    const char *name;
    bool units, kernel; /* what it needs */
} kinds[PL_LAYER_KINDS] = {
    [PL_LAYER_DENSE] = { .name = "dense" },
    [PL_LAYER_CONV2D] = { .name = "conv", .units = true, .kernel = true },
    [PL_LAYER_RELU] = { .name = "relu" },
    [PL_LAYER_TANH] = { .name = "tanh" },
    [PL_LAYER_SIGMOID] = { .name = "sigmoid" },
    [PL_LAYER_MAX_POOL] = { .name = "max_pool", .kernel = true },
    [PL_LAYER_AVG_POOL] = { .name = "avg_pool", .kernel = true },
    [PL_LAYER_FLATTEN] = { .name = "flatten" },
    [PL_LAYER_RESHAPE] = { .name = "reshape" },
    [PL_LAYER_DROPOUT] = { .name = "dropout" },
    [PL_LAYER_ADD] = { .name = "add" },
    [PL_LAYER_SCALE] = { .name = "scale" },
    [PL_LAYER_CROSS_ENTROPY] = { .name = "cross_entropy" },
    [PL_LAYER_MEAN] = { .name = "mean" },
    [PL_LAYER_SUM] = { .name = "sum" },
};

/* --- building the graph ----------------------------------------------- */

/* [batch, h, w] -> [batch, 1, h, w] */
static pl_node *with_channel(pl_node *x)
{
    pl_shape shape = x != NULL ? pl_node_shape(x) : PL_SCALAR;
    if (shape.rank != 3)
        return x;
    return pl_reshape(x, PL_SHAPE(PL_BATCH, 1, shape.dim[1], shape.dim[2]));
}

static pl_node *reshape(pl_node *x, pl_shape example)
{
    pl_shape shape = { .rank = example.rank + 1, .dim = { PL_BATCH } };
    memcpy(shape.dim + 1, example.dim,
           (size_t)example.rank * sizeof *example.dim);
    return pl_reshape(x, shape);
}

static pl_node *build_layer(pl_build *build, const pl_layer *layer,
                            const char *name, pl_node *x, pl_node *other)
{
    int64_t stride = layer->stride > 0 ? layer->stride : 1;
    int64_t step = layer->stride > 0 ? layer->stride : layer->kernel;
    switch ((pl_layer_kind)layer->kind) {
    case PL_LAYER_DENSE:
        return pl_dense(build, name, x,
                        layer->units > 0 ? layer->units : build->classes);
    case PL_LAYER_CONV2D:
        return pl_conv_layer(build, name, with_channel(x), layer->units,
                             layer->kernel, stride, layer->pad);
    case PL_LAYER_RELU:
        return pl_relu(x);
    case PL_LAYER_TANH:
        return pl_tanh(x);
    case PL_LAYER_SIGMOID:
        return pl_sigmoid(x);
    case PL_LAYER_MAX_POOL:
        return pl_max_pool(with_channel(x), layer->kernel, step);
    case PL_LAYER_AVG_POOL:
        return pl_avg_pool(with_channel(x), layer->kernel, step);
    case PL_LAYER_FLATTEN:
        return pl_flatten(x);
    case PL_LAYER_RESHAPE:
        return reshape(x, layer->shape);
    case PL_LAYER_DROPOUT:
        return pl_dropout(x, (float)layer->rate);
    case PL_LAYER_ADD:
        return pl_add(x, other);
    case PL_LAYER_SCALE:
        return pl_scale(x, (float)layer->rate);
    case PL_LAYER_CROSS_ENTROPY:
        return pl_softmax_xent(x, build->labels);
    case PL_LAYER_MEAN:
        return pl_mean(x);
    case PL_LAYER_SUM:
        return pl_sum(x);
    case PL_LAYER_KINDS:
        break;
    }
    return NULL;
}

/* The result of a layer by its number, as one names it. */
static pl_node *result_of(pl_node *const *nodes, const pl_build *build,
                          int32_t number)
{
    return number == PL_LAYER_INPUT ? build->input : nodes[number - 1];
}

static pl_status build_layers(const pl_net *net, pl_build *build,
                              pl_node **nodes)
{
    for (size_t i = 0; i < net->count; i++) {
        const pl_layer *layer = &net->layers[i];
        pl_node *other = layer->kind == PL_LAYER_ADD
                             ? result_of(nodes, build, layer->other)
                             : NULL;
        nodes[i] = build_layer(build, layer, net->names[i],
                               result_of(nodes, build, layer->src), other);
        pl_status status = pl_graph_status(build->graph);
        if (status != PL_OK)
            return pl_context(status, "layer %zu (%s)", i + 1, net->names[i]);
    }
    int32_t logits = net->logits > 0 ? net->logits : (int32_t)net->count;
    build->logits = nodes[logits - 1];
    if (net->loss > 0)
        build->loss = nodes[net->loss - 1];
    return PL_OK;
}

static pl_status build(pl_build *build)
{
    const pl_net *net = build->context;
    pl_node **nodes;
    PL_TRY(pl_net_status(net));
    if (net->count == 0)
        return PL_FAIL(PL_USAGE, "the net %s has no layers", net->name);
    PL_TRY(PL_NEW(nodes, net->count));
    pl_status status = build_layers(net, build, nodes);
    pl_mem_free(nodes);
    return status;
}

/* --- the list --------------------------------------------------------- */

const pl_model *pl_model_builtin(int32_t index)
{
    const pl_model *const *list = pl_model_list();
    for (int32_t i = 0; list[i] != NULL; i++)
        if (i == index)
            return list[i];
    return NULL;
}

pl_status pl_net_new(pl_net **out, const char *name)
{
    if (name == NULL || name[0] == '\0' || strchr(name, '/') != NULL ||
        strlen(name) >= NAME_BYTES)
        return PL_FAIL(PL_USAGE,
                       "a net needs a name, without / and shorter "
                       "than %d bytes",
                       NAME_BYTES);
    for (const pl_model *const *m = pl_model_list(); *m != NULL; m++)
        if (strcmp((*m)->name, name) == 0)
            return PL_FAIL(PL_USAGE,
                           "%s is a built-in model; give the net another name",
                           name);
    pl_net *net;
    PL_TRY(PL_NEW(net, 1));
    pl_status status = pl_mem_copy_text(&net->name, name);
    net->model = (pl_model) {
        .name = net->name,
        .help = "a net of the program's own",
        .build = build,
        .context = net,
    };
    if (status == PL_OK)
        *out = net;
    else
        pl_net_free(net);
    return status;
}

void pl_net_free(pl_net *net)
{
    if (net == NULL)
        return;
    for (size_t i = 0; i < net->count; i++)
        pl_mem_free(net->names[i]);
    pl_mem_free(net->names);
    pl_mem_free(net->layers);
    pl_mem_free(net->name);
    pl_mem_free(net);
}

pl_status pl_net_status(const pl_net *net)
{
    return pl_error_raise(&net->failed);
}

const pl_model *pl_net_model(const pl_net *net)
{
    return &net->model;
}

static bool is_layer(const pl_net *net, int32_t number)
{
    return number > 0 && (size_t)number <= net->count;
}

static pl_status check_layer(const pl_net *net, const pl_layer *layer)
{
    const struct layer_kind *kind = &kinds[layer->kind];
    if (layer->src != PL_LAYER_INPUT && !is_layer(net, layer->src))
        return PL_FAIL(PL_USAGE,
                       "src is %d, expected a layer before it or "
                       "PL_LAYER_INPUT",
                       layer->src);
    if (layer->kind == PL_LAYER_ADD && layer->other != PL_LAYER_INPUT &&
        !is_layer(net, layer->other))
        return PL_FAIL(PL_USAGE,
                       "other is %d, expected a layer before it or "
                       "PL_LAYER_INPUT",
                       layer->other);
    if (layer->units < 0 || (kind->units && layer->units == 0))
        return PL_FAIL(PL_USAGE, "units is %lld, expected 1 or more",
                       (long long)layer->units);
    if (layer->kernel < 0 || layer->stride < 0 || layer->pad < 0 ||
        (kind->kernel && layer->kernel == 0))
        return PL_FAIL(PL_USAGE,
                       "kernel %lld, stride %lld, pad %lld; expected a kernel "
                       "of 1 or more, and no negative number",
                       (long long)layer->kernel, (long long)layer->stride,
                       (long long)layer->pad);
    if (layer->kind == PL_LAYER_RESHAPE &&
        (layer->shape.rank < 1 || layer->shape.rank >= PL_MAX_RANK))
        return PL_FAIL(PL_USAGE, "a shape of %d dimensions, expected 1 to %d",
                       layer->shape.rank, PL_MAX_RANK - 1);
    return PL_OK;
}

/* The n-th dense layer is "dense<n>" where it was not given a name. */
static pl_status name_layer(const pl_net *net, const pl_layer *layer,
                            char **out)
{
    int number = 1;
    char text[NAME_BYTES];
    for (size_t i = 0; i < net->count; i++)
        number += net->layers[i].kind == layer->kind;
    if (layer->name != NULL && strlen(layer->name) >= sizeof text)
        return PL_FAIL(PL_USAGE, "a name of %zu bytes, expected fewer than %zu",
                       strlen(layer->name), sizeof text);
    snprintf(text, sizeof text, "%s", layer->name != NULL ? layer->name : "");
    if (layer->name == NULL)
        snprintf(text, sizeof text, "%s%d", kinds[layer->kind].name, number);
    for (size_t i = 0; i < net->count; i++)
        if (strcmp(net->names[i], text) == 0)
            return PL_FAIL(PL_USAGE, "layer %zu is called %s, too", i + 1,
                           text);
    return pl_mem_copy_text(out, text);
}

static pl_status append(pl_net *net, const pl_layer *given)
{
    pl_layer layer = *given;
    if (layer.kind < 0 || layer.kind >= PL_LAYER_KINDS)
        return PL_FAIL(PL_USAGE, "%d is not a kind of layer", layer.kind);
    if (net->count >= LAYERS_MOST)
        return PL_FAIL(PL_USAGE, "more than %d layers", LAYERS_MOST);
    if (layer.src == 0)
        layer.src = net->count > 0 ? (int32_t)net->count : PL_LAYER_INPUT;
    PL_TRY(check_layer(net, &layer));
    PL_TRY(PL_GROW(net->layers, net->count, net->room));
    PL_TRY(PL_GROW(net->names, net->count, net->name_room));
    PL_TRY(name_layer(net, &layer, &net->names[net->count]));
    layer.name = net->names[net->count];
    net->layers[net->count++] = layer;
    return PL_OK;
}

int32_t pl_net_add(pl_net *net, const pl_layer *layer)
{
    if (net->failed.status != PL_OK)
        return 0;
    pl_status status = append(net, layer);
    if (status == PL_OK)
        return (int32_t)net->count;
    pl_error_save(&net->failed, pl_context(status, "net %s: layer %zu",
                                           net->name, net->count + 1));
    return 0;
}

static pl_status check_number(const pl_net *net, int32_t layer)
{
    PL_TRY(pl_net_status(net));
    if (!is_layer(net, layer))
        return PL_FAIL(PL_USAGE, "net %s: %d is not a layer, expected 1 to %zu",
                       net->name, layer, net->count);
    return PL_OK;
}

pl_status pl_net_set_logits(pl_net *net, int32_t layer)
{
    PL_TRY(check_number(net, layer));
    net->logits = layer;
    return PL_OK;
}

pl_status pl_net_set_loss(pl_net *net, int32_t layer)
{
    PL_TRY(check_number(net, layer));
    if (net->logits == 0)
        return PL_FAIL(PL_USAGE, "net %s: a loss needs pl_net_set_logits first",
                       net->name);
    net->loss = layer;
    return PL_OK;
}
