/* Concatenates two nodes along a dimension after the first; the gradient splits
 * them (slice). */
#include "graph/graph.h"
#include "tensor/shape.h"

#include <string.h>

pl_node *pl_concat(pl_node *a, pl_node *b, int axis)
{
    if (a == NULL || b == NULL)
        return NULL;
    return pl_graph_add(a->graph, &(pl_node_opts) {
                                      .op = &pl_op_concat,
                                      .axis = axis,
                                      .input_count = 2,
                                      .in = { a, b },
                                  });
}

static pl_status concat_shape(pl_node *node)
{
    pl_shape a = node->in[0]->shape, b = node->in[1]->shape, like = b;
    char first[PL_SHAPE_TEXT], second[PL_SHAPE_TEXT];
    int axis = node->axis;
    bool fits = axis > 0 && axis < a.rank && a.rank == b.rank;
    if (fits) {
        like.dim[axis] = a.dim[axis];
        fits = pl_shape_equal(a, like);
    }
    if (!fits)
        return PL_FAIL(PL_SHAPE,
                       "cannot join %s %s and %s %s along dimension %d: "
                       "expected 1 or more and the same sizes in the others",
                       node->in[0]->name, pl_shape_text(a, first),
                       node->in[1]->name, pl_shape_text(b, second), axis);
    node->shape = a;
    node->shape.dim[axis] = a.dim[axis] + b.dim[axis];
    return PL_OK;
}

/* Elements from `axis` on. */
static int64_t chunk_of(pl_shape shape, int axis)
{
    int64_t count = 1;
    for (int i = axis; i < shape.rank; i++)
        count *= shape.dim[i];
    return count;
}

static void copy_chunks(int64_t chunks, int64_t count, const float *src,
                        int64_t src_stride, float *dst, int64_t dst_stride)
{
    for (int64_t i = 0; i < chunks; i++)
        memcpy(dst + i * dst_stride, src + i * src_stride,
               (size_t)count * sizeof *dst);
}

static void concat_run(const pl_op_run *run)
{
    const pl_node *node = run->node;
    int64_t whole = chunk_of(node->shape, node->axis);
    int64_t chunks = pl_run_count(run, node) / whole, at = 0;
    for (int j = 0; j < node->input_count; j++) {
        int64_t count = chunk_of(node->in[j]->shape, node->axis);
        copy_chunks(chunks, count, pl_run_in(run, j), count, run->out + at,
                    whole);
        at += count;
    }
}

static void concat_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    int64_t first = 0;
    for (int j = 0; j < node->input_count; j++) {
        diff_in[j] = pl_graph_add(node->graph, &(pl_node_opts) {
                                                   .op = &pl_op_slice,
                                                   .shape = node->in[j]->shape,
                                                   .axis = node->axis,
                                                   .mask = first,
                                                   .input_count = 1,
                                                   .in = { diff },
                                               });
        first += node->in[j]->shape.dim[node->axis];
    }
}

static void slice_run(const pl_op_run *run)
{
    const pl_node *node = run->node;
    int64_t whole = chunk_of(node->in[0]->shape, node->axis);
    int64_t count = chunk_of(node->shape, node->axis);
    int64_t first = node->mask * (count / node->shape.dim[node->axis]);
    copy_chunks(pl_run_count(run, node) / count, count,
                pl_run_in(run, 0) + first, whole, run->out, count);
}

static pl_node *build(pl_node *const *in)
{
    return pl_concat(in[0], in[1], 1);
}

static pl_node *build_last(pl_node *const *in)
{
    return pl_concat(in[0], in[1], 2);
}

static const pl_op_case cases[] = {
    { .inputs = { { 2, { 3, 7 } }, { 2, { 3, 2 } } }, .build = build },
    { .inputs = { { 4, { PL_BATCH, 2, 2, 3 } }, { 4, { PL_BATCH, 3, 2, 3 } } },
      .build = build,
      .batch = 3 },
    { .inputs = { { 3, { 2, 3, 4 } }, { 3, { 2, 3, 1 } } },
      .build = build_last },
    { .inputs = { { 2, { 100, 128 } }, { 2, { 100, 64 } } }, .build = build },
    { .build = NULL },
};

const pl_op pl_op_concat = {
    .name = "concat",
    .least_inputs = 2,
    .most_inputs = 2,
    .rowwise = true,
    .shape = concat_shape,
    .run = concat_run,
    .gradient = concat_gradient,
    .cases = cases,
};

/* The part of dimension `axis` that begins at `mask`. */
const pl_op pl_op_slice = {
    .name = "slice",
    .least_inputs = 1,
    .most_inputs = 1,
    .rowwise = true,
    .run = slice_run,
};
