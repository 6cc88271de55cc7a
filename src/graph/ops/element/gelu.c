/* GELU (Hendrycks and Gimpel 2016), with the exact normal distribution, not its
 * tanh approximation: x times the probability of a value below x.  The gradient
 * reads the input, since the result does not determine it. */
#include "graph/graph.h"

pl_node *pl_gelu(pl_node *src)
{
    return pl_graph_unary(&pl_op_gelu, src);
}

static void gelu_range(const pl_op_run *run, int64_t first, int64_t count)
{
    run->state->kernels->gelu(count, pl_run_in(run, 0) + first,
                              run->out + first);
}

static void gelu_run(const pl_op_run *run)
{
    pl_run_cut(run, pl_run_count(run, run->node), PL_CUT, gelu_range);
}

static void gelu_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    diff_in[0] = pl_graph_binary(&pl_op_gelu_grad, node->in[0], diff);
}

static void grad_range(const pl_op_run *run, int64_t first, int64_t count)
{
    run->state->kernels->gelu_grad(count, pl_run_in(run, 0) + first,
                                   pl_run_in(run, 1) + first, run->out + first);
}

static void grad_run(const pl_op_run *run)
{
    pl_run_cut(run, pl_run_count(run, run->node), PL_CUT, grad_range);
}

static pl_node *build(pl_node *const *in)
{
    return pl_gelu(in[0]);
}

/* In the tails of the distribution. */
static pl_node *build_far(pl_node *const *in)
{
    return pl_gelu(pl_scale(in[0], 12));
}

static const pl_op_case cases[] = {
    { .inputs = { { 2, { 3, 7 } } }, .build = build },
    { .inputs = { { 2, { 37, 61 } } }, .build = build_far },
    { .inputs = { { 2, { 100, 128 } } }, .build = build },
    { .build = NULL },
};

const pl_op pl_op_gelu = {
    .name = "gelu",
    .least_inputs = 1,
    .most_inputs = 1,
    .rowwise = true,
    .layout = PL_OP_ANY,
    .in_place = 1u << 0,
    .shape = pl_node_same_shape,
    .run = gelu_run,
    .gradient = gelu_gradient,
    .cases = cases,
};

const pl_op pl_op_gelu_grad = {
    .name = "gelu_grad",
    .least_inputs = 2,
    .most_inputs = 2,
    .rowwise = true,
    .layout = PL_OP_ANY,
    .in_place = 1u << 1,
    .shape = pl_node_same_shape,
    .run = grad_run,
};
