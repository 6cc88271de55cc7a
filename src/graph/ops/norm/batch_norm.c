/* Batch normalization (Ioffe and Szegedy 2015) of [n, channels, ...]: each
 * channel gets mean 0 and variance 1 over the batch, then a scale and a shift.
 *
 * batch_moments gives the mean and variance to normalize by: the batch's own in
 * training, otherwise, or if frozen, the running averages.  The gradient of a
 * running average is the value it approaches (train/optim/optim.h), so all
 * strategies combine the statistics of batches like gradients: in worker order.
 * The running variance is the unbiased one, as in PyTorch. */
#include "graph/channels.h"
#include "graph/graph.h"
#include "tensor/shape.h"

#include <math.h>
#include <string.h>

/* Rows of the moments: [3, channels]. */
enum {
    MEAN,
    VARIANCE, /* of the batch, divided by the count */
    UNBIASED, /* divided by the count less one */
    MOMENTS,
};

/* Rows of the sums: [2, channels]. */
enum {
    DIFF,      /* the gradient of the shift */
    DIFF_NORM, /* of the gradient times the normalized input: gradient of the
                  scale */
    SUMS,
};

static pl_node *row_of(pl_node *matrix, int64_t row)
{
    if (matrix == NULL)
        return NULL;
    return pl_graph_add(matrix->graph, &(pl_node_opts) {
                                           .op = &pl_op_row,
                                           .mask = row,
                                           .input_count = 1,
                                           .in = { matrix },
                                       });
}

pl_node *pl_batch_norm(pl_node *src, pl_node *scale, pl_node *shift,
                       pl_node *mean, pl_node *variance, float epsilon)
{
    if (src == NULL || scale == NULL || shift == NULL || mean == NULL ||
        variance == NULL)
        return NULL;
    bool frozen = !mean->averaged || mean->factor == 0;
    pl_node *moments =
        pl_graph_add(src->graph, &(pl_node_opts) {
                                     .op = &pl_op_batch_moments,
                                     .frozen = frozen,
                                     .input_count = 3,
                                     .in = { src, mean, variance },
                                 });
    row_of(moments, MEAN);
    row_of(moments, UNBIASED);
    if (pl_graph_status(src->graph) != PL_OK)
        return NULL;
    return pl_graph_add(src->graph, &(pl_node_opts) {
                                        .op = &pl_op_batch_norm,
                                        .factor = epsilon,
                                        .frozen = frozen,
                                        .input_count = 4,
                                        .in = { src, moments, scale, shift },
                                    });
}

static pl_status moments_shape(pl_node *node)
{
    pl_shape src = node->in[0]->shape;
    char s[PL_SHAPE_TEXT], p[PL_SHAPE_TEXT];
    if (src.rank < 2)
        return PL_FAIL(PL_SHAPE,
                       "normalization of %s %s: expected [n, channels, ...]",
                       node->in[0]->name, pl_shape_text(src, s));
    for (int i = 1; i < node->input_count; i++)
        if (!pl_shape_equal(node->in[i]->shape, PL_SHAPE(src.dim[1])))
            return PL_FAIL(
                PL_SHAPE, "%s %s: expected [%lld], the channels of %s",
                node->in[i]->name, pl_shape_text(node->in[i]->shape, p),
                (long long)src.dim[1], node->in[0]->name);
    node->shape = PL_SHAPE(MOMENTS, src.dim[1]);
    return PL_OK;
}

/* Sums in double precision, one per channel. */
static int64_t sums_scratch(const pl_node *node, int lanes)
{
    (void)lanes;
    return 2 * pl_channels_room(node->in[0]->shape.dim[1]);
}

static void moments_range(const pl_op_run *run, int64_t first, int64_t count)
{
    pl_channels c = pl_channels_of(run, run->node->in[0]->shape);
    const float *src = pl_run_in(run, 0);
    double n = (double)pl_channels_numbers(&c);
    double *sums = (double *)(void *)run->scratch + first;
    float *mean = run->out, *variance = run->out + VARIANCE * c.channels,
          *unbiased = run->out + UNBIASED * c.channels;
    pl_channels_products(&c, first, count, src, NULL, NULL, NULL, sums);
    for (int64_t k = 0; k < count; k++)
        mean[first + k] = (float)(sums[k] / n);
    pl_channels_products(&c, first, count, src, mean, src, mean, sums);
    for (int64_t k = 0; k < count; k++) {
        variance[first + k] = (float)(sums[k] / n);
        unbiased[first + k] = (float)(sums[k] / (n > 1 ? n - 1 : 1));
    }
}

static void moments_run(const pl_op_run *run)
{
    pl_channels c = pl_channels_of(run, run->node->in[0]->shape);
    if (run->state->training && !run->node->frozen) {
        pl_run_cut_over(run, run->node->in[0], c.channels,
                        pl_channels_grain(&c), moments_range);
        return;
    }
    size_t bytes = (size_t)c.channels * sizeof(float);
    memcpy(run->out, pl_run_in(run, 1), bytes);
    memcpy(run->out + VARIANCE * c.channels, pl_run_in(run, 2), bytes);
    memcpy(run->out + UNBIASED * c.channels, pl_run_in(run, 2), bytes);
}

/* The values that running averages approach; none if frozen.  These row nodes
 * are added right after the moments: computed in the forward pass, they are
 * ready before all gradients. */
static void moments_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    (void)diff;
    if (node->frozen)
        return;
    diff_in[1] = pl_graph_get(node->graph, node->id + 1);
    diff_in[2] = pl_graph_get(node->graph, node->id + 2);
}

static pl_status norm_shape(pl_node *node)
{
    pl_shape src = node->in[0]->shape;
    char p[PL_SHAPE_TEXT];
    for (int i = 2; i < node->input_count; i++)
        if (!pl_shape_equal(node->in[i]->shape, PL_SHAPE(src.dim[1])))
            return PL_FAIL(
                PL_SHAPE, "%s %s: expected [%lld], the channels of %s",
                node->in[i]->name, pl_shape_text(node->in[i]->shape, p),
                (long long)src.dim[1], node->in[0]->name);
    if (!(node->factor > 0) || !isfinite(node->factor))
        return PL_FAIL(PL_USAGE, "an epsilon of %g: expected a number above 0",
                       (double)node->factor);
    node->shape = src;
    return PL_OK;
}

/* Three lists with a number per channel. */
static int64_t lists_scratch(const pl_node *node, int lanes)
{
    (void)lanes;
    return 3 * pl_channels_room(node->shape.dim[1]);
}

/* Padding of the last block, after the last channel, is zero. */
static float *list_of(const pl_op_run *run, int list, int64_t first,
                      int64_t count)
{
    int64_t channels = run->node->shape.dim[1];
    int64_t room = pl_channels_room(channels);
    float *start = run->scratch + list * room;
    if (first + count == channels)
        memset(start + channels, 0, (size_t)(room - channels) * sizeof *start);
    return start;
}

static float inverse(const float *moments, int64_t channels, int64_t channel,
                     float epsilon)
{
    double variance = (double)moments[VARIANCE * channels + channel];
    return (float)(1 / sqrt(variance + (double)epsilon));
}

static void norm_range(const pl_op_run *run, int64_t first, int64_t count)
{
    pl_channels c = pl_channels_of(run, run->node->shape);
    const float *moments = pl_run_in(run, 1), *scale = pl_run_in(run, 2),
                *shift = pl_run_in(run, 3);
    float *factor = list_of(run, 0, first, count),
          *add = list_of(run, 1, first, count);
    for (int64_t k = first; k < first + count; k++) {
        factor[k] =
            scale[k] * inverse(moments, c.channels, k, run->node->factor);
        add[k] =
            (float)((double)shift[k] - (double)moments[k] * (double)factor[k]);
    }
    pl_channels_blend(&c, first, count, pl_run_in(run, 0), factor, NULL, NULL,
                      add, run->out);
}

static void norm_run(const pl_op_run *run)
{
    pl_channels c = pl_channels_of(run, run->node->shape);
    pl_run_cut(run, c.channels, pl_channels_grain(&c), norm_range);
}

static void norm_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    pl_node *src = node->in[0], *moments = node->in[1];
    pl_node *sums = pl_graph_add(node->graph, &(pl_node_opts) {
                                                  .op = &pl_op_batch_norm_sums,
                                                  .factor = node->factor,
                                                  .input_count = 3,
                                                  .in = { src, moments, diff },
                                              });
    if (sums == NULL)
        return;
    diff_in[0] = pl_graph_add(
        node->graph, &(pl_node_opts) {
                         .op = &pl_op_batch_norm_src,
                         .factor = node->factor,
                         .frozen = node->frozen,
                         .input_count = 5,
                         .in = { src, moments, node->in[2], sums, diff },
                     });
    diff_in[1] = moments; /* any non-NULL node: only requests the gradient */
    diff_in[2] = row_of(sums, DIFF_NORM);
    diff_in[3] = row_of(sums, DIFF);
}

static pl_status sums_shape(pl_node *node)
{
    node->shape = PL_SHAPE(SUMS, node->in[0]->shape.dim[1]);
    return PL_OK;
}

static void sums_range(const pl_op_run *run, int64_t first, int64_t count)
{
    pl_channels c = pl_channels_of(run, run->node->in[0]->shape);
    const float *src = pl_run_in(run, 0), *moments = pl_run_in(run, 1),
                *diff = pl_run_in(run, 2);
    double *sums = (double *)(void *)run->scratch + first;
    float *out = run->out + first;
    pl_channels_products(&c, first, count, diff, NULL, NULL, NULL, sums);
    for (int64_t k = 0; k < count; k++)
        out[k] = (float)sums[k];
    pl_channels_products(&c, first, count, src, moments, diff, NULL, sums);
    for (int64_t k = 0; k < count; k++)
        out[c.channels + k] =
            (float)(sums[k] * (double)inverse(moments, c.channels, first + k,
                                              run->node->factor));
}

static void sums_run(const pl_op_run *run)
{
    pl_channels c = pl_channels_of(run, run->node->in[0]->shape);
    pl_run_cut_over(run, run->node->in[0], c.channels, pl_channels_grain(&c),
                    sums_range);
}

/* scale / s (diff - (sum diff) / n - x (sum diff x) / n) with x normalized and
 * s the standard deviation, as factors of diff and src; frozen: only the first
 * term. */
static void src_range(const pl_op_run *run, int64_t first, int64_t count)
{
    pl_channels c = pl_channels_of(run, run->node->shape);
    const float *moments = pl_run_in(run, 1), *scale = pl_run_in(run, 2),
                *sums = pl_run_in(run, 3);
    float *of_diff = list_of(run, 0, first, count),
          *of_src = list_of(run, 1, first, count),
          *add = list_of(run, 2, first, count);
    double n = (double)pl_channels_numbers(&c);
    for (int64_t k = first; k < first + count; k++) {
        double by = (double)inverse(moments, c.channels, k, run->node->factor);
        double factor = (double)scale[k] * by;
        double slope = factor * by * (double)sums[c.channels + k] / n;
        of_diff[k] = (float)factor;
        of_src[k] = run->node->frozen ? 0 : (float)-slope;
        add[k] = run->node->frozen ? 0
                                   : (float)(slope * (double)moments[k] -
                                             factor * (double)sums[k] / n);
    }
    pl_channels_blend(&c, first, count, pl_run_in(run, 4), of_diff,
                      run->node->frozen ? NULL : pl_run_in(run, 0), of_src, add,
                      run->out);
}

static void src_run(const pl_op_run *run)
{
    pl_channels c = pl_channels_of(run, run->node->shape);
    pl_run_cut(run, c.channels, pl_channels_grain(&c), src_range);
}

/* [rows, n] -> [n] */
static pl_status row_shape(pl_node *node)
{
    node->shape = PL_SHAPE(node->in[0]->shape.dim[1]);
    return PL_OK;
}

static void row_run(const pl_op_run *run)
{
    int64_t count = run->node->shape.dim[0];
    memcpy(run->out, pl_run_in(run, 0) + run->node->mask * count,
           (size_t)count * sizeof *run->out);
}

static pl_node *running(pl_node *scale, float rate)
{
    return pl_statistic(scale->graph, "running", scale->shape, "ones", rate);
}

static pl_node *build(pl_node *const *in)
{
    pl_node *one = running(in[1], 0.1f);
    return pl_batch_norm(in[0], in[1], in[2], one, one, 1e-3f);
}

static pl_node *build_frozen(pl_node *const *in)
{
    pl_node *one = running(in[1], 0);
    return pl_batch_norm(in[0], in[1], in[2], one, one, 1e-3f);
}

/* In the layout of a convolution or pooling. */
static pl_node *build_pooled(pl_node *const *in)
{
    pl_node *one = running(in[1], 0.1f);
    pl_node *pooled = pl_avg_pool(in[0], 2, 1);
    return pl_max_pool(pl_batch_norm(pooled, in[1], in[2], one, one, 1e-3f), 1,
                       1);
}

static const pl_op_case cases[] = {
    { .inputs = { { 2, { 9, 5 } }, { 1, { 5 } }, { 1, { 5 } } },
      .build = build },
    { .inputs = { { 4, { PL_BATCH, 3, 2, 3 } }, { 1, { 3 } }, { 1, { 3 } } },
      .build = build,
      .batch = 5 },
    { .inputs = { { 4, { PL_BATCH, 3, 3, 2 } }, { 1, { 3 } }, { 1, { 3 } } },
      .build = build_pooled,
      .batch = 5 },
    { .inputs = { { 4, { PL_BATCH, 5, 4, 4 } }, { 1, { 5 } }, { 1, { 5 } } },
      .build = build_pooled,
      .batch = 35 },
    { .inputs = { { 3, { PL_BATCH, 3, 5 } }, { 1, { 3 } }, { 1, { 3 } } },
      .build = build_frozen,
      .batch = 4 },
    { .inputs = { { 4, { PL_BATCH, 64, 16, 16 } },
                  { 1, { 64 } },
                  { 1, { 64 } } },
      .build = build,
      .batch = 32 },
    { .build = NULL },
};

static const pl_op_case cases_moments[] = {
    { .inputs = { { 2, { 4, 3 } }, { 1, { 3 } }, { 1, { 3 } } },
      .build = build },
    { .build = NULL },
};

const pl_op pl_op_batch_moments = {
    .name = "batch_moments",
    .least_inputs = 3,
    .most_inputs = 3,
    .rowwise = true,
    .mixes = true,
    .layout = PL_OP_ANY,
    .shape = moments_shape,
    .run = moments_run,
    .scratch = sums_scratch,
    .gradient = moments_gradient,
    .cases = cases_moments,
};

const pl_op pl_op_batch_norm = {
    .name = "batch_norm",
    .least_inputs = 4,
    .most_inputs = 4,
    .rowwise = true,
    .mixes = true,
    .layout = PL_OP_ANY,
    .shape = norm_shape,
    .run = norm_run,
    .scratch = lists_scratch,
    .gradient = norm_gradient,
    .cases = cases,
};

const pl_op pl_op_batch_norm_sums = {
    .name = "batch_norm_sums",
    .least_inputs = 3,
    .most_inputs = 3,
    .layout = PL_OP_ANY,
    .shape = sums_shape,
    .run = sums_run,
    .scratch = sums_scratch,
};

const pl_op pl_op_batch_norm_src = {
    .name = "batch_norm_src",
    .least_inputs = 5,
    .most_inputs = 5,
    .layout = PL_OP_ANY,
    .in_place = 1u << 4,
    .shape = pl_node_same_shape,
    .run = src_run,
    .scratch = lists_scratch,
};

const pl_op pl_op_row = {
    .name = "row",
    .least_inputs = 1,
    .most_inputs = 1,
    .shape = row_shape,
    .run = row_run,
};
