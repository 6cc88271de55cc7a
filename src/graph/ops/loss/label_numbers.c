/* Labels as numbers, for losses that compare numbers: the label itself
 * (label_number), or 1 for its class and 0 for the others (one_hot). */
#include "graph/graph.h"
#include "tensor/shape.h"

#include <string.h>

pl_node *pl_label_number(pl_node *labels)
{
    return pl_graph_unary(&pl_op_label_number, labels);
}

pl_node *pl_one_hot(pl_node *labels, int64_t classes)
{
    if (labels == NULL)
        return NULL;
    return pl_graph_add(labels->graph, &(pl_node_opts) {
                                           .op = &pl_op_one_hot,
                                           .classes = classes,
                                           .input_count = 1,
                                           .in = { labels },
                                       });
}

static pl_status check_labels(const pl_node *labels)
{
    char s[PL_SHAPE_TEXT];
    if (labels->shape.rank != 1)
        return PL_FAIL(PL_SHAPE, "labels %s %s: expected [n]", labels->name,
                       pl_shape_text(labels->shape, s));
    return PL_OK;
}

static pl_status number_shape(pl_node *node)
{
    PL_TRY(check_labels(node->in[0]));
    return pl_node_same_shape(node);
}

static void number_run(const pl_op_run *run)
{
    int64_t rows = pl_run_count(run, run->node);
    for (int64_t r = 0; r < rows; r++)
        run->out[r] = (float)pl_view_label(run->in[0], r);
}

static pl_status one_hot_shape(pl_node *node)
{
    const pl_node *labels = node->in[0];
    PL_TRY(check_labels(labels));
    if (node->classes < 1 || node->classes < labels->classes)
        return PL_FAIL(PL_SHAPE,
                       "%lld columns for labels %s: expected one for each of "
                       "the %lld classes",
                       (long long)node->classes, labels->name,
                       (long long)labels->classes);
    node->shape = PL_SHAPE(labels->shape.dim[0], node->classes);
    return PL_OK;
}

static void one_hot_run(const pl_op_run *run)
{
    int64_t classes = run->node->classes;
    int64_t rows = pl_run_count(run, run->node) / classes;
    run->state->kernels->fill(rows * classes, 0, run->out);
    for (int64_t r = 0; r < rows; r++)
        run->out[r * classes + pl_view_label(run->in[0], r)] = 1;
}

static pl_node *build_number(pl_node *const *in)
{
    return pl_label_number(in[0]);
}

static pl_node *build_one_hot(pl_node *const *in)
{
    return pl_one_hot(in[0], 5);
}

static const pl_op_case cases_number[] = {
    { .inputs = { { 1, { 100 } } }, .build = build_number, .label_classes = 9 },
    { .build = NULL },
};
static const pl_op_case cases_one_hot[] = {
    { .inputs = { { 1, { 100 } } },
      .build = build_one_hot,
      .label_classes = 5 },
    { .build = NULL },
};

const pl_op pl_op_label_number = {
    .name = "label_number",
    .least_inputs = 1,
    .most_inputs = 1,
    .rowwise = true,
    .reads_views = 1u << 0,
    .integers = 1u << 0,
    .shape = number_shape,
    .run = number_run,
    .cases = cases_number,
};

const pl_op pl_op_one_hot = {
    .name = "one_hot",
    .least_inputs = 1,
    .most_inputs = 1,
    .rowwise = true,
    .reads_views = 1u << 0,
    .integers = 1u << 0,
    .shape = one_hot_shape,
    .run = one_hot_run,
    .cases = cases_one_hot,
};
