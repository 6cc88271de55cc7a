/* Losses that compare two batches of numbers element by element; the loss of
 * an example is the mean over its elements.
 *
 *   squared_error  (p - t)^2
 *   huber          (p - t)^2 / 2 within delta of t, then a line (Huber 1964)
 *   binary_xent    of the logit p and the probability t: log(1 + e^p) - p t
 *
 * The target may depend on parameters, like the prediction. */
#include "graph/graph.h"
#include "tensor/shape.h"

#include <math.h>

static pl_node *add(const pl_op *op, pl_node *a, pl_node *b, pl_node *diff,
                    float factor)
{
    if (a == NULL || b == NULL)
        return NULL;
    return pl_graph_add(a->graph, &(pl_node_opts) {
                                      .op = op,
                                      .factor = factor,
                                      .input_count = diff != NULL ? 3 : 2,
                                      .in = { a, b, diff },
                                  });
}

pl_node *pl_squared_error(pl_node *prediction, pl_node *target)
{
    return add(&pl_op_squared_error, prediction, target, NULL, 0);
}

pl_node *pl_huber(pl_node *prediction, pl_node *target, float delta)
{
    return add(&pl_op_huber, prediction, target, NULL, delta);
}

pl_node *pl_binary_xent(pl_node *logits, pl_node *target)
{
    return add(&pl_op_binary_xent, logits, target, NULL, 0);
}

static pl_status pair_shape(pl_node *node)
{
    pl_shape p = node->in[0]->shape, t = node->in[1]->shape;
    char first[PL_SHAPE_TEXT], second[PL_SHAPE_TEXT];
    if (p.rank < 1 || !pl_shape_equal(p, t))
        return PL_FAIL(PL_SHAPE,
                       "a loss of %s %s and %s %s: expected [n, ...] twice",
                       node->in[0]->name, pl_shape_text(p, first),
                       node->in[1]->name, pl_shape_text(t, second));
    node->shape = PL_SHAPE(p.dim[0]);
    return PL_OK;
}

static pl_status huber_shape(pl_node *node)
{
    if (!(node->factor > 0) || !isfinite(node->factor))
        return PL_FAIL(PL_USAGE, "a delta of %g: expected a number above 0",
                       (double)node->factor);
    return pair_shape(node);
}

/* The loss of one element, or its derivative. */
typedef double element(double p, double t, double delta);

static void loss_rows(const pl_op_run *run, element *loss)
{
    const pl_node *node = run->node;
    int64_t rows = pl_run_count(run, node);
    int64_t width = pl_run_count(run, node->in[0]) / rows;
    const float *p = pl_run_in(run, 0), *t = pl_run_in(run, 1);
    for (int64_t r = 0; r < rows; r++, p += width, t += width) {
        double sum = 0;
        for (int64_t i = 0; i < width; i++)
            sum += loss((double)p[i], (double)t[i], (double)node->factor);
        run->out[r] = (float)(sum / (double)width);
    }
}

/* inputs: prediction, target, diff_loss */
static void slope_rows(const pl_op_run *run, element *slope)
{
    const pl_node *node = run->node;
    int64_t rows = pl_run_count(run, node->in[2]);
    int64_t width = pl_run_count(run, node) / rows;
    const float *p = pl_run_in(run, 0), *t = pl_run_in(run, 1),
                *diff = pl_run_in(run, 2);
    for (int64_t i = 0; i < rows * width; i++) {
        double each = (double)diff[i / width] / (double)width;
        run->out[i] = (float)(each * slope((double)p[i], (double)t[i],
                                           (double)node->factor));
    }
}

static double squared_error(double p, double t, double delta)
{
    (void)delta;
    return (p - t) * (p - t);
}

static double squared_error_slope(double p, double t, double delta)
{
    (void)delta;
    return 2 * (p - t);
}

static double huber(double p, double t, double delta)
{
    double far = fabs(p - t);
    return far <= delta ? far * far / 2 : delta * (far - delta / 2);
}

static double huber_slope(double p, double t, double delta)
{
    return fmax(-delta, fmin(delta, p - t));
}

/* Avoids e^p where it would be infinite. */
static double binary_xent(double p, double t, double delta)
{
    (void)delta;
    return fmax(p, 0) - p * t + log1p(exp(-fabs(p)));
}

static double binary_xent_slope(double p, double t, double delta)
{
    (void)delta;
    return 1 / (1 + exp(-p)) - t;
}

static void binary_xent_gradient(pl_node *node, pl_node *diff,
                                 pl_node **diff_in)
{
    pl_node *p = node->in[0], *t = node->in[1];
    diff_in[0] = add(&pl_op_binary_xent_grad, p, t, diff, 0);
    diff_in[1] = add(&pl_op_binary_xent_target, p, t, diff, 0);
}

static double target_slope(double p, double t, double delta)
{
    (void)t, (void)delta;
    return -p;
}

static void binary_xent_target_run(const pl_op_run *run)
{
    slope_rows(run, target_slope);
}

/* For losses of p - t the target's gradient is the prediction's, negated. */
static void gradients(pl_node *node, pl_node *diff, const pl_op *grad,
                      pl_node **diff_in)
{
    diff_in[0] = add(grad, node->in[0], node->in[1], diff, node->factor);
    diff_in[1] = pl_scale(diff_in[0], -1);
}

static void squared_error_gradient(pl_node *node, pl_node *diff,
                                   pl_node **diff_in)
{
    gradients(node, diff, &pl_op_squared_error_grad, diff_in);
}

static void huber_gradient(pl_node *node, pl_node *diff, pl_node **diff_in)
{
    gradients(node, diff, &pl_op_huber_grad, diff_in);
}

static pl_node *squared_error_build(pl_node *const *in)
{
    return pl_squared_error(in[0], in[1]);
}

static pl_node *huber_build(pl_node *const *in)
{
    return pl_huber(in[0], in[1], 0.4f);
}

static pl_node *binary_xent_build(pl_node *const *in)
{
    return pl_binary_xent(in[0], in[1]);
}

#define ROW_LOSS(name_, shape_)                                                \
    static void name_##_run(const pl_op_run *run)                              \
    {                                                                          \
        loss_rows(run, name_);                                                 \
    }                                                                          \
                                                                               \
    static void name_##_grad_run(const pl_op_run *run)                         \
    {                                                                          \
        slope_rows(run, name_##_slope);                                        \
    }                                                                          \
                                                                               \
    static const pl_op_case name_##_cases[] = {                                \
        { .inputs = { { 2, { 3, 7 } }, { 2, { 3, 7 } } },                      \
          .build = name_##_build },                                            \
        { .inputs = { { 1, { 9 } }, { 1, { 9 } } }, .build = name_##_build },  \
        { .inputs = { { 2, { 100, 10 } }, { 2, { 100, 10 } } },                \
          .build = name_##_build },                                            \
        { .build = NULL },                                                     \
    };                                                                         \
                                                                               \
    const pl_op pl_op_##name_ = {                                              \
        .name = #name_,                                                        \
        .least_inputs = 2,                                                     \
        .most_inputs = 2,                                                      \
        .rowwise = true,                                                       \
        .shape = shape_,                                                       \
        .run = name_##_run,                                                    \
        .gradient = name_##_gradient,                                          \
        .cases = name_##_cases,                                                \
    };                                                                         \
                                                                               \
    const pl_op pl_op_##name_##_grad = {                                       \
        .name = #name_ "_grad",                                                \
        .least_inputs = 3,                                                     \
        .most_inputs = 3,                                                      \
        .rowwise = true,                                                       \
        .shape = pl_node_same_shape,                                           \
        .run = name_##_grad_run,                                               \
    };

ROW_LOSS(squared_error, pair_shape)
ROW_LOSS(huber, huber_shape)
ROW_LOSS(binary_xent, pair_shape)

const pl_op pl_op_binary_xent_target = {
    .name = "binary_xent_target",
    .least_inputs = 3,
    .most_inputs = 3,
    .rowwise = true,
    .shape = pl_node_same_shape,
    .run = binary_xent_target_run,
};
