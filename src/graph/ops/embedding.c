/* Rows of a table by their numbers, which are float32 like all inputs: exact up
 * to 2^24.  A number outside the table gives a row of NaN, so that the loss
 * shows it, and no gradient.  Gradients of one row are added in the order of
 * the batch. */
#include "graph/graph.h"
#include "tensor/shape.h"

#include <math.h>
#include <string.h>

pl_node *pl_embedding(pl_node *ids, pl_node *table)
{
    return pl_graph_binary(&pl_op_embedding, ids, table);
}

static pl_status embedding_shape(pl_node *node)
{
    pl_shape ids = node->in[0]->shape, table = node->in[1]->shape;
    char i[PL_SHAPE_TEXT], t[PL_SHAPE_TEXT];
    if (ids.rank < 1 || ids.rank >= PL_MAX_RANK || table.rank != 2 ||
        pl_shape_batched(table))
        return PL_FAIL(PL_SHAPE,
                       "embedding of %s %s in %s %s: expected [n, ...] and "
                       "[rows, width]",
                       node->in[0]->name, pl_shape_text(ids, i),
                       node->in[1]->name, pl_shape_text(table, t));
    node->shape = ids;
    node->shape.dim[node->shape.rank++] = table.dim[1];
    return PL_OK;
}

/* The row of the table, or -1. */
static int64_t row_of(float id, int64_t rows)
{
    if (!(id >= 0 && id < (float)rows) || id != floorf(id))
        return -1;
    return (int64_t)id < rows ? (int64_t)id : -1;
}

static void embedding_run(const pl_op_run *run)
{
    pl_shape table = run->node->in[1]->shape;
    int64_t width = table.dim[1];
    int64_t count = pl_run_count(run, run->node->in[0]);
    const float *ids = pl_run_in(run, 0), *rows = pl_run_in(run, 1);
    float *dst = run->out;
    for (int64_t i = 0; i < count; i++, dst += width) {
        int64_t row = row_of(ids[i], table.dim[0]);
        if (row < 0)
            run->state->kernels->fill(width, NAN, dst);
        else
            memcpy(dst, rows + row * width, (size_t)width * sizeof *dst);
    }
}

static void embedding_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    diff_in[1] = pl_graph_add(node->graph, &(pl_node_opts) {
                                               .op = &pl_op_embedding_table,
                                               .shape = node->in[1]->shape,
                                               .input_count = 2,
                                               .in = { node->in[0], diff },
                                           });
}

static void table_run(const pl_op_run *run)
{
    pl_shape table = run->node->shape;
    int64_t width = table.dim[1];
    int64_t count = pl_run_count(run, run->node->in[0]);
    const pl_kernels *kernels = run->state->kernels;
    const float *ids = pl_run_in(run, 0), *diff = pl_run_in(run, 1);
    kernels->fill(table.dim[0] * width, 0, run->out);
    for (int64_t i = 0; i < count; i++, diff += width) {
        int64_t row = row_of(ids[i], table.dim[0]);
        float *to = run->out + row * width;
        if (row >= 0)
            kernels->add(width, to, diff, to);
    }
}

static pl_node *build(pl_node *const *in)
{
    return pl_embedding(pl_label_number(in[1]), in[0]);
}

/* Several numbers per row, two of them equal. */
static pl_node *build_pairs(pl_node *const *in)
{
    pl_node *ids = pl_reshape(pl_label_number(in[1]), PL_SHAPE(8, 2));
    return pl_embedding(ids, in[0]);
}

static const pl_op_case cases[] = {
    { .inputs = { { 2, { 7, 5 } }, { 1, { 9 } } },
      .build = build,
      .label_classes = 7 },
    { .inputs = { { 2, { 5, 3 } }, { 1, { 16 } } },
      .build = build_pairs,
      .label_classes = 5 },
    { .inputs = { { 2, { 1000, 64 } }, { 1, { 100 } } },
      .build = build,
      .label_classes = 1000 },
    { .build = NULL },
};

const pl_op pl_op_embedding = {
    .name = "embedding",
    .least_inputs = 2,
    .most_inputs = 2,
    .rowwise = true,
    .shape = embedding_shape,
    .run = embedding_run,
    .gradient = embedding_gradient,
    .cases = cases,
};

/* inputs: ids, diff_dst; its shape is the table's */
const pl_op pl_op_embedding_table = {
    .name = "embedding_table",
    .least_inputs = 2,
    .most_inputs = 2,
    .run = table_run,
};
