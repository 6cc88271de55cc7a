/* A dense layer: src [n, k] times weights [m, k] transposed, plus bias. Reads
 * uint8 rows in place through a view. Large products use oneDNN; the gradients
 * for source and weights are separate operators. */
#include "graph/graph.h"
#include "tensor/shape.h"

pl_node *pl_inner(pl_node *src, pl_node *weights, pl_node *bias)
{
    if (src == NULL || weights == NULL)
        return NULL;
    return pl_graph_add(src->graph, &(pl_node_opts) {
                                        .op = &pl_op_inner,
                                        .input_count = bias != NULL ? 3 : 2,
                                        .in = { src, weights, bias },
                                    });
}

static pl_status inner_shape(pl_node *node)
{
    pl_shape src = node->in[0]->shape, weights = node->in[1]->shape;
    char s[PL_SHAPE_TEXT], w[PL_SHAPE_TEXT], b[PL_SHAPE_TEXT];
    if (src.rank != 2 || weights.rank != 2 || src.dim[1] != weights.dim[1])
        return PL_FAIL(PL_SHAPE,
                       "inner product of %s %s with weights %s %s: expected "
                       "[n, k] and [m, k]",
                       node->in[0]->name, pl_shape_text(src, s),
                       node->in[1]->name, pl_shape_text(weights, w));
    if (node->input_count == 3 &&
        !pl_shape_equal(node->in[2]->shape, PL_SHAPE(weights.dim[0])))
        return PL_FAIL(PL_SHAPE, "bias %s %s: expected [%lld]",
                       node->in[2]->name, pl_shape_text(node->in[2]->shape, b),
                       (long long)weights.dim[0]);
    node->shape = PL_SHAPE(src.dim[0], weights.dim[0]);
    return PL_OK;
}

static void inner_run(const pl_op_run *run)
{
    const pl_node *node = run->node, *weights = node->in[1];
    int64_t m = weights->shape.dim[0], k = weights->shape.dim[1];
    run->state->kernels->matmul_nt(
        pl_run_count(run, node) / m, m, k, run->in[0], pl_run_in(run, 1),
        node->input_count == 3 ? pl_run_in(run, 2) : NULL, run->out);
}

static void inner_run_large(const pl_op_run *run)
{
    const pl_node *node = run->node;
    pl_dnn_product p = { .m = node->in[1]->shape.dim[0],
                         .k = node->in[1]->shape.dim[1],
                         .threads = run->state->threads };
    p.n = pl_run_count(run, node) / p.m;
    if (!pl_dnn_inner(&p, pl_run_in(run, 0), pl_run_in(run, 1),
                      node->input_count == 3 ? pl_run_in(run, 2) : NULL,
                      run->scratch, run->out))
        inner_run(run);
}

static pl_conv dense_sizes(pl_shape weights)
{
    return (pl_conv) { .channels = weights.dim[1], .outs = weights.dim[0] };
}

static bool inner_prepare_bf16(const pl_node *node, pl_dnn_opts *opts)
{
    opts->kind = PL_DNN_DENSE;
    opts->sizes = dense_sizes(node->in[1]->shape);
    opts->bias = node->input_count == 3;
    return pl_shape_batched(node->shape);
}

static int64_t inner_scratch_large(const pl_node *node, int64_t batch)
{
    return pl_shape_count(node->shape, batch);
}

static void inner_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    diff_in[0] = pl_matmul(diff, node->in[1]);
    diff_in[1] = pl_graph_binary(&pl_op_inner_weights, diff, node->in[0]);
    if (node->input_count == 3)
        diff_in[2] = pl_graph_unary(&pl_op_sum_rows, diff);
}

static int64_t inner_multiply_adds(const pl_node *node)
{
    return node->in[1]->shape.dim[0] * node->in[1]->shape.dim[1];
}

/* diff [n, m], src [n, k] -> [m, k] */
static pl_status inner_weights_shape(pl_node *node)
{
    node->shape =
        PL_SHAPE(node->in[0]->shape.dim[1], node->in[1]->shape.dim[1]);
    return PL_OK;
}

static void inner_weights_run(const pl_op_run *run)
{
    const pl_node *diff = run->node->in[0];
    int64_t m = run->node->shape.dim[0], k = run->node->shape.dim[1];
    int64_t n = pl_run_count(run, diff) / m;
    run->state->kernels->matmul_tn(m, k, n, pl_run_in(run, 0), run->in[1],
                                   run->out);
}

static bool multiply_large(const pl_op_run *run, bool add)
{
    pl_dnn_product p = { .n = run->node->shape.dim[0],
                         .m = run->node->shape.dim[1],
                         .a_transposed = true,
                         .add = add,
                         .threads = run->state->threads };
    p.k = pl_run_count(run, run->node->in[0]) / p.n;
    return pl_dnn_gemm(&p, pl_run_in(run, 0), pl_run_in(run, 1), run->out);
}

static void inner_weights_run_large(const pl_op_run *run)
{
    if (!multiply_large(run, false))
        inner_weights_run(run);
}

bool pl_inner_weights_add(const pl_op_run *run)
{
    return multiply_large(run, true);
}

static bool inner_weights_prepare_bf16(const pl_node *node, pl_dnn_opts *opts)
{
    opts->kind = PL_DNN_DENSE_WEIGHTS;
    opts->sizes = dense_sizes(node->shape);
    return pl_shape_batched(node->in[0]->shape);
}

static int64_t inner_weights_multiply_adds(const pl_node *node)
{
    return node->shape.dim[0] * node->shape.dim[1];
}

static pl_node *build(pl_node *const *in)
{
    return pl_inner(in[0], in[1], in[2]);
}

static const pl_op_case cases[] = {
    { .inputs = { { 2, { 3, 5 } }, { 2, { 2, 5 } }, { 1, { 2 } } },
      .build = build },
    { .inputs = { { 2, { 100, 784 } }, { 2, { 10, 784 } }, { 1, { 10 } } },
      .build = build },
    { .inputs = { { 2, { 17, 33 } }, { 2, { 29, 33 } }, { 1, { 29 } } },
      .build = build },
    { .build = NULL },
};

const pl_op pl_op_inner = {
    .name = "inner",
    .least_inputs = 2,
    .most_inputs = 3,
    .rowwise = true,
    .reads_views = 1u << 0,
    .shape = inner_shape,
    .run = inner_run,
    .run_large = inner_run_large,
    .scratch_large = inner_scratch_large,
    .prepare_bf16 = inner_prepare_bf16,
    .gradient = inner_gradient,
    .multiply_adds = inner_multiply_adds,
    .cases = cases,
};

const pl_op pl_op_inner_weights = {
    .name = "inner_weights",
    .least_inputs = 2,
    .most_inputs = 2,
    .reads_views = 1u << 1,
    .shape = inner_weights_shape,
    .run = inner_weights_run,
    .run_large = inner_weights_run_large,
    .prepare_bf16 = inner_weights_prepare_bf16,
    .multiply_adds = inner_weights_multiply_adds,
};
