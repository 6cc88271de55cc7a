/* net.c - a model that is a list of layers made at run time: keeps the list,
 * and builds the graph from it when a model's function is called. */
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
    char **names;     /* owned, one per layer */
    size_t count, room, name_room;
    int32_t logits, loss; /* 0: not set */
    pl_error failed;      /* the first error */
};

/* --- building the graph ----------------------------------------------- */

/* A layer being built. */
typedef struct place {
    pl_build *build;
    const pl_layer *layer;
    const char *name; /* of its parameters */
    pl_node *x, *other;
} place;

/* [batch, h, w] -> [batch, 1, h, w] */
static pl_node *with_channel(pl_node *x)
{
    pl_shape shape = x != NULL ? pl_node_shape(x) : PL_SCALAR;
    if (shape.rank != 3)
        return x;
    return pl_reshape(x, PL_SHAPE(PL_BATCH, 1, shape.dim[1], shape.dim[2]));
}

static int64_t stride_of(const pl_layer *layer, int64_t otherwise)
{
    return layer->stride > 0 ? layer->stride : otherwise;
}

static pl_node *dense(const place *p)
{
    int64_t units = p->layer->units;
    return pl_dense(p->build, p->name, p->x,
                    units > 0 ? units : p->build->classes);
}

static pl_node *conv2d(const place *p)
{
    const pl_layer *l = p->layer;
    return pl_conv_layer(p->build, p->name, with_channel(p->x), l->units,
                         l->kernel, stride_of(l, 1), l->pad);
}

static pl_node *max_pool(const place *p)
{
    const pl_layer *l = p->layer;
    return pl_max_pool(with_channel(p->x), l->kernel, stride_of(l, l->kernel));
}

static pl_node *avg_pool(const place *p)
{
    const pl_layer *l = p->layer;
    return pl_avg_pool(with_channel(p->x), l->kernel, stride_of(l, l->kernel));
}

static pl_node *reshape(const place *p)
{
    pl_shape example = p->layer->shape;
    pl_shape shape = { .rank = example.rank + 1, .dim = { PL_BATCH } };
    memcpy(shape.dim + 1, example.dim,
           (size_t)example.rank * sizeof *example.dim);
    return pl_reshape(p->x, shape);
}

static pl_node *embedding(const place *p)
{
    char name[NAME_BYTES + 16];
    snprintf(name, sizeof name, "%s/table", p->name);
    pl_node *table = pl_parameter(p->build->graph, name,
                                  PL_SHAPE(p->layer->units, p->layer->width),
                                  p->build->init);
    return pl_embedding(p->x, table);
}

static pl_node *batch_norm(const place *p)
{
    return pl_batch_norm_layer(p->build, p->name, p->x);
}

static pl_node *layer_norm(const place *p)
{
    return pl_layer_norm_layer(p->build, p->name, p->x);
}

#define UNARY(kind, call)                                                      \
    static pl_node *kind(const place *p)                                       \
    {                                                                          \
        return call(p->x);                                                     \
    }
#define BINARY(kind, call)                                                     \
    static pl_node *kind(const place *p)                                       \
    {                                                                          \
        return call(p->x, p->other);                                           \
    }
#define RATED(kind, call)                                                      \
    static pl_node *kind(const place *p)                                       \
    {                                                                          \
        return call(p->x, (float)p->layer->rate);                              \
    }
UNARY(relu, pl_relu)
UNARY(tanh_layer, pl_tanh)
UNARY(sigmoid, pl_sigmoid)
UNARY(gelu, pl_gelu)
UNARY(softmax, pl_softmax)
UNARY(flatten, pl_flatten)
UNARY(global_avg_pool, pl_global_avg_pool)
UNARY(mean, pl_mean)
UNARY(sum, pl_sum)
BINARY(add, pl_add)
BINARY(multiply, pl_multiply)
RATED(dropout, pl_dropout)
RATED(scale, pl_scale)
RATED(leaky_relu, pl_leaky_relu)

static pl_node *concat(const place *p)
{
    return pl_concat(p->x, p->other, 1);
}

static pl_node *cross_entropy(const place *p)
{
    pl_node *labels = p->build->labels;
    return p->layer->rate > 0
               ? pl_softmax_xent_smooth(p->x, labels, (float)p->layer->rate)
               : pl_softmax_xent(p->x, labels);
}

/* The labels as numbers. */
static pl_node *target(const place *p)
{
    const pl_build *b = p->build;
    return b->numeric ? b->labels : pl_one_hot(b->labels, b->classes);
}

static pl_node *squared_error(const place *p)
{
    return pl_squared_error(p->x, target(p));
}

static pl_node *huber(const place *p)
{
    double delta = p->layer->rate;
    return pl_huber(p->x, target(p), delta > 0 ? (float)delta : 1);
}

static pl_node *binary_cross_entropy(const place *p)
{
    return pl_binary_xent(p->x, target(p));
}

static const struct layer_kind {
    const char *name;
    pl_node *(*build)(const place *p);
    bool units, kernel, width, other; /* fields the layer uses */
} kinds[PL_LAYER_KINDS] = {
    [PL_LAYER_DENSE] = { .name = "dense", .build = dense },
    [PL_LAYER_CONV2D] = { .name = "conv",
                          .build = conv2d,
                          .units = true,
                          .kernel = true },
    [PL_LAYER_RELU] = { .name = "relu", .build = relu },
    [PL_LAYER_TANH] = { .name = "tanh", .build = tanh_layer },
    [PL_LAYER_SIGMOID] = { .name = "sigmoid", .build = sigmoid },
    [PL_LAYER_MAX_POOL] = { .name = "max_pool",
                            .build = max_pool,
                            .kernel = true },
    [PL_LAYER_AVG_POOL] = { .name = "avg_pool",
                            .build = avg_pool,
                            .kernel = true },
    [PL_LAYER_FLATTEN] = { .name = "flatten", .build = flatten },
    [PL_LAYER_RESHAPE] = { .name = "reshape", .build = reshape },
    [PL_LAYER_DROPOUT] = { .name = "dropout", .build = dropout },
    [PL_LAYER_ADD] = { .name = "add", .build = add, .other = true },
    [PL_LAYER_SCALE] = { .name = "scale", .build = scale },
    [PL_LAYER_CROSS_ENTROPY] = { .name = "cross_entropy",
                                 .build = cross_entropy },
    [PL_LAYER_MEAN] = { .name = "mean", .build = mean },
    [PL_LAYER_SUM] = { .name = "sum", .build = sum },
    [PL_LAYER_MULTIPLY] = { .name = "multiply",
                            .build = multiply,
                            .other = true },
    [PL_LAYER_CONCAT] = { .name = "concat", .build = concat, .other = true },
    [PL_LAYER_LEAKY_RELU] = { .name = "leaky_relu", .build = leaky_relu },
    [PL_LAYER_GELU] = { .name = "gelu", .build = gelu },
    [PL_LAYER_SOFTMAX] = { .name = "softmax", .build = softmax },
    [PL_LAYER_BATCH_NORM] = { .name = "batch_norm", .build = batch_norm },
    [PL_LAYER_LAYER_NORM] = { .name = "layer_norm", .build = layer_norm },
    [PL_LAYER_GLOBAL_AVG_POOL] = { .name = "global_avg_pool",
                                   .build = global_avg_pool },
    [PL_LAYER_EMBEDDING] = { .name = "embedding",
                             .build = embedding,
                             .units = true,
                             .width = true },
    [PL_LAYER_SQUARED_ERROR] = { .name = "squared_error",
                                 .build = squared_error },
    [PL_LAYER_HUBER] = { .name = "huber", .build = huber },
    [PL_LAYER_BINARY_CROSS_ENTROPY] = { .name = "binary_cross_entropy",
                                        .build = binary_cross_entropy },
};

/* The result of a layer by its number. */
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
        const struct layer_kind *kind = &kinds[layer->kind];
        nodes[i] = kind->build(&(place) {
            .build = build,
            .layer = layer,
            .name = net->names[i],
            .x = result_of(nodes, build, layer->src),
            .other = kind->other ? result_of(nodes, build, layer->other) : NULL,
        });
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
    if (kind->other && layer->other != PL_LAYER_INPUT &&
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
    if (layer->width < 0 || (kind->width && layer->width == 0))
        return PL_FAIL(PL_USAGE, "width is %lld, expected 1 or more",
                       (long long)layer->width);
    if (layer->kind == PL_LAYER_RESHAPE &&
        (layer->shape.rank < 1 || layer->shape.rank >= PL_MAX_RANK))
        return PL_FAIL(PL_USAGE, "a shape of %d dimensions, expected 1 to %d",
                       layer->shape.rank, PL_MAX_RANK - 1);
    return PL_OK;
}

/* The n-th dense layer is "dense<n>" if it has no name. */
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
