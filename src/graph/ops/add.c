/* The sum of two nodes, of different shapes if one can be broadcast to the
 * other's (element/broadcast.c); both inputs get the gradient unchanged. */
#include "graph/graph.h"
#include "tensor/shape.h"

pl_node *pl_add(pl_node *a, pl_node *b)
{
    pl_broadcast_pair(&a, &b);
    return pl_graph_binary(&pl_op_add, a, b);
}

static pl_status add_shape(pl_node *node)
{
    char a[PL_SHAPE_TEXT], b[PL_SHAPE_TEXT];
    if (!pl_shape_equal(node->in[0]->shape, node->in[1]->shape))
        return PL_FAIL(PL_SHAPE, "cannot add %s %s and %s %s",
                       node->in[0]->name, pl_shape_text(node->in[0]->shape, a),
                       node->in[1]->name, pl_shape_text(node->in[1]->shape, b));
    node->shape = node->in[0]->shape;
    return PL_OK;
}

static void add_range(const pl_op_run *run, int64_t first, int64_t count)
{
    run->state->kernels->add(count, pl_run_in(run, 0) + first,
                             pl_run_in(run, 1) + first, run->out + first);
}

static void add_run(const pl_op_run *run)
{
    pl_run_cut(run, pl_run_count(run, run->node), PL_CUT, add_range);
}

static void add_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    (void)node;
    diff_in[0] = diff;
    diff_in[1] = diff;
}

static pl_node *build(pl_node *const *in)
{
    return pl_add(in[0], in[1]);
}

static const pl_op_case cases[] = {
    { .inputs = { { 2, { 3, 7 } }, { 2, { 3, 7 } } }, .build = build },
    { .inputs = { { 2, { 100, 128 } }, { 2, { 100, 128 } } }, .build = build },
    { .build = NULL },
};

const pl_op pl_op_add = {
    .name = "add",
    .least_inputs = 2,
    .most_inputs = 2,
    .rowwise = true,
    .layout = PL_OP_ANY,
    .in_place = 3u,
    .shape = add_shape,
    .run = add_run,
    .gradient = add_gradient,
    .cases = cases,
};
