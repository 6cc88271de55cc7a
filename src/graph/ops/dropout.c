/* Dropout (Srivastava et al. 2014), scaled in training.
 *
 * The mask is a function of the batch's key, the node and the element's number
 * in the whole batch, so it does not depend on threads and shards. The result
 * is linear in the input, so the gradient is the same operator on the gradient,
 * with the same mask, which is recomputed: that is cheaper than storing it, and
 * nothing of the forward pass must be kept.
 *
 * Elements are numbered row by row, so it works on plain rows, which a
 * following dense layer needs anyway. */
#include "base/rng.h"
#include "graph/graph.h"
#include "tensor/shape.h"

#include <math.h>

static pl_node *add(pl_node *src, float rate, int64_t mask)
{
    if (src == NULL)
        return NULL;
    return pl_graph_add(src->graph, &(pl_node_opts) {
                                        .op = &pl_op_dropout,
                                        .factor = rate,
                                        .mask = mask,
                                        .input_count = 1,
                                        .in = { src },
                                    });
}

pl_node *pl_dropout(pl_node *src, float rate)
{
    if (src == NULL || rate == 0)
        return src;
    return add(src, rate, pl_graph_count(src->graph));
}

static pl_status dropout_shape(pl_node *node)
{
    if (!(node->factor > 0 && node->factor < 1))
        return PL_FAIL(PL_USAGE,
                       "a dropout rate of %g: expected 0 or more and below 1",
                       (double)node->factor);
    return pl_node_same_shape(node);
}

static void dropout_range(const pl_op_run *run, int64_t first, int64_t count)
{
    const pl_node *node = run->node;
    const pl_exec_state *state = run->state;
    double rate = (double)node->factor;
    bool batched = pl_shape_batched(node->shape);
    pl_mask mask = {
        .key = pl_rng_key(state->key, (uint64_t)node->mask),
        .first = first + (batched ? state->first_row * pl_node_row(node) : 0),
        .least = (uint32_t)lround(rate * 65536),
        .scale = (float)(1 / (1 - rate)),
    };
    state->kernels->dropout(count, &mask, pl_run_in(run, 0) + first,
                            run->out + first);
}

static void dropout_run(const pl_op_run *run)
{
    pl_run_cut(run, pl_run_count(run, run->node), PL_CUT, dropout_range);
}

static void dropout_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    diff_in[0] = add(diff, node->factor, node->mask);
}

static pl_node *build(pl_node *const *in)
{
    return pl_dropout(in[0], 0.5f);
}

static pl_node *build_seldom(pl_node *const *in)
{
    return pl_dropout(in[0], 0.1f);
}

static const pl_op_case cases[] = {
    { .inputs = { { 2, { 3, 7 } } }, .build = build },
    { .inputs = { { 3, { PL_BATCH, 3, 7 } } },
      .build = build_seldom,
      .batch = 5 },
    { .inputs = { { 2, { 100, 128 } } }, .build = build },
    { .build = NULL },
};

const pl_op pl_op_dropout = {
    .name = "dropout",
    .least_inputs = 1,
    .most_inputs = 1,
    .rowwise = true,
    .training = true,
    .in_place = 1u << 0,
    .shape = dropout_shape,
    .run = dropout_run,
    .gradient = dropout_gradient,
    .cases = cases,
};
