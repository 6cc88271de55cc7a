/* The operators with which fuse.c replaces chains; they are never in a graph,
 * so they have neither shape rules nor gradients. */
#include "graph/fuse.h"
#include "tensor/shape.h"

static const pl_fused *fused_of(const pl_node *node)
{
    return (const pl_fused *)(const void *)node;
}

static void block_run(const pl_op_run *run)
{
    run->state->kernels->conv_block(
        &fused_of(run->node)->block, pl_run_groups(run), pl_run_in(run, 0),
        pl_run_in(run, 1),
        run->node->input_count == 3 ? pl_run_in(run, 2) : NULL, run->scratch,
        run->out, (int32_t *)(void *)run->workspace);
}

static int64_t block_scratch(const pl_node *node, int lanes)
{
    return pl_conv_block_scratch(&fused_of(node)->block, lanes);
}

/* One cell index per element. */
static int64_t block_workspace(const pl_node *node, int64_t batch)
{
    return fused_of(node)->indexed ? pl_shape_count(node->shape, batch) : 0;
}

static int64_t block_multiply_adds(const pl_node *node)
{
    return pl_conv_products(&fused_of(node)->block.conv);
}

static void unpool_run(const pl_op_run *run)
{
    run->state->kernels->unpool(
        &fused_of(run->node)->block, pl_run_groups(run), pl_run_in(run, 0),
        (const int32_t *)(const void *)run->in_workspace, pl_run_in(run, 1),
        run->out);
}

const pl_op pl_op_conv_block = {
    .name = "conv_block",
    .least_inputs = 2,
    .most_inputs = 3,
    .rowwise = true,
    .layout = PL_OP_LANES,
    .run = block_run,
    .workspace = block_workspace,
    .scratch = block_scratch,
    .multiply_adds = block_multiply_adds,
};

const pl_op pl_op_unpool = {
    .name = "unpool",
    .least_inputs = 2,
    .most_inputs = 2,
    .rowwise = true,
    .layout = PL_OP_LANES,
    .run = unpool_run,
};
