/* A node repeated to a larger shape, by NumPy's rule: dimensions are compared
 * from the last on, and a dimension that is 1 or missing is repeated. The
 * gradient sums the repetitions (broadcast_sum), in order.
 *
 * The inner loop runs over the last dimension: each of its rows has one offset
 * in the small shape. */
#include "graph/graph.h"
#include "tensor/shape.h"

#include <string.h>

/* Dimension i of `shape`, extended to `rank` dimensions. */
static int64_t dim_at(pl_shape shape, int rank, int i)
{
    int at = i - (rank - shape.rank);
    return at >= 0 ? shape.dim[at] : 1;
}

/* The common shape; false if there is none. */
static bool common_shape(pl_shape a, pl_shape b, pl_shape *out)
{
    *out = (pl_shape) { .rank = a.rank > b.rank ? a.rank : b.rank };
    for (int i = 0; i < out->rank; i++) {
        int64_t x = dim_at(a, out->rank, i), y = dim_at(b, out->rank, i);
        if (x != y && x != 1 && y != 1)
            return false;
        out->dim[i] = x == 1 ? y : x;
    }
    return true;
}

pl_node *pl_broadcast(pl_node *src, pl_shape shape)
{
    if (src == NULL || pl_shape_equal(src->shape, shape))
        return src;
    return pl_graph_add(src->graph, &(pl_node_opts) {
                                        .op = &pl_op_broadcast,
                                        .shape = shape,
                                        .input_count = 1,
                                        .in = { src },
                                    });
}

void pl_broadcast_pair(pl_node **a, pl_node **b)
{
    pl_shape shape;
    if (*a == NULL || *b == NULL ||
        !common_shape((*a)->shape, (*b)->shape, &shape))
        return;
    *a = pl_broadcast(*a, shape);
    *b = pl_broadcast(*b, shape);
}

static pl_status broadcast_shape(pl_node *node)
{
    pl_shape src = node->in[0]->shape, both;
    char s[PL_SHAPE_TEXT], t[PL_SHAPE_TEXT];
    if (node->shape.rank < 1 || !common_shape(src, node->shape, &both) ||
        !pl_shape_equal(both, node->shape))
        return PL_FAIL(PL_SHAPE, "cannot repeat %s %s to %s", node->in[0]->name,
                       pl_shape_text(src, s), pl_shape_text(node->shape, t));
    return PL_OK;
}

/* Where a row of the last dimension of `large` begins in `small`. */
static int64_t small_offset(pl_shape small, pl_shape large, int64_t row)
{
    int64_t offset = 0, stride = dim_at(small, large.rank, large.rank - 1);
    for (int i = large.rank - 2; i >= 0; i--) {
        int64_t size = dim_at(small, large.rank, i);
        /* The first dimension, which may be the batch, takes the remainder. */
        int64_t index = i > 0 ? row % large.dim[i] : row;
        row /= i > 0 ? large.dim[i] : 1;
        offset += size == 1 ? 0 : index * stride;
        stride *= size;
    }
    return offset;
}

static void broadcast_run(const pl_op_run *run)
{
    pl_shape large = run->node->shape, small = run->node->in[0]->shape;
    int64_t count = pl_run_count(run, run->node);
    int64_t width = large.rank > 1 ? large.dim[large.rank - 1] : count;
    bool same = dim_at(small, large.rank, large.rank - 1) != 1;
    float *dst = run->out;
    for (int64_t r = 0; r < count / width; r++, dst += width) {
        const float *src = pl_run_in(run, 0) +
                           (large.rank > 1 ? small_offset(small, large, r) : 0);
        if (same || width == 1)
            memcpy(dst, src, (size_t)width * sizeof *dst);
        else
            run->state->kernels->fill(width, *src, dst);
    }
}

static void broadcast_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    diff_in[0] = pl_graph_add(node->graph, &(pl_node_opts) {
                                               .op = &pl_op_broadcast_sum,
                                               .shape = node->in[0]->shape,
                                               .input_count = 1,
                                               .in = { diff },
                                           });
}

static void sum_run(const pl_op_run *run)
{
    const pl_kernels *kernels = run->state->kernels;
    pl_shape small = run->node->shape, large = run->node->in[0]->shape;
    int64_t count = pl_run_count(run, run->node->in[0]);
    int64_t width = large.rank > 1 ? large.dim[large.rank - 1] : count;
    bool same = dim_at(small, large.rank, large.rank - 1) != 1;
    const float *src = pl_run_in(run, 0);
    kernels->fill(pl_run_count(run, run->node), 0, run->out);
    for (int64_t r = 0; r < count / width; r++, src += width) {
        float *dst =
            run->out + (large.rank > 1 ? small_offset(small, large, r) : 0);
        if (same || width == 1)
            kernels->add(width, dst, src, dst);
        else
            *dst += (float)kernels->sum(width, src);
    }
}

static pl_node *build_channels(pl_node *const *in)
{
    return pl_add(in[0], in[1]);
}

static pl_node *build_both(pl_node *const *in)
{
    return pl_multiply(in[0], in[1]);
}

static const pl_op_case cases[] = {
    { .inputs = { { 4, { PL_BATCH, 2, 3, 2 } }, { 3, { 2, 1, 1 } } },
      .build = build_channels,
      .batch = 3 },
    { .inputs = { { 2, { 3, 1 } }, { 2, { 1, 5 } } }, .build = build_both },
    { .inputs = { { 3, { PL_BATCH, 1, 4 } }, { 2, { 3, 1 } } },
      .build = build_both,
      .batch = 3 },
    { .inputs = { { 1, { 7 } }, { 1, { 1 } } }, .build = build_channels },
    { .inputs = { { 4, { PL_BATCH, 16, 28, 28 } }, { 3, { 16, 1, 1 } } },
      .build = build_channels,
      .batch = 32 },
    { .build = NULL },
};

const pl_op pl_op_broadcast = {
    .name = "broadcast",
    .least_inputs = 1,
    .most_inputs = 1,
    .rowwise = true,
    .shape = broadcast_shape,
    .run = broadcast_run,
    .gradient = broadcast_gradient,
    .cases = cases,
};

/* Row by row if the result is a batch; a gradient is not an input. */
const pl_op pl_op_broadcast_sum = {
    .name = "broadcast_sum",
    .least_inputs = 1,
    .most_inputs = 1,
    .run = sum_run,
};
