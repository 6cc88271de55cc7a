/* Softmax cross-entropy of logits and integer labels as one operator: the
 * probabilities are kept in its workspace for the gradient, which then costs
 * one subtraction per row. Accuracy shares its shape rule. */
#include "graph/graph.h"
#include "tensor/shape.h"

pl_node *pl_softmax_xent(pl_node *logits, pl_node *labels)
{
    return pl_graph_binary(&pl_op_softmax_xent, logits, labels);
}

pl_node *pl_accuracy(pl_node *logits, pl_node *labels)
{
    return pl_graph_binary(&pl_op_accuracy, logits, labels);
}

static pl_status scores_shape(pl_node *node)
{
    const pl_node *logits = node->in[0], *labels = node->in[1];
    char s[PL_SHAPE_TEXT], l[PL_SHAPE_TEXT];
    if (logits->shape.rank != 2 ||
        !pl_shape_equal(labels->shape, PL_SHAPE(logits->shape.dim[0])))
        return PL_FAIL(PL_SHAPE,
                       "logits %s %s and labels %s %s: expected [n, classes] "
                       "and [n]",
                       logits->name, pl_shape_text(logits->shape, s),
                       labels->name, pl_shape_text(labels->shape, l));
    if (logits->shape.dim[1] < labels->classes)
        return PL_FAIL(PL_SHAPE,
                       "logits %s %s: expected a column for each of the %lld "
                       "classes of %s",
                       logits->name, pl_shape_text(logits->shape, s),
                       (long long)labels->classes, labels->name);
    node->shape = labels->shape;
    return PL_OK;
}

static int64_t probs_count(const pl_node *node, int64_t batch)
{
    return pl_shape_count(node->in[0]->shape, batch);
}

static void softmax_xent_run(const pl_op_run *run)
{
    run->state->kernels->softmax_xent(
        pl_run_count(run, run->node), run->node->in[0]->shape.dim[1],
        pl_run_in(run, 0), run->in[1], run->workspace, run->out);
}

/* Input 0 of the gradient is the loss, whose workspace holds the probabilities;
 * the logits only give the shape. */
static void softmax_xent_gradient(pl_node *node, pl_node *diff,
                                  pl_node **diff_in)
{
    if (diff == NULL)
        return;
    diff_in[0] =
        pl_graph_add(node->graph, &(pl_node_opts) {
                                      .op = &pl_op_softmax_xent_grad,
                                      .shape = node->in[0]->shape,
                                      .input_count = 3,
                                      .in = { node, node->in[1], diff },
                                  });
}

static void softmax_xent_grad_run(const pl_op_run *run)
{
    run->state->kernels->softmax_xent_grad(
        pl_run_count(run, run->node->in[0]), run->node->shape.dim[1],
        run->in_workspace, run->in[1], pl_run_in(run, 2), run->out);
}

static void accuracy_run(const pl_op_run *run)
{
    run->state->kernels->accuracy(pl_run_count(run, run->node),
                                  run->node->in[0]->shape.dim[1],
                                  pl_run_in(run, 0), run->in[1], run->out);
}

static pl_node *build_xent(pl_node *const *in)
{
    return pl_softmax_xent(in[0], in[1]);
}

static pl_node *build_accuracy(pl_node *const *in)
{
    return pl_accuracy(in[0], in[1]);
}

static const pl_op_case cases_xent[] = {
    { .inputs = { { 2, { 3, 7 } }, { 1, { 3 } } },
      .build = build_xent,
      .label_classes = 7 },
    { .inputs = { { 2, { 100, 10 } }, { 1, { 100 } } },
      .build = build_xent,
      .label_classes = 10 },
    { .inputs = { { 2, { 19, 37 } }, { 1, { 19 } } },
      .build = build_xent,
      .label_classes = 37 },
    { .build = NULL },
};
static const pl_op_case cases_accuracy[] = {
    { .inputs = { { 2, { 100, 10 } }, { 1, { 100 } } },
      .build = build_accuracy,
      .label_classes = 10 },
    { .build = NULL },
};

const pl_op pl_op_softmax_xent = {
    .name = "softmax_xent",
    .least_inputs = 2,
    .most_inputs = 2,
    .rowwise = true,
    .reads_views = 1u << 1,
    .integers = 1u << 1,
    .shape = scores_shape,
    .run = softmax_xent_run,
    .workspace = probs_count,
    .gradient = softmax_xent_gradient,
    .cases = cases_xent,
};

const pl_op pl_op_softmax_xent_grad = {
    .name = "softmax_xent_grad",
    .least_inputs = 3,
    .most_inputs = 3,
    .rowwise = true,
    .reads_views = 1u << 1,
    .integers = 1u << 1,
    .run = softmax_xent_grad_run,
};

const pl_op pl_op_accuracy = {
    .name = "accuracy",
    .least_inputs = 2,
    .most_inputs = 2,
    .rowwise = true,
    .reads_views = 1u << 1,
    .integers = 1u << 1,
    .shape = scores_shape,
    .run = accuracy_run,
    .cases = cases_accuracy,
};
