/* Pooling of images [batch, channels, height, width] over square windows. */
#include "graph/graph.h"
#include "tensor/shape.h"

static pl_node *add_pool(const pl_op *op, pl_node *src, int64_t size,
                         int64_t stride)
{
    if (src == NULL)
        return NULL;
    return pl_graph_add(src->graph, &(pl_node_opts) {
                                        .op = op,
                                        .size = size,
                                        .stride = stride,
                                        .input_count = 1,
                                        .in = { src },
                                    });
}

pl_node *pl_max_pool(pl_node *src, int64_t size, int64_t stride)
{
    return add_pool(&pl_op_max_pool, src, size, stride);
}

pl_node *pl_avg_pool(pl_node *src, int64_t size, int64_t stride)
{
    return add_pool(&pl_op_avg_pool, src, size, stride);
}

static pl_status pool_shape(pl_node *node)
{
    pl_shape src = node->in[0]->shape;
    char s[PL_SHAPE_TEXT];
    if (src.rank != 4 || !pl_shape_batched(src))
        return PL_FAIL(PL_SHAPE,
                       "pooling of %s %s: expected [batch, channels, height, "
                       "width]",
                       node->in[0]->name, pl_shape_text(src, s));
    if (node->size < 1 || node->stride < 1 || node->size > src.dim[2] ||
        node->size > src.dim[3])
        return PL_FAIL(PL_SHAPE,
                       "windows of %lld every %lld do not fit images %s",
                       (long long)node->size, (long long)node->stride,
                       pl_shape_text(src, s));
    node->shape = PL_SHAPE(src.dim[0], src.dim[1],
                           (src.dim[2] - node->size) / node->stride + 1,
                           (src.dim[3] - node->size) / node->stride + 1);
    return PL_OK;
}

/* Planes are independent, so the kernels see images of one channel. */
static pl_window sizes_of(const pl_node *node, pl_shape src, pl_shape dst)
{
    return (pl_window) {
        .channels = 1,
        .height = src.dim[2],
        .width = src.dim[3],
        .out_height = dst.dim[2],
        .out_width = dst.dim[3],
        .size = node->size,
        .stride = node->stride,
    };
}

/* Forward: all windows of `groups` planes. */
typedef void pool_kernel(const pl_window *w, int64_t groups, const float *src,
                         float *dst);

static int64_t vectors(const pl_op_run *run, int64_t plane)
{
    return plane * run->state->kernels->lanes;
}

static void pool_range(const pl_op_run *run, int64_t first, int64_t count,
                       pool_kernel *pool)
{
    const pl_node *node = run->node;
    pl_window w = sizes_of(node, node->in[0]->shape, node->shape);
    int64_t src = vectors(run, first * w.height * w.width);
    int64_t dst = vectors(run, first * w.out_height * w.out_width);
    pool(&w, count, pl_run_in(run, 0) + src, run->out + dst);
}

static void max_range(const pl_op_run *run, int64_t first, int64_t count)
{
    pool_range(run, first, count, run->state->kernels->max_pool);
}

static void max_run(const pl_op_run *run)
{
    pl_run_cut(run, pl_run_planes(run, run->node->shape.dim[1]), 1, max_range);
}

static void avg_range(const pl_op_run *run, int64_t first, int64_t count)
{
    pool_range(run, first, count, run->state->kernels->avg_pool);
}

static void avg_run(const pl_op_run *run)
{
    pl_run_cut(run, pl_run_planes(run, run->node->shape.dim[1]), 1, avg_range);
}

static void max_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    if (diff == NULL)
        return;
    diff_in[0] =
        pl_graph_add(node->graph, &(pl_node_opts) {
                                      .op = &pl_op_max_pool_grad,
                                      .shape = node->in[0]->shape,
                                      .size = node->size,
                                      .stride = node->stride,
                                      .input_count = 3,
                                      .in = { node->in[0], node, diff },
                                  });
}

static void avg_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    if (diff == NULL)
        return;
    diff_in[0] = pl_graph_add(node->graph, &(pl_node_opts) {
                                               .op = &pl_op_avg_pool_grad,
                                               .shape = node->in[0]->shape,
                                               .size = node->size,
                                               .stride = node->stride,
                                               .input_count = 1,
                                               .in = { diff },
                                           });
}

static void max_grad_range(const pl_op_run *run, int64_t first, int64_t count)
{
    const pl_node *node = run->node;
    pl_window w = sizes_of(node, node->shape, node->in[1]->shape);
    int64_t src = vectors(run, first * w.height * w.width);
    int64_t dst = vectors(run, first * w.out_height * w.out_width);
    run->state->kernels->max_pool_grad(&w, count, pl_run_in(run, 0) + src,
                                       pl_run_in(run, 1) + dst,
                                       pl_run_in(run, 2) + dst, run->out + src);
}

static void max_grad_run(const pl_op_run *run)
{
    pl_run_cut(run, pl_run_planes(run, run->node->shape.dim[1]), 1,
               max_grad_range);
}

static void avg_grad_range(const pl_op_run *run, int64_t first, int64_t count)
{
    const pl_node *node = run->node;
    pl_window w = sizes_of(node, node->shape, node->in[0]->shape);
    int64_t src = vectors(run, first * w.height * w.width);
    int64_t dst = vectors(run, first * w.out_height * w.out_width);
    run->state->kernels->avg_pool_grad(&w, count, pl_run_in(run, 0) + dst,
                                       run->out + src);
}

static void avg_grad_run(const pl_op_run *run)
{
    pl_run_cut(run, pl_run_planes(run, run->node->shape.dim[1]), 1,
               avg_grad_range);
}

static pl_node *build_max(pl_node *const *in)
{
    return pl_max_pool(in[0], 2, 2);
}

static pl_node *build_max_over(pl_node *const *in)
{
    return pl_max_pool(in[0], 3, 2);
}

static pl_node *build_avg(pl_node *const *in)
{
    return pl_avg_pool(in[0], 2, 2);
}

static pl_node *build_avg_over(pl_node *const *in)
{
    return pl_avg_pool(in[0], 3, 1);
}

#define IMAGES(c, h, w)                                                        \
    {                                                                          \
        4,                                                                     \
        {                                                                      \
            PL_BATCH, c, h, w                                                  \
        }                                                                      \
    }
static const pl_op_case cases_max[] = {
    { .inputs = { IMAGES(2, 4, 5) }, .build = build_max, .batch = 3 },
    { .inputs = { IMAGES(1, 7, 5) }, .build = build_max_over, .batch = 2 },
    { .inputs = { IMAGES(6, 28, 28) }, .build = build_max, .batch = 32 },
    { .build = NULL },
};
static const pl_op_case cases_avg[] = {
    { .inputs = { IMAGES(2, 4, 5) }, .build = build_avg, .batch = 3 },
    { .inputs = { IMAGES(1, 5, 6) }, .build = build_avg_over, .batch = 2 },
    { .inputs = { IMAGES(6, 28, 28) }, .build = build_avg, .batch = 32 },
    { .build = NULL },
};

const pl_op pl_op_max_pool = {
    .name = "max_pool",
    .least_inputs = 1,
    .most_inputs = 1,
    .rowwise = true,
    .layout = PL_OP_LANES,
    .blocked = true,
    .shape = pool_shape,
    .run = max_run,
    .gradient = max_gradient,
    .cases = cases_max,
};

/* inputs: src, dst, diff_dst */
const pl_op pl_op_max_pool_grad = {
    .name = "max_pool_grad",
    .least_inputs = 3,
    .most_inputs = 3,
    .rowwise = true,
    .layout = PL_OP_LANES,
    .blocked = true,
    .run = max_grad_run,
};

const pl_op pl_op_avg_pool = {
    .name = "avg_pool",
    .least_inputs = 1,
    .most_inputs = 1,
    .rowwise = true,
    .layout = PL_OP_LANES,
    .blocked = true,
    .shape = pool_shape,
    .run = avg_run,
    .gradient = avg_gradient,
    .cases = cases_avg,
};

const pl_op pl_op_avg_pool_grad = {
    .name = "avg_pool_grad",
    .least_inputs = 1,
    .most_inputs = 1,
    .rowwise = true,
    .layout = PL_OP_LANES,
    .blocked = true,
    .run = avg_grad_run,
};
