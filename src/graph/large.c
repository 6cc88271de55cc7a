#include "graph/large.h"

#include "base/assert.h"
#include "tensor/shape.h"

/* A product is large from this many weights on: 4 MiB, beyond which they do
 * not stay in a core's cache between the parts of a batch. */
#define LARGE_PRODUCT (1 << 20)
/* Convolutions: multiply-adds of one example, all layers and directions. */
#define LARGE_CONV (16 << 20)

bool pl_plan_blocks(const pl_plan *plan, const pl_node *node, pl_shape shape)
{
    if (!plan->large || shape.rank != 4 || !pl_shape_batched(shape) ||
        !pl_dnn_blocked(plan->kernels, shape.dim[1]))
        return false;
    return node->op->blocked || plan->values[node->id].large;
}

int64_t pl_plan_blocked_count(const pl_kernels *kernels, pl_shape shape,
                              int64_t rows)
{
    int64_t block = kernels->lanes;
    int64_t blocks = (shape.dim[1] + block - 1) / block;
    return rows * blocks * block * shape.dim[2] * shape.dim[3];
}

static bool large_product(const pl_node *node)
{
    return node->op->run_large != NULL &&
           node->op->multiply_adds(node) >= LARGE_PRODUCT;
}

static bool wants_large(const pl_plan *plan, const bool *needed)
{
    int64_t convolutions = 0;
    bool products = false;
    for (int i = 0; i < plan->value_count; i++) {
        const pl_node *node = pl_graph_get(plan->graph, i);
        if (!needed[i])
            continue;
        if (node->op->prepare != NULL)
            convolutions += node->op->multiply_adds(node);
        products = products || large_product(node);
    }
    return products || convolutions >= LARGE_CONV;
}

/* The only node that reads `id`, or -1 when there are more or it is an
 * output. */
static int only_reader(const pl_plan *plan, const bool *needed, int id)
{
    int reader = -1;
    for (int i = 0; i < plan->output_count; i++)
        if (plan->outputs[i] == id)
            return -1;
    for (int i = id + 1; i < plan->value_count; i++) {
        const pl_node *node = pl_graph_get(plan->graph, i);
        for (int j = 0; needed[i] && j < node->input_count; j++) {
            if (node->in[j]->id != id)
                continue;
            if (reader >= 0)
                return -1;
            reader = i;
        }
    }
    return reader;
}

void pl_large_choose(pl_plan *plan, const pl_plan_opts *opts,
                     const bool *needed)
{
    plan->threads = 1;
    plan->large = opts->world != PL_WORLD_SMALL &&
                  pl_dnn_usable(plan->kernels) &&
                  (opts->world == PL_WORLD_LARGE || wants_large(plan, needed));
    if (!plan->large)
        return;
    plan->threads = pl_dnn_threads(opts->threads);
    for (int i = 0; i < plan->value_count; i++) {
        const pl_node *node = pl_graph_get(plan->graph, i);
        pl_value *value = &plan->values[i];
        if (!needed[i])
            continue;
        value->large =
            node->op->prepare != NULL || large_product(node) ||
            (opts->world == PL_WORLD_LARGE && node->op->run_large != NULL);
        int reader =
            node->op == &pl_op_conv2d ? only_reader(plan, needed, i) : -1;
        if (reader >= 0 &&
            pl_graph_get(plan->graph, reader)->op == &pl_op_relu) {
            value->relu = true;
            plan->values[reader].joined = true;
        }
    }
}

void pl_large_join_bias(pl_plan *plan)
{
    for (int i = 0; plan->large && i < plan->value_count; i++) {
        const pl_node *node = pl_graph_get(plan->graph, i);
        pl_value *value = &plan->values[i];
        if (node->op != &pl_op_conv2d_weights || !value->large)
            continue;
        for (int b = i + 1; b < plan->value_count; b++) {
            const pl_node *bias = pl_graph_get(plan->graph, b);
            if (bias->op != &pl_op_conv2d_bias || bias->in[0] != node->in[0] ||
                plan->values[b].place != PL_PLACE_DIFF)
                continue;
            value->bias = b;
            plan->values[b].joined = true;
            break;
        }
    }
}

static pl_dnn_opts op_opts(const pl_plan *plan)
{
    return (pl_dnn_opts) { .batch = plan->batch,
                           .kernels = plan->kernels,
                           .threads = plan->threads };
}

static pl_status prepare_node(pl_plan *plan, const pl_node *node)
{
    pl_value *value = &plan->values[node->id];
    if (!value->large || node->op->prepare == NULL)
        return PL_OK;
    pl_dnn_opts opts = op_opts(plan);
    node->op->prepare(node, &opts);
    opts.bias = opts.bias || value->bias > 0;
    opts.relu = value->relu;
    pl_status status = pl_dnn_op_new(&value->op, &opts);
    return status == PL_OK ? PL_OK : pl_context(status, "%s", node->name);
}

static pl_status prepare_conversion(pl_plan *plan, const pl_node *node,
                                    pl_layout to)
{
    pl_value *value = &plan->values[node->id];
    bool unblock = to == PL_LAYOUT_PLAIN && value->layout == PL_LAYOUT_BLOCKED;
    if (to != PL_LAYOUT_BLOCKED && !unblock)
        return PL_OK;
    pl_dnn_opts opts = op_opts(plan);
    opts.kind = unblock ? PL_DNN_UNBLOCK : PL_DNN_BLOCK;
    opts.sizes = (pl_conv) { .channels = node->shape.dim[1],
                             .height = node->shape.dim[2],
                             .width = node->shape.dim[3] };
    pl_status status = pl_dnn_op_new(&value->to[to], &opts);
    return status == PL_OK ? PL_OK : pl_context(status, "%s", node->name);
}

pl_status pl_large_prepare(pl_plan *plan)
{
    for (int s = 0; plan->large && s < plan->step_count; s++) {
        const pl_node *node = pl_graph_get(plan->graph, plan->steps[s].node);
        switch (plan->steps[s].kind) {
        case PL_STEP_RUN:
            PL_TRY(prepare_node(plan, node));
            break;
        case PL_STEP_TO_PLAIN:
            PL_TRY(prepare_conversion(plan, node, PL_LAYOUT_PLAIN));
            break;
        case PL_STEP_TO_BLOCKED:
            PL_TRY(prepare_conversion(plan, node, PL_LAYOUT_BLOCKED));
            break;
        case PL_STEP_TO_LANES:
            break;
        }
    }
    return PL_OK;
}

void pl_large_free(pl_plan *plan)
{
    for (int i = 0; plan->values != NULL && i < plan->value_count; i++) {
        pl_dnn_op_free(plan->values[i].op);
        for (int l = 0; l < PL_LAYOUTS; l++)
            pl_dnn_op_free(plan->values[i].to[l]);
    }
}
