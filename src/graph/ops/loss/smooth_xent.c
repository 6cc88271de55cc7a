/* Softmax cross-entropy with label smoothing (Szegedy et al. 2016): the target
 * is 1 - s at the label and s / classes everywhere.  The probabilities are kept
 * in the workspace, as by softmax_xent, whose kernels it uses. */
#include "graph/graph.h"
#include "tensor/shape.h"

pl_node *pl_softmax_xent_smooth(pl_node *logits, pl_node *labels,
                                float smoothing)
{
    if (logits == NULL || labels == NULL)
        return NULL;
    return pl_graph_add(logits->graph, &(pl_node_opts) {
                                           .op = &pl_op_smooth_xent,
                                           .factor = smoothing,
                                           .input_count = 2,
                                           .in = { logits, labels },
                                       });
}

static pl_status smooth_shape(pl_node *node)
{
    if (!(node->factor >= 0 && node->factor < 1))
        return PL_FAIL(PL_USAGE,
                       "label smoothing of %g: expected 0 or more and below 1",
                       (double)node->factor);
    return pl_op_softmax_xent.shape(node);
}

static int64_t probs_count(const pl_node *node, int64_t batch)
{
    return pl_shape_count(node->in[0]->shape, batch);
}

/* The loss is that of the label plus s times the difference between the label's
 * logit and the mean logit. */
static void smooth_run(const pl_op_run *run)
{
    const pl_kernels *kernels = run->state->kernels;
    int64_t classes = run->node->in[0]->shape.dim[1];
    int64_t rows = pl_run_count(run, run->node);
    const float *logits = pl_run_in(run, 0);
    kernels->softmax_xent(rows, classes, logits, run->in[1], run->workspace,
                          run->out);
    for (int64_t r = 0; r < rows; r++, logits += classes) {
        double mean = kernels->sum(classes, logits) / (double)classes;
        double label = (double)logits[pl_view_label(run->in[1], r)];
        run->out[r] += (float)((double)run->node->factor * (label - mean));
    }
}

/* Input 0 of the gradient is the loss, whose workspace holds the
 * probabilities. */
static void smooth_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    diff_in[0] =
        pl_graph_add(node->graph, &(pl_node_opts) {
                                      .op = &pl_op_smooth_xent_grad,
                                      .shape = node->in[0]->shape,
                                      .factor = node->factor,
                                      .input_count = 3,
                                      .in = { node, node->in[1], diff },
                                  });
}

static void smooth_grad_run(const pl_op_run *run)
{
    const pl_kernels *kernels = run->state->kernels;
    int64_t classes = run->node->shape.dim[1];
    int64_t rows = pl_run_count(run, run->node->in[0]);
    const float *diff = pl_run_in(run, 2);
    float *out = run->out;
    kernels->softmax_xent_grad(rows, classes, run->in_workspace, run->in[1],
                               diff, out);
    for (int64_t r = 0; r < rows; r++, out += classes) {
        float moved = run->node->factor * diff[r];
        kernels->blend(classes, out, 1, NULL, 0, -moved / (float)classes, out);
        out[pl_view_label(run->in[1], r)] += moved;
    }
}

static pl_node *build(pl_node *const *in)
{
    return pl_softmax_xent_smooth(in[0], in[1], 0.1f);
}

static const pl_op_case cases[] = {
    { .inputs = { { 2, { 3, 7 } }, { 1, { 3 } } },
      .build = build,
      .label_classes = 7 },
    { .inputs = { { 2, { 100, 10 } }, { 1, { 100 } } },
      .build = build,
      .label_classes = 10 },
    { .build = NULL },
};

const pl_op pl_op_smooth_xent = {
    .name = "smooth_xent",
    .least_inputs = 2,
    .most_inputs = 2,
    .rowwise = true,
    .reads_views = 1u << 1,
    .integers = 1u << 1,
    .shape = smooth_shape,
    .run = smooth_run,
    .workspace = probs_count,
    .gradient = smooth_gradient,
    .cases = cases,
};

const pl_op pl_op_smooth_xent_grad = {
    .name = "smooth_xent_grad",
    .least_inputs = 3,
    .most_inputs = 3,
    .rowwise = true,
    .reads_views = 1u << 1,
    .integers = 1u << 1,
    .run = smooth_grad_run,
};
