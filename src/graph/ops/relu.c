#include "graph/graph.h"

pl_node *pl_relu(pl_node *src)
{
    return pl_graph_unary(&pl_op_relu, src);
}

static void relu_run(const pl_run *run)
{
    run->state->kernels->relu(pl_run_count(run, run->node), pl_run_in(run, 0),
                              run->out);
}

/* The gradient needs the result only, not the input. */
static void relu_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    diff_in[0] = pl_graph_binary(&pl_op_relu_grad, node, diff);
}

static void relu_grad_run(const pl_run *run)
{
    run->state->kernels->relu_grad(pl_run_count(run, run->node),
                                   pl_run_in(run, 0), pl_run_in(run, 1),
                                   run->out);
}

static pl_node *build(pl_node *const *in)
{
    return pl_relu(in[0]);
}

static const pl_op_case cases[] = {
    { .inputs = { { 2, { 3, 7 } } }, .build = build },
    { .inputs = { { 2, { 100, 128 } } }, .build = build },
    { .build = NULL },
};

const pl_op pl_op_relu = {
    .name = "relu",
    .least_inputs = 1,
    .most_inputs = 1,
    .rowwise = true,
    .layout = PL_OP_ANY,
    .in_place = 1u << 0,
    .shape = pl_node_same_shape,
    .run = relu_run,
    .gradient = relu_gradient,
    .cases = cases,
};

const pl_op pl_op_relu_grad = {
    .name = "relu_grad",
    .least_inputs = 2,
    .most_inputs = 2,
    .rowwise = true,
    .layout = PL_OP_ANY,
    .in_place = 1u << 1,
    .shape = pl_node_same_shape,
    .run = relu_grad_run,
};
