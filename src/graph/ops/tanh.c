#include "graph/graph.h"

pl_node *pl_tanh(pl_node *src)
{
    return pl_graph_unary(&pl_op_tanh, src);
}

static void tanh_run(const pl_run *run)
{
    run->state->kernels->tanh(pl_run_count(run, run->node), pl_run_in(run, 0),
                              run->out);
}

/* The gradient needs the result only, not the input. */
static void tanh_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    diff_in[0] = pl_graph_binary(&pl_op_tanh_grad, node, diff);
}

static void tanh_grad_run(const pl_run *run)
{
    run->state->kernels->tanh_grad(pl_run_count(run, run->node),
                                   pl_run_in(run, 0), pl_run_in(run, 1),
                                   run->out);
}

static pl_node *build(pl_node *const *in)
{
    return pl_tanh(in[0]);
}

static const pl_op_case cases[] = {
    { .inputs = { { 2, { 3, 7 } } }, .build = build },
    { .inputs = { { 2, { 100, 128 } } }, .build = build },
    { .build = NULL },
};

const pl_op pl_op_tanh = {
    .name = "tanh",
    .least_inputs = 1,
    .most_inputs = 1,
    .rowwise = true,
    .layout = PL_OP_ANY,
    .in_place = 1u << 0,
    .shape = pl_node_same_shape,
    .run = tanh_run,
    .gradient = tanh_gradient,
    .cases = cases,
};

const pl_op pl_op_tanh_grad = {
    .name = "tanh_grad",
    .least_inputs = 2,
    .most_inputs = 2,
    .rowwise = true,
    .layout = PL_OP_ANY,
    .in_place = 1u << 1,
    .shape = pl_node_same_shape,
    .run = tanh_grad_run,
};
