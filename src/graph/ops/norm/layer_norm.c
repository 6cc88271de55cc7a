/* Layer normalization (Ba et al. 2016): each row of the last dimension gets
 * mean 0 and variance 1, then every element a scale and a shift.  Mean and
 * inverse deviation of each row are kept in the workspace for the gradient.
 * Rows are independent, so tests and training are alike. */
#include "graph/graph.h"
#include "tensor/shape.h"

#include <math.h>

/* Kept per row. */
enum {
    MEAN,
    INVERSE,
    KEPT,
};

pl_node *pl_layer_norm(pl_node *src, pl_node *scale, pl_node *shift,
                       float epsilon)
{
    if (src == NULL || scale == NULL || shift == NULL)
        return NULL;
    return pl_graph_add(src->graph, &(pl_node_opts) {
                                        .op = &pl_op_layer_norm,
                                        .factor = epsilon,
                                        .input_count = 3,
                                        .in = { src, scale, shift },
                                    });
}

static int64_t width_of(const pl_node *node)
{
    return node->shape.dim[node->shape.rank - 1];
}

static pl_status norm_shape(pl_node *node)
{
    pl_shape src = node->in[0]->shape;
    char s[PL_SHAPE_TEXT], p[PL_SHAPE_TEXT];
    if (src.rank < 2)
        return PL_FAIL(PL_SHAPE, "normalization of %s %s: expected [n, ..., c]",
                       node->in[0]->name, pl_shape_text(src, s));
    int64_t width = width_of(node->in[0]);
    for (int i = 1; i < node->input_count; i++)
        if (!pl_shape_equal(node->in[i]->shape, PL_SHAPE(width)))
            return PL_FAIL(
                PL_SHAPE, "%s %s: expected [%lld], the last dimension of %s",
                node->in[i]->name, pl_shape_text(node->in[i]->shape, p),
                (long long)width, node->in[0]->name);
    if (!(node->factor > 0) || !isfinite(node->factor))
        return PL_FAIL(PL_USAGE, "an epsilon of %g: expected a number above 0",
                       (double)node->factor);
    node->shape = src;
    return PL_OK;
}

static int64_t kept_count(const pl_node *node, int64_t batch)
{
    return KEPT * (pl_shape_count(node->shape, batch) / width_of(node));
}

static void norm_run(const pl_op_run *run)
{
    const pl_kernels *k = run->state->kernels;
    int64_t width = width_of(run->node);
    int64_t rows = pl_run_count(run, run->node) / width;
    const float *src = pl_run_in(run, 0);
    float *dst = run->out, *kept = run->workspace;
    for (int64_t r = 0; r < rows;
         r++, src += width, dst += width, kept += KEPT) {
        double n = (double)width;
        float mean = (float)(k->sum(width, src) / n);
        double variance = k->products(width, src, mean, src, mean) / n;
        float inverse = (float)(1 / sqrt(variance + (double)run->node->factor));
        k->blend(width, src, inverse, NULL, 0, -mean * inverse, dst);
        k->multiply(width, dst, pl_run_in(run, 1), dst);
        k->add(width, dst, pl_run_in(run, 2), dst);
        kept[MEAN] = mean;
        kept[INVERSE] = inverse;
    }
}

/* Input 0 of the gradients is the result, whose workspace holds the moments. */
static void norm_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    pl_node *src = node->in[0], *scale = node->in[1];
    diff_in[0] = pl_graph_add(node->graph, &(pl_node_opts) {
                                               .op = &pl_op_layer_norm_src,
                                               .input_count = 4,
                                               .in = { node, src, scale, diff },
                                           });
    diff_in[1] = pl_graph_add(node->graph, &(pl_node_opts) {
                                               .op = &pl_op_layer_norm_scale,
                                               .input_count = 3,
                                               .in = { node, src, diff },
                                           });
    diff_in[2] = pl_graph_unary(&pl_op_sum_rows, diff);
}

/* With g = diff * scale and x normalized: (g - mean g - x mean(g x)) / s. */
static void src_run(const pl_op_run *run)
{
    const pl_kernels *k = run->state->kernels;
    int64_t width = width_of(run->node);
    int64_t rows = pl_run_count(run, run->node) / width;
    const float *src = pl_run_in(run, 1), *diff = pl_run_in(run, 3),
                *kept = run->in_workspace;
    float *dst = run->out;
    for (int64_t r = 0; r < rows;
         r++, src += width, diff += width, dst += width, kept += KEPT) {
        double n = (double)width, inverse = (double)kept[INVERSE];
        k->multiply(width, diff, pl_run_in(run, 2), dst);
        double sum = k->sum(width, dst);
        double slope = inverse * inverse * inverse *
                       k->products(width, src, kept[MEAN], dst, 0) / n;
        double add = slope * (double)kept[MEAN] - inverse * sum / n;
        k->blend(width, dst, kept[INVERSE], src, (float)-slope, (float)add,
                 dst);
    }
}

static pl_status scale_shape(pl_node *node)
{
    node->shape = PL_SHAPE(width_of(node->in[0]));
    return PL_OK;
}

static int64_t row_scratch(const pl_node *node, int lanes)
{
    (void)lanes;
    return node->shape.dim[0];
}

static void scale_run(const pl_op_run *run)
{
    const pl_kernels *k = run->state->kernels;
    int64_t width = run->node->shape.dim[0];
    int64_t rows = pl_run_count(run, run->node->in[0]) / width;
    const float *src = pl_run_in(run, 1), *diff = pl_run_in(run, 2),
                *kept = run->in_workspace;
    float *row = run->scratch;
    k->fill(width, 0, run->out);
    for (int64_t r = 0; r < rows;
         r++, src += width, diff += width, kept += KEPT) {
        k->blend(width, src, kept[INVERSE], NULL, 0,
                 -kept[MEAN] * kept[INVERSE], row);
        k->multiply(width, row, diff, row);
        k->add(width, run->out, row, run->out);
    }
}

static pl_node *build(pl_node *const *in)
{
    return pl_layer_norm(in[0], in[1], in[2], 1e-3f);
}

static const pl_op_case cases[] = {
    { .inputs = { { 2, { 3, 7 } }, { 1, { 7 } }, { 1, { 7 } } },
      .build = build },
    { .inputs = { { 3, { PL_BATCH, 2, 5 } }, { 1, { 5 } }, { 1, { 5 } } },
      .build = build,
      .batch = 3 },
    { .inputs = { { 2, { 100, 128 } }, { 1, { 128 } }, { 1, { 128 } } },
      .build = build },
    { .build = NULL },
};

const pl_op pl_op_layer_norm = {
    .name = "layer_norm",
    .least_inputs = 3,
    .most_inputs = 3,
    .rowwise = true,
    .shape = norm_shape,
    .run = norm_run,
    .workspace = kept_count,
    .gradient = norm_gradient,
    .cases = cases,
};

/* inputs: dst, src, scale, diff_dst */
const pl_op pl_op_layer_norm_src = {
    .name = "layer_norm_src",
    .least_inputs = 4,
    .most_inputs = 4,
    .rowwise = true,
    .shape = pl_node_same_shape,
    .run = src_run,
};

/* inputs: dst, src, diff_dst */
const pl_op pl_op_layer_norm_scale = {
    .name = "layer_norm_scale",
    .least_inputs = 3,
    .most_inputs = 3,
    .shape = scale_shape,
    .run = scale_run,
    .scratch = row_scratch,
};
