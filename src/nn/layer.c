/* Layers: an operator together with the parameters it needs, named
 * "layer/weights" and "layer/bias". */
#include "base/mem.h"
#include "graph/graph.h"
#include "paceline/nn.h"

#include <stdio.h>

/* The longest "layer/weights" that is made. */
#define NAME_BYTES 256

/* "name/weights" by the build's init and "name/bias" [outs] of zeros. */
static void add_params(pl_build *build, const char *name, pl_shape weights,
                       pl_node **w, pl_node **b)
{
    char text[NAME_BYTES];
    snprintf(text, sizeof text, "%s/weights", name);
    *w = pl_parameter(build->graph, text, weights, build->init);
    snprintf(text, sizeof text, "%s/bias", name);
    *b = pl_parameter(build->graph, text, PL_SHAPE(weights.dim[0]), "zeros");
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
    char text[NAME_BYTES];
    snprintf(text, sizeof text, "%s/weights", name);
    build->table = pl_parameter(build->graph, text, PL_SHAPE(build->features),
                                build->init);
    snprintf(text, sizeof text, "%s/bias", name);
    build->bias = pl_parameter(build->graph, text, PL_SHAPE(1), "zeros");
}

pl_node *pl_conv_layer(pl_build *build, const char *name, pl_node *src,
                       int64_t outs, int64_t kernel, int64_t stride,
                       int64_t pad)
{
    if (src == NULL)
        return NULL;
    pl_node *w, *b;
    pl_shape shape = pl_node_shape(src);
    int64_t channels = shape.rank == 4 ? shape.dim[1] : 1; /* else refused */
    add_params(build, name, PL_SHAPE(outs, channels, kernel, kernel), &w, &b);
    return pl_named(pl_conv2d(src, w, b, stride, pad), name);
}
