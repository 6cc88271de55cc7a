#include "base/mem.h"
#include "graph/graph.h"
#include "paceline/nn.h"

#include <stdio.h>

/* The longest "layer/weights" that is made. */
#define NAME_BYTES 256

pl_node *pl_dense(pl_build *build, const char *name, pl_node *src,
                  int64_t units)
{
    src = pl_flatten(src);
    if (src == NULL)
        return NULL;
    char weights[NAME_BYTES], bias[NAME_BYTES];
    snprintf(weights, sizeof weights, "%s/weights", name);
    snprintf(bias, sizeof bias, "%s/bias", name);
    pl_node *w =
        pl_parameter(build->graph, weights,
                     PL_SHAPE(units, pl_node_shape(src).dim[1]), build->init);
    pl_node *b = pl_parameter(build->graph, bias, PL_SHAPE(units), "zeros");
    return pl_named(pl_inner(src, w, b), name);
}
