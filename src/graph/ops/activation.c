/* Activations: elementwise functions whose gradient needs only the result, not
 * the input. */
#include "graph/graph.h"

#define ACTIVATION(op)                                                         \
    pl_node *pl_##op(pl_node *src)                                             \
    {                                                                          \
        return pl_graph_unary(&pl_op_##op, src);                               \
    }                                                                          \
                                                                               \
    static void op##_range(const pl_op_run *run, int64_t first, int64_t count) \
    {                                                                          \
        run->state->kernels->op(count, pl_run_in(run, 0) + first,              \
                                run->out + first);                             \
    }                                                                          \
                                                                               \
    static void op##_run(const pl_op_run *run)                                 \
    {                                                                          \
        pl_run_cut(run, pl_run_count(run, run->node), PL_CUT, op##_range);     \
    }                                                                          \
                                                                               \
    static void op##_gradient(pl_node *node, pl_node *diff, pl_node **diff_in) \
    {                                                                          \
        diff_in[0] = pl_graph_binary(&pl_op_##op##_grad, node, diff);          \
    }                                                                          \
                                                                               \
    static void op##_grad_range(const pl_op_run *run, int64_t first,           \
                                int64_t count)                                 \
    {                                                                          \
        run->state->kernels->op##_grad(count, pl_run_in(run, 0) + first,       \
                                       pl_run_in(run, 1) + first,              \
                                       run->out + first);                      \
    }                                                                          \
                                                                               \
    static void op##_grad_run(const pl_op_run *run)                            \
    {                                                                          \
        pl_run_cut(run, pl_run_count(run, run->node), PL_CUT,                  \
                   op##_grad_range);                                           \
    }                                                                          \
                                                                               \
    static pl_node *op##_build(pl_node *const *in)                             \
    {                                                                          \
        return pl_##op(in[0]);                                                 \
    }                                                                          \
                                                                               \
    static const pl_op_case op##_cases[] = {                                   \
        { .inputs = { { 2, { 3, 7 } } }, .build = op##_build },                \
        { .inputs = { { 2, { 100, 128 } } }, .build = op##_build },            \
        { .build = NULL },                                                     \
    };                                                                         \
                                                                               \
    const pl_op pl_op_##op = {                                                 \
        .name = #op,                                                           \
        .least_inputs = 1,                                                     \
        .most_inputs = 1,                                                      \
        .rowwise = true,                                                       \
        .layout = PL_OP_ANY,                                                   \
        .in_place = 1u << 0,                                                   \
        .shape = pl_node_same_shape,                                           \
        .run = op##_run,                                                       \
        .gradient = op##_gradient,                                             \
        .cases = op##_cases,                                                   \
    };                                                                         \
                                                                               \
    const pl_op pl_op_##op##_grad = {                                          \
        .name = #op "_grad",                                                   \
        .least_inputs = 2,                                                     \
        .most_inputs = 2,                                                      \
        .rowwise = true,                                                       \
        .layout = PL_OP_ANY,                                                   \
        .in_place = 1u << 1,                                                   \
        .shape = pl_node_same_shape,                                           \
        .run = op##_grad_run,                                                  \
    };

ACTIVATION(relu)
ACTIVATION(tanh)
ACTIVATION(sigmoid)
