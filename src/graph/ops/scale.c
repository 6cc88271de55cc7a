/* Multiplication by a constant that is fixed when the graph is built. */
#include "graph/graph.h"

pl_node *pl_scale(pl_node *src, float factor)
{
    if (src == NULL)
        return NULL;
    return pl_graph_add(src->graph, &(pl_node_opts) {
                                        .op = &pl_op_scale,
                                        .factor = factor,
                                        .input_count = 1,
                                        .in = { src },
                                    });
}

static void scale_range(const pl_op_run *run, int64_t first, int64_t count)
{
    run->state->kernels->scale(count, run->node->factor,
                               pl_run_in(run, 0) + first, run->out + first);
}

static void scale_run(const pl_op_run *run)
{
    pl_run_cut(run, pl_run_count(run, run->node), PL_CUT, scale_range);
}

static void scale_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    diff_in[0] = pl_scale(diff, node->factor);
}

static pl_node *build(pl_node *const *in)
{
    return pl_scale(in[0], 0.25f);
}

static const pl_op_case cases[] = {
    { .inputs = { { 2, { 3, 7 } } }, .build = build },
    { .inputs = { { 2, { 100, 128 } } }, .build = build },
    { .build = NULL },
};

const pl_op pl_op_scale = {
    .name = "scale",
    .least_inputs = 1,
    .most_inputs = 1,
    .rowwise = true,
    .layout = PL_OP_ANY,
    .in_place = 1u << 0,
    .shape = pl_node_same_shape,
    .run = scale_run,
    .gradient = scale_gradient,
    .cases = cases,
};
