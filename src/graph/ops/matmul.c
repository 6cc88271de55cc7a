/* Three products, each the gradient of the others. */
#include "graph/graph.h"
#include "tensor/shape.h"

pl_node *pl_matmul(pl_node *a, pl_node *b)
{
    return pl_graph_binary(&pl_op_matmul, a, b);
}

pl_node *pl_matmul_nt(pl_node *a, pl_node *b)
{
    return pl_graph_binary(&pl_op_matmul_nt, a, b);
}

pl_node *pl_matmul_tn(pl_node *a, pl_node *b)
{
    return pl_graph_binary(&pl_op_matmul_tn, a, b);
}

static pl_status product_shape(pl_node *node)
{
    bool ta = node->op == &pl_op_matmul_tn, tb = node->op == &pl_op_matmul_nt;
    pl_shape a = node->in[0]->shape, b = node->in[1]->shape;
    char ta_text[PL_SHAPE_TEXT], tb_text[PL_SHAPE_TEXT];
    if (a.rank != 2 || b.rank != 2 || a.dim[!ta] != b.dim[tb])
        return PL_FAIL(PL_SHAPE, "%s of %s %s and %s %s: inner sizes differ",
                       node->op->name, node->in[0]->name,
                       pl_shape_text(a, ta_text), node->in[1]->name,
                       pl_shape_text(b, tb_text));
    if (b.dim[!tb] == PL_BATCH)
        return PL_FAIL(PL_SHAPE, "the batch must be the first dimension");
    node->shape = PL_SHAPE(a.dim[ta], b.dim[!tb]);
    return PL_OK;
}

/* Rows, columns and the inner size of a product in this run. */
static void sizes(const pl_op_run *run, int64_t *n, int64_t *m, int64_t *k)
{
    const pl_node *node = run->node;
    *m = node->shape.dim[1];
    *n = pl_run_count(run, node) / *m;
    *k = pl_run_count(run, node->in[0]) / *n;
}

static void matmul_run(const pl_op_run *run)
{
    int64_t n, m, k;
    sizes(run, &n, &m, &k);
    run->state->kernels->matmul_nn(n, m, k, pl_run_in(run, 0), run->in[1],
                                   run->out);
}

static void matmul_nt_run(const pl_op_run *run)
{
    int64_t n, m, k;
    sizes(run, &n, &m, &k);
    run->state->kernels->matmul_nt(n, m, k, run->in[0], pl_run_in(run, 1), NULL,
                                   run->out);
}

static void matmul_tn_run(const pl_op_run *run)
{
    int64_t n, m, k;
    sizes(run, &n, &m, &k);
    run->state->kernels->matmul_tn(n, m, k, pl_run_in(run, 0), run->in[1],
                                   run->out);
}

static void run_large(const pl_op_run *run)
{
    const pl_op *op = run->node->op;
    pl_dnn_product p = { .a_transposed = op == &pl_op_matmul_tn,
                         .b_transposed = op == &pl_op_matmul_nt,
                         .threads = run->state->threads };
    sizes(run, &p.n, &p.m, &p.k);
    if (!pl_dnn_gemm(&p, pl_run_in(run, 0), pl_run_in(run, 1), run->out))
        op->run(run);
}

/* A batch times weights [m, k], as in the gradient of a dense layer. */
static bool matmul_prepare_bf16(const pl_node *node, pl_dnn_opts *opts)
{
    pl_shape weights = node->in[1]->shape;
    opts->kind = PL_DNN_DENSE_SRC;
    opts->sizes =
        (pl_conv) { .channels = weights.dim[1], .outs = weights.dim[0] };
    return pl_shape_batched(node->in[0]->shape) && !pl_shape_batched(weights);
}

static void matmul_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    diff_in[0] = pl_matmul_nt(diff, node->in[1]);
    diff_in[1] = pl_matmul_tn(node->in[0], diff);
}

static void matmul_nt_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    diff_in[0] = pl_matmul(diff, node->in[1]);
    diff_in[1] = pl_matmul_tn(diff, node->in[0]);
}

static void matmul_tn_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    diff_in[0] = pl_matmul_nt(node->in[1], diff);
    diff_in[1] = pl_matmul(node->in[0], diff);
}

static int64_t product_multiply_adds(const pl_node *node)
{
    /* Elements of the result for one example times the inner size; if the batch
     * is the inner size, one example is one step of it. */
    pl_shape a = node->in[0]->shape;
    int64_t inner = a.dim[node->op != &pl_op_matmul_tn];
    return pl_node_row(node) * (inner == PL_BATCH ? 1 : inner);
}

static pl_node *build_nn(pl_node *const *in)
{
    return pl_matmul(in[0], in[1]);
}

static pl_node *build_nt(pl_node *const *in)
{
    return pl_matmul_nt(in[0], in[1]);
}

static pl_node *build_tn(pl_node *const *in)
{
    return pl_matmul_tn(in[0], in[1]);
}

static const pl_op_case cases_nn[] = {
    { .inputs = { { 2, { 3, 5 } }, { 2, { 5, 4 } } }, .build = build_nn },
    { .inputs = { { 2, { 37, 19 } }, { 2, { 19, 45 } } }, .build = build_nn },
    { .inputs = { { 2, { 128, 128 } }, { 2, { 128, 128 } } },
      .build = build_nn },
    { .build = NULL },
};
static const pl_op_case cases_nt[] = {
    { .inputs = { { 2, { 3, 5 } }, { 2, { 4, 5 } } }, .build = build_nt },
    { .inputs = { { 2, { 37, 19 } }, { 2, { 45, 19 } } }, .build = build_nt },
    { .inputs = { { 2, { 128, 128 } }, { 2, { 128, 128 } } },
      .build = build_nt },
    { .build = NULL },
};
static const pl_op_case cases_tn[] = {
    { .inputs = { { 2, { 5, 3 } }, { 2, { 5, 4 } } }, .build = build_tn },
    { .inputs = { { 2, { 19, 37 } }, { 2, { 19, 45 } } }, .build = build_tn },
    { .inputs = { { 2, { 128, 128 } }, { 2, { 128, 128 } } },
      .build = build_tn },
    { .build = NULL },
};

const pl_op pl_op_matmul = {
    .name = "matmul",
    .least_inputs = 2,
    .most_inputs = 2,
    .rowwise = true,
    .reads_views = 1u << 1,
    .shape = product_shape,
    .run = matmul_run,
    .run_large = run_large,
    .prepare_bf16 = matmul_prepare_bf16,
    .gradient = matmul_gradient,
    .multiply_adds = product_multiply_adds,
    .cases = cases_nn,
};

const pl_op pl_op_matmul_nt = {
    .name = "matmul_nt",
    .least_inputs = 2,
    .most_inputs = 2,
    .rowwise = true,
    .reads_views = 1u << 0,
    .shape = product_shape,
    .run = matmul_nt_run,
    .run_large = run_large,
    .gradient = matmul_nt_gradient,
    .multiply_adds = product_multiply_adds,
    .cases = cases_nt,
};

const pl_op pl_op_matmul_tn = {
    .name = "matmul_tn",
    .least_inputs = 2,
    .most_inputs = 2,
    .reads_views = 1u << 1,
    .shape = product_shape,
    .run = matmul_tn_run,
    .run_large = run_large,
    .gradient = matmul_tn_gradient,
    .multiply_adds = product_multiply_adds,
    .cases = cases_tn,
};
