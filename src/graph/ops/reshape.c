/* A new shape over the same memory (an alias: nothing is computed or copied);
 * flatten is the most frequent use. */
#include "graph/graph.h"
#include "tensor/shape.h"

pl_node *pl_reshape(pl_node *src, pl_shape shape)
{
    if (src == NULL)
        return NULL;
    return pl_graph_add(src->graph, &(pl_node_opts) {
                                        .op = &pl_op_reshape,
                                        .shape = shape,
                                        .input_count = 1,
                                        .in = { src },
                                    });
}

pl_node *pl_flatten(pl_node *src)
{
    if (src == NULL)
        return NULL;
    pl_shape shape = src->shape;
    if (shape.rank == 2)
        return src;
    int64_t first = shape.rank > 0 ? shape.dim[0] : 1;
    int64_t rest = pl_shape_row(shape) / (first == PL_BATCH ? 1 : first);
    return pl_reshape(src, PL_SHAPE(first, rest));
}

static pl_status reshape_shape(pl_node *node)
{
    pl_shape from = node->in[0]->shape, to = node->shape;
    char f[PL_SHAPE_TEXT], t[PL_SHAPE_TEXT];
    PL_TRY(pl_shape_check(to));
    node->dtype = node->in[0]->dtype;
    if (pl_shape_batched(from) != pl_shape_batched(to) ||
        pl_shape_row(from) != pl_shape_row(to))
        return PL_FAIL(PL_SHAPE, "cannot reshape %s %s to %s",
                       node->in[0]->name, pl_shape_text(from, f),
                       pl_shape_text(to, t));
    return PL_OK;
}

static void reshape_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    diff_in[0] = pl_reshape(diff, node->in[0]->shape);
}

static pl_node *build(pl_node *const *in)
{
    return pl_flatten(in[0]);
}

static const pl_op_case cases[] = {
    { .inputs = { { 3, { 3, 2, 7 } } }, .build = build },
    { .inputs = { { 3, { 100, 8, 16 } } }, .build = build },
    { .build = NULL },
};

const pl_op pl_op_reshape = {
    .name = "reshape",
    .least_inputs = 1,
    .most_inputs = 1,
    .rowwise = true,
    .alias = true,
    .reads_views = 1u << 0,
    .shape = reshape_shape,
    .gradient = reshape_gradient,
    .cases = cases,
};
