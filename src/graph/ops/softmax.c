/* Softmax over the last dimension, as a result: probabilities for a custom loss
 * or for another program.  The loss of a classifier is softmax_xent, which does
 * not take logarithms of small numbers. */
#include "graph/graph.h"
#include "tensor/shape.h"

pl_node *pl_softmax(pl_node *src)
{
    return pl_graph_unary(&pl_op_softmax, src);
}

static pl_status softmax_shape(pl_node *node)
{
    if (node->in[0]->shape.rank < 1)
        return PL_FAIL(PL_SHAPE, "softmax of a single number: %s",
                       node->in[0]->name);
    return pl_node_same_shape(node);
}

static int64_t classes_of(const pl_node *node)
{
    return node->shape.dim[node->shape.rank - 1];
}

static void softmax_run(const pl_op_run *run)
{
    int64_t classes = classes_of(run->node);
    run->state->kernels->softmax(pl_run_count(run, run->node) / classes,
                                 classes, pl_run_in(run, 0), run->out);
}

static void softmax_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    diff_in[0] = pl_graph_binary(&pl_op_softmax_grad, node, diff);
}

static void grad_run(const pl_op_run *run)
{
    int64_t classes = classes_of(run->node);
    run->state->kernels->softmax_grad(pl_run_count(run, run->node) / classes,
                                      classes, pl_run_in(run, 0),
                                      pl_run_in(run, 1), run->out);
}

static pl_node *build(pl_node *const *in)
{
    return pl_softmax(in[0]);
}

static const pl_op_case cases[] = {
    { .inputs = { { 2, { 3, 7 } } }, .build = build },
    { .inputs = { { 3, { 2, 3, 19 } } }, .build = build },
    { .inputs = { { 2, { 100, 10 } } }, .build = build },
    { .build = NULL },
};

const pl_op pl_op_softmax = {
    .name = "softmax",
    .least_inputs = 1,
    .most_inputs = 1,
    .rowwise = true,
    .in_place = 1u << 0,
    .shape = softmax_shape,
    .run = softmax_run,
    .gradient = softmax_gradient,
    .cases = cases,
};

const pl_op pl_op_softmax_grad = {
    .name = "softmax_grad",
    .least_inputs = 2,
    .most_inputs = 2,
    .rowwise = true,
    .in_place = 1u << 1,
    .shape = pl_node_same_shape,
    .run = grad_run,
};
