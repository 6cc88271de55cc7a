/* Adds a vector to the last dimension; its gradient sums the rows
 * (sum_rows). */
#include "graph/graph.h"
#include "tensor/shape.h"

pl_node *pl_bias(pl_node *src, pl_node *bias)
{
    return pl_graph_binary(&pl_op_bias, src, bias);
}

static pl_status bias_shape(pl_node *node)
{
    pl_shape src = node->in[0]->shape, bias = node->in[1]->shape;
    char s[PL_SHAPE_TEXT], b[PL_SHAPE_TEXT];
    if (src.rank < 1 || bias.rank != 1 || pl_shape_batched(bias) ||
        src.dim[src.rank - 1] != bias.dim[0])
        return PL_FAIL(PL_SHAPE,
                       "bias %s %s does not fit the last dimension of %s %s",
                       node->in[1]->name, pl_shape_text(bias, b),
                       node->in[0]->name, pl_shape_text(src, s));
    node->shape = src;
    return PL_OK;
}

static void bias_run(const pl_op_run *run)
{
    int64_t row = run->node->in[1]->shape.dim[0];
    run->state->kernels->bias(pl_run_count(run, run->node) / row, row,
                              pl_run_in(run, 0), pl_run_in(run, 1), run->out);
}

static void bias_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    (void)node;
    diff_in[0] = diff;
    diff_in[1] = pl_graph_unary(&pl_op_sum_rows, diff);
}

/* [..., c] -> [c] */
static pl_status sum_rows_shape(pl_node *node)
{
    pl_shape src = node->in[0]->shape;
    node->shape = PL_SHAPE(src.dim[src.rank - 1]);
    return PL_OK;
}

static void sum_rows_run(const pl_op_run *run)
{
    int64_t row = run->node->shape.dim[0];
    run->state->kernels->sum_rows(pl_run_count(run, run->node->in[0]) / row,
                                  row, pl_run_in(run, 0), run->out);
}

static pl_node *build(pl_node *const *in)
{
    return pl_bias(in[0], in[1]);
}

static const pl_op_case cases[] = {
    { .inputs = { { 2, { 3, 7 } }, { 1, { 7 } } }, .build = build },
    { .inputs = { { 3, { 2, 3, 5 } }, { 1, { 5 } } }, .build = build },
    { .inputs = { { 2, { 100, 128 } }, { 1, { 128 } } }, .build = build },
    { .build = NULL },
};

const pl_op pl_op_bias = {
    .name = "bias",
    .least_inputs = 2,
    .most_inputs = 2,
    .rowwise = true,
    .in_place = 1u << 0,
    .shape = bias_shape,
    .run = bias_run,
    .gradient = bias_gradient,
    .cases = cases,
};

const pl_op pl_op_sum_rows = {
    .name = "sum_rows",
    .least_inputs = 1,
    .most_inputs = 1,
    .shape = sum_rows_shape,
    .run = sum_rows_run,
};
