/* The mean of each channel of images [batch, channels, height, width] of any
 * size; its gradient gives every pixel the same share. */
#include "graph/graph.h"
#include "tensor/shape.h"

#define LANES_MOST 16

pl_node *pl_global_avg_pool(pl_node *src)
{
    return pl_flatten(pl_graph_unary(&pl_op_global_avg_pool, src));
}

static pl_status global_shape(pl_node *node)
{
    pl_shape src = node->in[0]->shape;
    char s[PL_SHAPE_TEXT];
    if (src.rank != 4 || !pl_shape_batched(src))
        return PL_FAIL(PL_SHAPE,
                       "global pooling of %s %s: expected [batch, channels, "
                       "height, width]",
                       node->in[0]->name, pl_shape_text(src, s));
    node->shape = PL_SHAPE(src.dim[0], src.dim[1], 1, 1);
    return PL_OK;
}

static int64_t pixels_of(pl_shape shape)
{
    return shape.dim[2] * shape.dim[3];
}

/* A plane is one channel of an example, or of a vector of examples, or a vector
 * of channels of an example. */
static bool in_vectors(const pl_op_run *run)
{
    return run->lanes || run->blocked;
}

static int64_t planes_of(const pl_op_run *run)
{
    int64_t channels = run->node->shape.dim[1];
    return in_vectors(run) ? pl_run_planes(run, channels)
                           : run->state->rows * channels;
}

static void global_range(const pl_op_run *run, int64_t first, int64_t count)
{
    const pl_kernels *kernels = run->state->kernels;
    int64_t pixels = pixels_of(run->node->in[0]->shape);
    int64_t unit = in_vectors(run) ? kernels->lanes : 1;
    const float *src = pl_run_in(run, 0) + first * pixels * unit;
    float *dst = run->out + first * unit;
    for (int64_t p = 0; p < count; p++, src += pixels * unit, dst += unit) {
        double sums[LANES_MOST] = { 0 };
        if (unit == 1)
            sums[0] = kernels->sum(pixels, src);
        else
            kernels->column_products(pixels, unit, src, NULL, NULL, NULL, sums);
        for (int64_t l = 0; l < unit; l++)
            dst[l] = (float)(sums[l] / (double)pixels);
    }
}

static void global_run(const pl_op_run *run)
{
    pl_run_cut_over(run, run->node->in[0], planes_of(run), 1, global_range);
}

static void global_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    diff_in[0] =
        pl_graph_add(node->graph, &(pl_node_opts) {
                                      .op = &pl_op_global_avg_pool_grad,
                                      .shape = node->in[0]->shape,
                                      .input_count = 1,
                                      .in = { diff },
                                  });
}

static void grad_range(const pl_op_run *run, int64_t first, int64_t count)
{
    int64_t pixels = pixels_of(run->node->shape);
    int64_t unit = in_vectors(run) ? run->state->kernels->lanes : 1;
    const float *src = pl_run_in(run, 0) + first * unit;
    float *dst = run->out + first * pixels * unit;
    float share = 1.0f / (float)pixels;
    for (int64_t p = 0; p < count; p++, src += unit)
        for (int64_t i = 0; i < pixels; i++, dst += unit)
            for (int64_t l = 0; l < unit; l++)
                dst[l] = src[l] * share;
}

static void grad_run(const pl_op_run *run)
{
    pl_run_cut(run, planes_of(run), 1, grad_range);
}

static pl_node *build(pl_node *const *in)
{
    return pl_global_avg_pool(in[0]);
}

/* In the layout of a pooling. */
static pl_node *build_pooled(pl_node *const *in)
{
    return pl_global_avg_pool(pl_max_pool(in[0], 2, 1));
}

static const pl_op_case cases[] = {
    { .inputs = { { 4, { PL_BATCH, 3, 2, 4 } } }, .build = build, .batch = 3 },
    { .inputs = { { 4, { PL_BATCH, 3, 3, 4 } } },
      .build = build_pooled,
      .batch = 5 },
    { .inputs = { { 4, { PL_BATCH, 64, 8, 8 } } },
      .build = build,
      .batch = 32 },
    { .build = NULL },
};

const pl_op pl_op_global_avg_pool = {
    .name = "global_avg_pool",
    .least_inputs = 1,
    .most_inputs = 1,
    .rowwise = true,
    .layout = PL_OP_ANY,
    .shape = global_shape,
    .run = global_run,
    .gradient = global_gradient,
    .cases = cases,
};

const pl_op pl_op_global_avg_pool_grad = {
    .name = "global_avg_pool_grad",
    .least_inputs = 1,
    .most_inputs = 1,
    .rowwise = true,
    .layout = PL_OP_ANY,
    .run = grad_run,
};
