/* Leaky ReLU (Maas et al. 2013): negative numbers are multiplied by a slope of
 * 0 or more, so that the sign of the result determines the gradient. */
#include "graph/graph.h"

#include <math.h>

pl_node *pl_leaky_relu(pl_node *src, float slope)
{
    if (src == NULL)
        return NULL;
    return pl_graph_add(src->graph, &(pl_node_opts) {
                                        .op = &pl_op_leaky_relu,
                                        .factor = slope,
                                        .input_count = 1,
                                        .in = { src },
                                    });
}

static pl_status leaky_shape(pl_node *node)
{
    if (!(node->factor >= 0) || !isfinite(node->factor))
        return PL_FAIL(PL_USAGE, "a slope of %g: expected 0 or more",
                       (double)node->factor);
    return pl_node_same_shape(node);
}

static void leaky_range(const pl_op_run *run, int64_t first, int64_t count)
{
    run->state->kernels->leaky_relu(
        count, run->node->factor, pl_run_in(run, 0) + first, run->out + first);
}

static void leaky_run(const pl_op_run *run)
{
    pl_run_cut(run, pl_run_count(run, run->node), PL_CUT, leaky_range);
}

static void leaky_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    diff_in[0] = pl_graph_add(node->graph, &(pl_node_opts) {
                                               .op = &pl_op_leaky_relu_grad,
                                               .factor = node->factor,
                                               .input_count = 2,
                                               .in = { node, diff },
                                           });
}

static void grad_range(const pl_op_run *run, int64_t first, int64_t count)
{
    run->state->kernels->leaky_relu_grad(
        count, run->node->factor, pl_run_in(run, 0) + first,
        pl_run_in(run, 1) + first, run->out + first);
}

static void grad_run(const pl_op_run *run)
{
    pl_run_cut(run, pl_run_count(run, run->node), PL_CUT, grad_range);
}

static pl_node *build(pl_node *const *in)
{
    return pl_leaky_relu(in[0], 0.1f);
}

static const pl_op_case cases[] = {
    { .inputs = { { 2, { 3, 7 } } }, .build = build },
    { .inputs = { { 2, { 100, 128 } } }, .build = build },
    { .build = NULL },
};

const pl_op pl_op_leaky_relu = {
    .name = "leaky_relu",
    .least_inputs = 1,
    .most_inputs = 1,
    .rowwise = true,
    .layout = PL_OP_ANY,
    .in_place = 1u << 0,
    .shape = leaky_shape,
    .run = leaky_run,
    .gradient = leaky_gradient,
    .cases = cases,
};

const pl_op pl_op_leaky_relu_grad = {
    .name = "leaky_relu_grad",
    .least_inputs = 2,
    .most_inputs = 2,
    .rowwise = true,
    .layout = PL_OP_ANY,
    .in_place = 1u << 1,
    .shape = pl_node_same_shape,
    .run = grad_run,
};
