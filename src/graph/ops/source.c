/* Nodes that compute nothing: values bound from outside. */
#include "graph/graph.h"

pl_node *pl_input(pl_graph *graph, const char *name, pl_dtype dtype,
                  pl_shape shape)
{
    return pl_graph_add(graph, &(pl_node_opts) {
                                   .op = &pl_op_input,
                                   .name = name,
                                   .dtype = dtype,
                                   .shape = shape,
                               });
}

static pl_status parameter_shape(pl_node *node)
{
    if (node->shape.rank > 0 && node->shape.dim[0] == PL_BATCH)
        return PL_FAIL(PL_SHAPE, "a parameter has no batch dimension");
    if (!(node->factor >= 0 && node->factor <= 1))
        return PL_FAIL(PL_USAGE,
                       "a running average with a rate of %g: expected 0 to 1",
                       (double)node->factor);
    return PL_OK;
}

pl_node *pl_parameter(pl_graph *graph, const char *name, pl_shape shape,
                      const char *init)
{
    return pl_graph_add(graph, &(pl_node_opts) {
                                   .op = &pl_op_parameter,
                                   .name = name,
                                   .shape = shape,
                                   .init = init,
                               });
}

pl_node *pl_statistic(pl_graph *graph, const char *name, pl_shape shape,
                      const char *init, float rate)
{
    return pl_graph_add(graph, &(pl_node_opts) {
                                   .op = &pl_op_parameter,
                                   .name = name,
                                   .shape = shape,
                                   .init = init,
                                   .averaged = true,
                                   .factor = rate,
                               });
}

/* The gradient of the loss with respect to itself: 1, or the share of the
 * batch that this execution computes. */
static void seed_run(const pl_op_run *run)
{
    run->out[0] = run->state->seed;
}

const pl_op pl_op_input = { .name = "input", .rowwise = true };
const pl_op pl_op_parameter = {
    .name = "parameter",
    .rowwise = true,
    .shape = parameter_shape,
};
const pl_op pl_op_seed = { .name = "seed", .run = seed_run };
