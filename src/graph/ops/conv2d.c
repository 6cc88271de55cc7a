/* Convolution of images [n, channels, height, width]; weights are [outs,
 * channels, kernel height, kernel width]. */
#include "graph/graph.h"
#include "tensor/shape.h"

pl_node *pl_conv2d(pl_node *src, pl_node *weights, pl_node *bias,
                   int64_t stride, int64_t pad)
{
    if (src == NULL || weights == NULL)
        return NULL;
    return pl_graph_add(src->graph, &(pl_node_opts) {
                                        .op = &pl_op_conv2d,
                                        .stride = stride,
                                        .pad = pad,
                                        .input_count = bias != NULL ? 3 : 2,
                                        .in = { src, weights, bias },
                                    });
}

/* The sizes, from the shapes of source, weights and result. */
static pl_conv sizes_of(const pl_node *node, pl_shape src, pl_shape weights,
                        pl_shape dst)
{
    return (pl_conv) {
        .channels = src.dim[1],
        .height = src.dim[2],
        .width = src.dim[3],
        .outs = dst.dim[1],
        .out_height = dst.dim[2],
        .out_width = dst.dim[3],
        .kernel_h = weights.dim[2],
        .kernel_w = weights.dim[3],
        .stride = node->stride,
        .pad = node->pad,
    };
}

int64_t pl_conv_products(const pl_conv *c)
{
    return c->outs * c->out_height * c->out_width * c->channels * c->kernel_h *
           c->kernel_w;
}

static int64_t out_size(int64_t in, int64_t kernel, const pl_node *node)
{
    return (in + 2 * node->pad - kernel) / node->stride + 1;
}

static pl_status check_sizes(const pl_node *node)
{
    pl_shape src = node->in[0]->shape, w = node->in[1]->shape;
    char s[PL_SHAPE_TEXT], t[PL_SHAPE_TEXT], b[PL_SHAPE_TEXT];
    if (src.rank != 4 || !pl_shape_batched(src) || w.rank != 4 ||
        src.dim[1] != w.dim[1])
        return PL_FAIL(
            PL_SHAPE,
            "convolution of %s %s with weights %s %s: expected "
            "[batch, channels, height, width] and [outs, channels, kernel, "
            "kernel]",
            node->in[0]->name, pl_shape_text(src, s), node->in[1]->name,
            pl_shape_text(w, t));
    if (node->stride < 1 || node->pad < 0 || node->pad >= w.dim[2] ||
        node->pad >= w.dim[3])
        return PL_FAIL(PL_SHAPE,
                       "stride %lld and padding %lld: expected a stride of at "
                       "least 1 and a padding below the kernel's size",
                       (long long)node->stride, (long long)node->pad);
    if (src.dim[2] + 2 * node->pad < w.dim[2] ||
        src.dim[3] + 2 * node->pad < w.dim[3])
        return PL_FAIL(PL_SHAPE, "kernel %s is larger than the image %s",
                       pl_shape_text(w, t), pl_shape_text(src, s));
    if (node->input_count == 3 &&
        !pl_shape_equal(node->in[2]->shape, PL_SHAPE(w.dim[0])))
        return PL_FAIL(PL_SHAPE, "bias %s %s: expected [%lld]",
                       node->in[2]->name, pl_shape_text(node->in[2]->shape, b),
                       (long long)w.dim[0]);
    return PL_OK;
}

static pl_status conv2d_shape(pl_node *node)
{
    PL_TRY(check_sizes(node));
    pl_shape src = node->in[0]->shape, w = node->in[1]->shape;
    node->shape =
        PL_SHAPE(src.dim[0], w.dim[0], out_size(src.dim[2], w.dim[2], node),
                 out_size(src.dim[3], w.dim[3], node));
    return PL_OK;
}

pl_conv pl_conv2d_sizes(const pl_node *node)
{
    return sizes_of(node, node->in[0]->shape, node->in[1]->shape, node->shape);
}

static int64_t conv2d_scratch(const pl_node *node, int lanes)
{
    pl_conv c = pl_conv2d_sizes(node);
    return pl_conv_scratch(&c, lanes);
}

static void conv2d_run(const pl_op_run *run)
{
    pl_conv c = pl_conv2d_sizes(run->node);
    run->state->kernels->conv(
        &c, pl_run_groups(run), pl_run_in(run, 0), pl_run_in(run, 1),
        run->node->input_count == 3 ? pl_run_in(run, 2) : NULL, run->scratch,
        run->out);
}

static void conv2d_prepare(const pl_node *node, pl_dnn_opts *opts)
{
    opts->kind = PL_DNN_CONV;
    opts->sizes = pl_conv2d_sizes(node);
    opts->bias = node->input_count == 3;
}

/* A gradient node with the same stride and padding, and a given shape. */
static pl_node *add_gradient(const pl_op *op, const pl_node *node,
                             pl_shape shape, pl_node *a, pl_node *b)
{
    if (a == NULL || b == NULL)
        return NULL;
    return pl_graph_add(node->graph, &(pl_node_opts) {
                                         .op = op,
                                         .shape = shape,
                                         .stride = node->stride,
                                         .pad = node->pad,
                                         .input_count = 2,
                                         .in = { a, b },
                                     });
}

static void conv2d_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    pl_node *src = node->in[0], *weights = node->in[1];
    diff_in[0] =
        add_gradient(&pl_op_conv2d_src, node, src->shape, diff, weights);
    diff_in[1] =
        add_gradient(&pl_op_conv2d_weights, node, weights->shape, diff, src);
    if (node->input_count == 3)
        diff_in[2] = pl_graph_unary(&pl_op_conv2d_bias, diff);
}

static int64_t conv2d_multiply_adds(const pl_node *node)
{
    pl_conv c = pl_conv2d_sizes(node);
    return pl_conv_products(&c);
}

/* inputs: diff_dst, weights */
static pl_conv src_sizes(const pl_node *node)
{
    return sizes_of(node, node->shape, node->in[1]->shape, node->in[0]->shape);
}

static int64_t src_scratch(const pl_node *node, int lanes)
{
    pl_conv c = src_sizes(node);
    return pl_conv_src_scratch(&c, lanes);
}

static void src_run(const pl_op_run *run)
{
    pl_conv c = src_sizes(run->node);
    run->state->kernels->conv_src(&c, pl_run_groups(run), pl_run_in(run, 0),
                                  pl_run_in(run, 1), run->scratch, run->out);
}

static void src_prepare(const pl_node *node, pl_dnn_opts *opts)
{
    opts->kind = PL_DNN_CONV_SRC;
    opts->sizes = src_sizes(node);
}

static int64_t src_multiply_adds(const pl_node *node)
{
    pl_conv c = src_sizes(node);
    return pl_conv_products(&c);
}

/* inputs: diff_dst, src */
static pl_conv weights_sizes(const pl_node *node)
{
    return sizes_of(node, node->in[1]->shape, node->shape, node->in[0]->shape);
}

static int64_t weights_scratch(const pl_node *node, int lanes)
{
    pl_conv c = weights_sizes(node);
    return pl_conv_scratch(&c, lanes);
}

static void weights_run(const pl_op_run *run)
{
    pl_conv c = weights_sizes(run->node);
    run->state->kernels->conv_weights(&c, pl_run_groups(run), pl_run_in(run, 0),
                                      pl_run_in(run, 1), run->scratch,
                                      run->out);
}

static void weights_prepare(const pl_node *node, pl_dnn_opts *opts)
{
    opts->kind = PL_DNN_CONV_WEIGHTS;
    opts->sizes = weights_sizes(node);
}

static int64_t weights_multiply_adds(const pl_node *node)
{
    pl_conv c = weights_sizes(node);
    return pl_conv_products(&c);
}

/* diff [n, outs, height, width] -> [outs] */
static pl_status bias_shape(pl_node *node)
{
    node->shape = PL_SHAPE(node->in[0]->shape.dim[1]);
    return PL_OK;
}

static void bias_run(const pl_op_run *run)
{
    pl_shape diff = run->node->in[0]->shape;
    pl_conv c = { .outs = diff.dim[1],
                  .out_height = diff.dim[2],
                  .out_width = diff.dim[3] };
    run->state->kernels->conv_bias(&c, pl_run_groups(run), pl_run_in(run, 0),
                                   run->out);
}

static pl_node *build(pl_node *const *in)
{
    return pl_conv2d(in[0], in[1], in[2], 1, 0);
}

static pl_node *build_padded(pl_node *const *in)
{
    return pl_conv2d(in[0], in[1], in[2], 1, 2);
}

static pl_node *build_strided(pl_node *const *in)
{
    return pl_conv2d(in[0], in[1], in[2], 2, 1);
}

#define IMAGES(c, h, w)                                                        \
    {                                                                          \
        4,                                                                     \
        {                                                                      \
            PL_BATCH, c, h, w                                                  \
        }                                                                      \
    }
#define WEIGHTS(o, c, h, w)                                                    \
    {                                                                          \
        4,                                                                     \
        {                                                                      \
            o, c, h, w                                                         \
        }                                                                      \
    }
#define BIAS(o)                                                                \
    {                                                                          \
        1,                                                                     \
        {                                                                      \
            o                                                                  \
        }                                                                      \
    }
static const pl_op_case cases[] = {
    { .inputs = { IMAGES(2, 4, 3), WEIGHTS(3, 2, 2, 3), BIAS(3) },
      .build = build,
      .batch = 2 },
    { .inputs = { IMAGES(1, 3, 4), WEIGHTS(2, 1, 3, 3), BIAS(2) },
      .build = build_padded,
      .batch = 3 },
    { .inputs = { IMAGES(2, 5, 4), WEIGHTS(2, 2, 3, 2), BIAS(2) },
      .build = build_strided,
      .batch = 2 },
    { .inputs = { IMAGES(3, 9, 11), WEIGHTS(7, 3, 5, 3), BIAS(7) },
      .build = build,
      .batch = 19 },
    { .inputs = { IMAGES(5, 8, 7), WEIGHTS(9, 5, 4, 7), BIAS(9) },
      .build = build_strided,
      .batch = 33 },
    { .inputs = { IMAGES(1, 28, 28), WEIGHTS(6, 1, 5, 5), BIAS(6) },
      .build = build_padded,
      .batch = 32 },
    { .inputs = { IMAGES(6, 14, 14), WEIGHTS(16, 6, 5, 5), BIAS(16) },
      .build = build,
      .batch = 32 },
    { .build = NULL },
};

const pl_op pl_op_conv2d = {
    .name = "conv2d",
    .least_inputs = 2,
    .most_inputs = 3,
    .rowwise = true,
    .layout = PL_OP_LANES,
    .shape = conv2d_shape,
    .run = conv2d_run,
    .prepare = conv2d_prepare,
    .scratch = conv2d_scratch,
    .gradient = conv2d_gradient,
    .multiply_adds = conv2d_multiply_adds,
    .cases = cases,
};

const pl_op pl_op_conv2d_src = {
    .name = "conv2d_src",
    .least_inputs = 2,
    .most_inputs = 2,
    .rowwise = true,
    .layout = PL_OP_LANES,
    .run = src_run,
    .prepare = src_prepare,
    .scratch = src_scratch,
    .multiply_adds = src_multiply_adds,
};

const pl_op pl_op_conv2d_weights = {
    .name = "conv2d_weights",
    .least_inputs = 2,
    .most_inputs = 2,
    .layout = PL_OP_LANES,
    .run = weights_run,
    .prepare = weights_prepare,
    .scratch = weights_scratch,
    .multiply_adds = weights_multiply_adds,
};

const pl_op pl_op_conv2d_bias = {
    .name = "conv2d_bias",
    .least_inputs = 1,
    .most_inputs = 1,
    .layout = PL_OP_LANES,
    .shape = bias_shape,
    .run = bias_run,
};
