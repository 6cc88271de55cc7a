/* Decides whether a plan uses oneDNN for the whole batch or our kernels for
 * parts of it, from the shapes and measured speed ratios, and prepares the
 * oneDNN primitives of a large plan (decision 005). */
#include "graph/large.h"

#include "base/assert.h"
#include "tensor/shape.h"

/* A product is large from this many weights on: 4 MiB, beyond which they do not
 * stay in a core's cache between parts of a batch. */
#define LARGE_PRODUCT (1 << 20)
/* Speedup of a product by oneDNN, which sees all rows at once and writes one
 * gradient instead of one per part.  Measured on one core: 1.3-1.7 at batch
 * 128, 1.3-5 at 32, of 1024 x 1024 to 4096 x 4096. */
#define PRODUCT_GAIN 1.5
/* From this many on, forward and backward, the gradients of several parts take
 * more memory than train/compute/dense_compute.c allows: one thread would do
 * all the work. */
#define MOST_PRODUCTS (16 << 20)
/* Estimated forward multiply-adds per example from which the large world is
 * considered; below, its threads synchronize more than they compute. */
#define LEAST_WORK (2 << 20)
/* Minimum speedup: its threads wait for each other in every operator, and
 * suffer more from other programs. */
#define LEAST_GAIN 1.2

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

/* The share of the blocks' channels that is not padding. */
static double filled(int64_t channels, int64_t block)
{
    int64_t blocks = (channels + block - 1) / block;
    return (double)channels / (double)(blocks * block);
}

/* Speedup of a convolution by oneDNN over our kernels.  Ours reach 80-95 % of a
 * core's multiply-adds for any sizes.  Measured forward and backward at batch
 * 32 on one core (EPYC Genoa): 64 channels of 3x3 1.75, 192 and more 2.2, 32
 * 1.25-1.5, 16 0.9-1.3, 5x5 1.2, first layers 0.8-1.1, and with 24, 37 or 50
 * channels 0.6-0.8. */
static double conv_gain(const pl_plan *plan, const pl_conv *c)
{
    int64_t block = plan->kernels->lanes;
    int64_t least = c->channels < c->outs ? c->channels : c->outs;
    bool winograd = block == 16 && c->stride == 1 && c->kernel_h == 3 &&
                    c->kernel_w == 3 && c->channels % block == 0 &&
                    c->outs % block == 0;
    double gain = winograd && least >= 64   ? 1.8
                  : winograd && least >= 32 ? 1.4
                                            : 1.15;
    double read = c->channels < block ? 0.8 : filled(c->channels, block);
    return gain * read * filled(c->outs, block);
}

/* Compare the time of both worlds, in multiply-adds of our kernels. */
static bool wants_large(const pl_plan *plan, const bool *needed)
{
    double small = 0, large = 0;
    int64_t work = 0, weights = 0;
    for (int i = 0; i < plan->value_count; i++) {
        const pl_node *node = pl_graph_get(plan->graph, i);
        if (!needed[i] || node->op->multiply_adds == NULL)
            continue;
        int64_t products = node->op->multiply_adds(node);
        double gain = large_product(node) ? PRODUCT_GAIN : 1;
        if (node->op->prepare != NULL) {
            pl_dnn_opts opts = { .batch = 0 };
            node->op->prepare(node, &opts);
            gain = conv_gain(plan, &opts.sizes);
        }
        weights += large_product(node) ? products : 0;
        small += (double)products;
        large += (double)products / gain;
        work += node->op->gradient != NULL ? products : 0;
    }
    return weights >= MOST_PRODUCTS ||
           (work >= LEAST_WORK && small >= LEAST_GAIN * large);
}

/* The only node that reads `id`, or -1 if there are several or it is an
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
    plan->bf16 = opts->bf16;
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
                           .threads = plan->threads,
                           .bf16 = plan->bf16 };
}

/* false: the node is not computed by a prepared operation. */
static bool describe_node(const pl_plan *plan, const pl_node *node,
                          pl_dnn_opts *opts)
{
    if (node->op->prepare == NULL)
        return plan->bf16 && node->op->prepare_bf16 != NULL &&
               node->op->prepare_bf16(node, opts);
    node->op->prepare(node, opts);
    return true;
}

static pl_status prepare_node(pl_plan *plan, const pl_node *node)
{
    pl_value *value = &plan->values[node->id];
    pl_dnn_opts opts = op_opts(plan);
    if (!value->large || !describe_node(plan, node, &opts))
        return PL_OK;
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
