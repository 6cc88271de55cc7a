/* Zeros around images [batch, channels, height, width]; the gradient drops the
 * padding (crop). */
#include "graph/graph.h"
#include "tensor/shape.h"

#include <string.h>

static pl_node *add(const pl_op *op, pl_node *src, int64_t pad)
{
    if (src == NULL)
        return NULL;
    return pl_graph_add(src->graph, &(pl_node_opts) {
                                        .op = op,
                                        .pad = pad,
                                        .input_count = 1,
                                        .in = { src },
                                    });
}

pl_node *pl_pad(pl_node *src, int64_t pad)
{
    return pad == 0 ? src : add(&pl_op_pad, src, pad);
}

static pl_status check_images(const pl_node *node)
{
    pl_shape src = node->in[0]->shape;
    char s[PL_SHAPE_TEXT];
    if (src.rank != 4 || !pl_shape_batched(src))
        return PL_FAIL(PL_SHAPE,
                       "zeros around %s %s: expected [batch, channels, height, "
                       "width]",
                       node->in[0]->name, pl_shape_text(src, s));
    return PL_OK;
}

static pl_status pad_shape(pl_node *node)
{
    PL_TRY(check_images(node));
    pl_shape src = node->in[0]->shape;
    if (node->pad < 0 || node->pad > INT32_MAX)
        return PL_FAIL(PL_SHAPE, "%lld zeros on each side: expected 0 or more",
                       (long long)node->pad);
    node->shape = PL_SHAPE(src.dim[0], src.dim[1], src.dim[2] + 2 * node->pad,
                           src.dim[3] + 2 * node->pad);
    return PL_OK;
}

static pl_status crop_shape(pl_node *node)
{
    pl_shape src = node->in[0]->shape;
    node->shape = PL_SHAPE(src.dim[0], src.dim[1], src.dim[2] - 2 * node->pad,
                           src.dim[3] - 2 * node->pad);
    return PL_OK;
}

/* Floats per pixel of a plane, and the number of planes. */
static int64_t unit_of(const pl_op_run *run)
{
    return run->lanes || run->blocked ? run->state->kernels->lanes : 1;
}

static int64_t planes_of(const pl_op_run *run)
{
    int64_t channels = run->node->shape.dim[1];
    if (run->lanes || run->blocked)
        return pl_run_planes(run, channels);
    return run->state->rows * channels;
}

static void pad_range(const pl_op_run *run, int64_t first, int64_t count)
{
    const pl_node *node = run->node;
    pl_shape from = node->in[0]->shape, to = node->shape;
    int64_t unit = unit_of(run), row = from.dim[3] * unit;
    int64_t plane = to.dim[2] * to.dim[3] * unit;
    const float *src = pl_run_in(run, 0) + first * from.dim[2] * row;
    float *dst = run->out + first * plane;
    memset(dst, 0, (size_t)(count * plane) * sizeof *dst);
    dst += (node->pad * to.dim[3] + node->pad) * unit;
    for (int64_t p = 0; p < count; p++, dst += plane)
        for (int64_t y = 0; y < from.dim[2]; y++, src += row)
            memcpy(dst + y * to.dim[3] * unit, src, (size_t)row * sizeof *dst);
}

static void pad_run(const pl_op_run *run)
{
    pl_run_cut(run, planes_of(run), 1, pad_range);
}

static void crop_range(const pl_op_run *run, int64_t first, int64_t count)
{
    const pl_node *node = run->node;
    pl_shape from = node->in[0]->shape, to = node->shape;
    int64_t unit = unit_of(run), row = to.dim[3] * unit;
    int64_t plane = from.dim[2] * from.dim[3] * unit;
    const float *src = pl_run_in(run, 0) + first * plane +
                       (node->pad * from.dim[3] + node->pad) * unit;
    float *dst = run->out + first * to.dim[2] * row;
    for (int64_t p = 0; p < count; p++, src += plane)
        for (int64_t y = 0; y < to.dim[2]; y++, dst += row)
            memcpy(dst, src + y * from.dim[3] * unit,
                   (size_t)row * sizeof *dst);
}

static void crop_run(const pl_op_run *run)
{
    pl_run_cut(run, planes_of(run), 1, crop_range);
}

static void pad_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    diff_in[0] = add(&pl_op_crop, diff, node->pad);
}

static pl_node *build(pl_node *const *in)
{
    return pl_pad(in[0], 2);
}

/* In the layout of a pooling. */
static pl_node *build_pooled(pl_node *const *in)
{
    return pl_max_pool(pl_pad(pl_avg_pool(in[0], 2, 1), 1), 2, 1);
}

static const pl_op_case cases[] = {
    { .inputs = { { 4, { PL_BATCH, 2, 3, 4 } } }, .build = build, .batch = 3 },
    { .inputs = { { 4, { PL_BATCH, 2, 3, 4 } } },
      .build = build_pooled,
      .batch = 5 },
    { .inputs = { { 4, { PL_BATCH, 16, 28, 28 } } },
      .build = build,
      .batch = 32 },
    { .build = NULL },
};

const pl_op pl_op_pad = {
    .name = "pad",
    .least_inputs = 1,
    .most_inputs = 1,
    .rowwise = true,
    .layout = PL_OP_ANY,
    .shape = pad_shape,
    .run = pad_run,
    .gradient = pad_gradient,
    .cases = cases,
};

const pl_op pl_op_crop = {
    .name = "crop",
    .least_inputs = 1,
    .most_inputs = 1,
    .rowwise = true,
    .layout = PL_OP_ANY,
    .shape = crop_shape,
    .run = crop_run,
};
