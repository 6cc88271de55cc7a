/* Mean and sum of all elements as a scalar; their gradient, `spread`, gives the
 * scalar's gradient to every element. */
#include "graph/graph.h"

pl_node *pl_mean(pl_node *src)
{
    return pl_graph_unary(&pl_op_mean, src);
}

pl_node *pl_sum(pl_node *src)
{
    return pl_graph_unary(&pl_op_sum, src);
}

static pl_status scalar_shape(pl_node *node)
{
    node->shape = PL_SCALAR;
    return PL_OK;
}

static void sum_run(const pl_op_run *run)
{
    int64_t count = pl_run_count(run, run->node->in[0]);
    run->out[0] = (float)run->state->kernels->sum(count, pl_run_in(run, 0));
}

static void mean_run(const pl_op_run *run)
{
    int64_t count = pl_run_count(run, run->node->in[0]);
    double sum = run->state->kernels->sum(count, pl_run_in(run, 0));
    run->out[0] = (float)(sum / (double)count);
}

/* Every element's gradient is the scalar's (mean: divided by their number). */
static pl_node *spread(pl_node *diff, pl_node *like, float mean)
{
    if (diff == NULL)
        return NULL;
    return pl_graph_add(diff->graph, &(pl_node_opts) {
                                         .op = &pl_op_spread,
                                         .shape = like->shape,
                                         .factor = mean,
                                         .input_count = 1,
                                         .in = { diff },
                                     });
}

static void sum_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    diff_in[0] = spread(diff, node->in[0], 0);
}

static void mean_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    diff_in[0] = spread(diff, node->in[0], 1);
}

static void spread_run(const pl_op_run *run)
{
    int64_t count = pl_run_count(run, run->node);
    float value = pl_run_in(run, 0)[0];
    if (run->node->factor != 0)
        value /= (float)count;
    run->state->kernels->fill(count, value, run->out);
}

static pl_node *build_mean(pl_node *const *in)
{
    return pl_mean(in[0]);
}

static pl_node *build_sum(pl_node *const *in)
{
    return pl_sum(in[0]);
}

static const pl_op_case cases_mean[] = {
    { .inputs = { { 2, { 3, 7 } } }, .build = build_mean },
    { .inputs = { { 2, { 100, 128 } } }, .build = build_mean },
    { .build = NULL },
};
static const pl_op_case cases_sum[] = {
    { .inputs = { { 1, { 5 } } }, .build = build_sum },
    { .inputs = { { 2, { 100, 128 } } }, .build = build_sum },
    { .build = NULL },
};

const pl_op pl_op_mean = {
    .name = "mean",
    .least_inputs = 1,
    .most_inputs = 1,
    .shape = scalar_shape,
    .run = mean_run,
    .gradient = mean_gradient,
    .cases = cases_mean,
};

const pl_op pl_op_sum = {
    .name = "sum",
    .least_inputs = 1,
    .most_inputs = 1,
    .shape = scalar_shape,
    .run = sum_run,
    .gradient = sum_gradient,
    .cases = cases_sum,
};

/* factor 1: the gradient of a mean; 0: of a sum. */
const pl_op pl_op_spread = {
    .name = "spread",
    .least_inputs = 1,
    .most_inputs = 1,
    .run = spread_run,
};
