/* Layers: an operator together with the parameters it needs, named
 * "layer/weights" and "layer/bias". */
#include "base/mem.h"
#include "graph/graph.h"
#include "paceline/nn.h"

#include <stdio.h>

/* The maximum length of "layer/weights". */
#define NAME_BYTES 256

/* Update rate of normalization statistics, as in other frameworks. */
#define STATISTIC_RATE 0.1f
#define EPSILON        1e-5f

/* The parameter "layer/what". */
static pl_node *add_param(pl_build *build, const char *layer, const char *what,
                          pl_shape shape, const char *init)
{
    char text[NAME_BYTES];
    snprintf(text, sizeof text, "%s/%s", layer, what);
    return pl_parameter(build->graph, text, shape, init);
}

/* "name/weights" by the build's init and "name/bias" [outs] of zeros. */
static void add_params(pl_build *build, const char *name, pl_shape weights,
                       pl_node **w, pl_node **b)
{
    *w = add_param(build, name, "weights", weights, build->init);
    *b = add_param(build, name, "bias", PL_SHAPE(weights.dim[0]), "zeros");
}

pl_node *pl_dense(pl_build *build, const char *name, pl_node *src,
                  int64_t units)
{
    src = pl_flatten(src);
    if (src == NULL)
        return NULL;
    pl_node *w, *b;
    add_params(build, name, PL_SHAPE(units, pl_node_shape(src).dim[1]), &w, &b);
    return pl_named(pl_inner(src, w, b), name);
}

void pl_sparse_layer(pl_build *build, const char *name)
{
    build->table = add_param(build, name, "weights", PL_SHAPE(build->features),
                             build->init);
    build->bias = add_param(build, name, "bias", PL_SHAPE(1), "zeros");
}

static pl_shape kernel_shape(const pl_node *src, int64_t outs, int64_t kernel)
{
    pl_shape shape = pl_node_shape(src);
    int64_t channels = shape.rank == 4 ? shape.dim[1] : 1; /* else rejected */
    return PL_SHAPE(outs, channels, kernel, kernel);
}

pl_node *pl_conv_layer(pl_build *build, const char *name, pl_node *src,
                       int64_t outs, int64_t kernel, int64_t stride,
                       int64_t pad)
{
    if (src == NULL)
        return NULL;
    pl_node *w, *b;
    add_params(build, name, kernel_shape(src, outs, kernel), &w, &b);
    return pl_named(pl_conv2d(src, w, b, stride, pad), name);
}

pl_node *pl_conv_layer_plain(pl_build *build, const char *name, pl_node *src,
                             int64_t outs, int64_t kernel, int64_t stride,
                             int64_t pad)
{
    if (src == NULL)
        return NULL;
    pl_node *w = add_param(build, name, "weights",
                           kernel_shape(src, outs, kernel), build->init);
    return pl_named(pl_conv2d(src, w, NULL, stride, pad), name);
}

pl_node *pl_batch_norm_layer(pl_build *build, const char *name, pl_node *src)
{
    if (src == NULL)
        return NULL;
    pl_shape shape = pl_node_shape(src);
    shape = PL_SHAPE(shape.rank > 1 ? shape.dim[1] : 1); /* else rejected */
    pl_node *scale = add_param(build, name, "scale", shape, "ones");
    pl_node *shift = add_param(build, name, "shift", shape, "zeros");
    char text[NAME_BYTES];
    snprintf(text, sizeof text, "%s/mean", name);
    pl_node *mean =
        pl_statistic(build->graph, text, shape, "zeros", STATISTIC_RATE);
    snprintf(text, sizeof text, "%s/variance", name);
    pl_node *variance =
        pl_statistic(build->graph, text, shape, "ones", STATISTIC_RATE);
    return pl_named(pl_batch_norm(src, scale, shift, mean, variance, EPSILON),
                    name);
}

pl_node *pl_layer_norm_layer(pl_build *build, const char *name, pl_node *src)
{
    if (src == NULL)
        return NULL;
    pl_shape shape = pl_node_shape(src);
    shape = PL_SHAPE(shape.rank > 1 ? shape.dim[shape.rank - 1] : 1);
    pl_node *scale = add_param(build, name, "scale", shape, "ones");
    pl_node *shift = add_param(build, name, "shift", shape, "zeros");
    return pl_named(pl_layer_norm(src, scale, shift, EPSILON), name);
}
