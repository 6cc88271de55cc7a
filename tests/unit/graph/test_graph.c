#include "graph/graph.h"

#include "base/error.h"
#include "graph/plan.h"
#include "support/unit.h"
#include "tensor/shape.h"

#include <math.h>

/* A graph with nodes of the shapes that tests need. */
typedef struct fixture {
    pl_graph *graph;
    pl_node *input;   /* [batch, 4] */
    pl_node *image;   /* [batch, 2, 3] */
    pl_node *labels;  /* [batch] */
    pl_node *weights; /* [3, 4] */
    pl_node *bias;    /* [3] */
} fixture;

static fixture make(void)
{
    fixture f;
    assert_ok(pl_graph_new(&f.graph));
    f.input = pl_input(f.graph, "x", PL_FLOAT32, PL_SHAPE(PL_BATCH, 4));
    f.image = pl_input(f.graph, "image", PL_FLOAT32, PL_SHAPE(PL_BATCH, 2, 3));
    f.labels = pl_input(f.graph, "labels", PL_INT32, PL_SHAPE(PL_BATCH));
    f.weights = pl_parameter(f.graph, "w", PL_SHAPE(3, 4), "ones");
    f.bias = pl_parameter(f.graph, "b", PL_SHAPE(3), "zeros");
    assert_ok(pl_graph_status(f.graph));
    return f;
}

static pl_node *bad_inner(fixture *f)
{
    return pl_inner(f->image, f->weights, f->bias);
}

static pl_node *bad_inner_bias(fixture *f)
{
    return pl_inner(f->input, f->weights,
                    pl_parameter(f->graph, "wide", PL_SHAPE(4), NULL));
}

static pl_node *bad_matmul(fixture *f)
{
    return pl_matmul(f->input, f->weights);
}

static pl_node *bad_matmul_nt(fixture *f)
{
    return pl_matmul_nt(f->weights, f->input); /* the batch would be last */
}

static pl_node *bad_matmul_tn(fixture *f)
{
    return pl_matmul_tn(f->input, f->weights);
}

static pl_node *bad_bias(fixture *f)
{
    return pl_bias(f->input, f->bias);
}

static pl_node *bad_batched_bias(fixture *f)
{
    pl_node *numbers =
        pl_input(f->graph, "numbers", PL_FLOAT32, PL_SHAPE(PL_BATCH));
    return pl_bias(numbers, numbers);
}

static pl_node *bad_add(fixture *f)
{
    return pl_add(f->input, f->image);
}

static pl_node *bad_reshape(fixture *f)
{
    return pl_reshape(f->image, PL_SHAPE(PL_BATCH, 7));
}

static pl_node *bad_reshape_of_the_batch(fixture *f)
{
    return pl_reshape(f->weights, PL_SHAPE(PL_BATCH, 12));
}

static pl_node *bad_scores(fixture *f)
{
    return pl_softmax_xent(f->image, f->labels);
}

static pl_node *bad_labels(fixture *f)
{
    pl_node *numbers =
        pl_input(f->graph, "numbers", PL_FLOAT32, PL_SHAPE(PL_BATCH));
    return pl_accuracy(f->input, numbers);
}

static pl_node *bad_parameter(fixture *f)
{
    return pl_parameter(f->graph, "p", PL_SHAPE(PL_BATCH, 4), "zeros");
}

static pl_node *bad_dimension(fixture *f)
{
    return pl_input(f->graph, "empty", PL_FLOAT32, PL_SHAPE(PL_BATCH, 0));
}

static void graph_names_the_node_of_each_wrong_shape(void **state)
{
    (void)state;
    const struct {
        pl_node *(*build)(fixture *f);
        const char *node, *cause;
    } mistakes[] = {
        { bad_inner,
          "node inner5: ", "image [batch, 2, 3] with weights w [3, 4]" },
        { bad_inner_bias, "node inner6: ", "bias wide [4]: expected [3]" },
        { bad_matmul, "node matmul5: ", "x [batch, 4] and w [3, 4]" },
        { bad_matmul_nt, "node matmul_nt5: ", "batch must be the first" },
        { bad_matmul_tn, "node matmul_tn5: ", "x [batch, 4] and w [3, 4]" },
        { bad_bias, "node bias5: ", "bias b [3] does not fit" },
        { bad_batched_bias, "node bias6: ", "bias numbers [batch]" },
        { bad_add, "node add5: ", "x [batch, 4] and image [batch, 2, 3]" },
        { bad_reshape, "node reshape5: ", "image [batch, 2, 3] to [batch, 7]" },
        { bad_reshape_of_the_batch, "node reshape5: ", "w [3, 4] to " },
        { bad_scores, "node softmax_xent5: ", "logits image [batch, 2, 3]" },
        { bad_labels,
          "node accuracy6: ", "input numbers is float32; expected integers" },
        { bad_parameter, "node p: ", "no batch dimension" },
        { bad_dimension, "node empty: ", "is not positive" },
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        fixture f = make();
        assert_null(mistakes[i].build(&f));
        assert_fails(PL_SHAPE, mistakes[i].node, pl_graph_status(f.graph));
        assert_fails(PL_SHAPE, mistakes[i].cause, pl_graph_status(f.graph));
        pl_graph_free(f.graph);
    }
    assert_int_equal(0, pl_mem_live());
}

static void graph_remembers_the_first_error(void **state)
{
    (void)state;
    fixture f = make();
    int count = pl_graph_count(f.graph);
    assert_null(bad_add(&f));
    assert_null(bad_reshape(&f));
    assert_null(pl_relu(f.input)); /* right, but too late */
    assert_null(pl_input(f.graph, "late", PL_FLOAT32, PL_SHAPE(PL_BATCH)));
    assert_int_equal(count, pl_graph_count(f.graph));
    assert_fails(PL_SHAPE, "node add5", pl_graph_status(f.graph));
    /* Calls that need a complete graph report the same error. */
    pl_node *diff[2];
    pl_plan *plan = NULL;
    assert_fails(PL_SHAPE, "node add5",
                 pl_graph_differentiate(f.graph, f.input, diff, 2));
    assert_fails(
        PL_SHAPE, "node add5",
        pl_plan_new(&plan, &(pl_plan_opts) { .graph = f.graph, .batch = 1 }));
    pl_graph_free(f.graph);
}

static void graph_passes_null_through_every_call(void **state)
{
    (void)state;
    fixture f = make();
    pl_node *x = f.input;
    assert_null(pl_named(NULL, "name"));
    assert_null(pl_inner(NULL, f.weights, f.bias));
    assert_null(pl_inner(x, NULL, f.bias));
    assert_null(pl_matmul(NULL, x));
    assert_null(pl_matmul(x, NULL));
    assert_null(pl_matmul_nt(NULL, x));
    assert_null(pl_matmul_tn(x, NULL));
    assert_null(pl_bias(NULL, f.bias));
    assert_null(pl_relu(NULL));
    assert_null(pl_tanh(NULL));
    assert_null(pl_sigmoid(NULL));
    assert_null(pl_add(NULL, x));
    assert_null(pl_scale(NULL, 2));
    assert_null(pl_reshape(NULL, PL_SHAPE(1)));
    assert_null(pl_flatten(NULL));
    assert_null(pl_softmax_xent(NULL, f.labels));
    assert_null(pl_accuracy(x, NULL));
    assert_null(pl_mean(NULL));
    assert_null(pl_sum(NULL));
    assert_int_equal(0, pl_node_shape(NULL).rank);
    assert_ok(pl_graph_status(f.graph)); /* no error of its own */
    pl_graph_free(f.graph);
}

static void graph_names_nodes_by_operator_and_number(void **state)
{
    (void)state;
    fixture f = make();
    pl_node *a = pl_relu(f.input), *b = pl_relu(a);
    assert_string_equal("relu5", a->name);
    assert_string_equal("relu6", b->name);
    assert_ptr_equal(b, pl_named(b, "hidden"));
    assert_string_equal("hidden", b->name);
    assert_string_equal("w", f.weights->name);
    assert_null(pl_add(b, f.image));
    assert_fails(PL_SHAPE, "cannot add hidden [batch, 4]",
                 pl_graph_status(f.graph));
    pl_graph_free(f.graph);
}

static void graph_flattens_all_but_the_batch(void **state)
{
    (void)state;
    fixture f = make();
    pl_node *flat = pl_flatten(f.image);
    assert_true(pl_shape_equal(PL_SHAPE(PL_BATCH, 6), pl_node_shape(flat)));
    assert_ptr_equal(flat, pl_flatten(flat));
    assert_true(pl_shape_equal(PL_SHAPE(PL_BATCH, 1),
                               pl_node_shape(pl_flatten(f.labels))));
    pl_graph_free(f.graph);
}

/* Run the gradients of a loss over parameters that are all `value`; the
 * caller frees *grads. */
static double gradients(pl_graph *graph, pl_node *loss, float value,
                        pl_params **grads)
{
    pl_node *diff[4] = { NULL };
    pl_params *params;
    pl_plan *plan;
    pl_exec *exec;
    assert_ok(pl_graph_differentiate(graph, loss, diff, 4));
    assert_ok(pl_graph_params(graph, &params));
    assert_ok(pl_params_seal(params));
    assert_ok(pl_params_like(grads, params));
    for (int p = 0; p < pl_params_count(params); p++)
        for (int64_t i = 0; i < pl_params_get(params, p)->count; i++)
            pl_params_data(params, p)[i] = value;
    assert_ok(pl_plan_new(&plan, &(pl_plan_opts) {
                                     .graph = graph,
                                     .batch = 1,
                                     .outputs = &loss,
                                     .output_count = 1,
                                     .diff = diff,
                                     .diff_count = pl_params_count(params),
                                 }));
    assert_ok(pl_exec_new(&exec, plan, params, *grads));
    pl_exec_run(exec, &(pl_exec_args) { .rows = 1, .seed = 1.0f });
    double result = (double)*pl_exec_output(exec, 0);
    pl_exec_free(exec);
    pl_plan_free(plan);
    pl_params_free(params);
    return result;
}

static void graph_adds_the_gradients_of_a_parameter_used_twice(void **state)
{
    (void)state;
    pl_graph *graph;
    pl_params *grads;
    assert_ok(pl_graph_new(&graph));
    pl_node *p = pl_parameter(graph, "p", PL_SHAPE(2, 3), "ones");
    /* 2 p + 3 p + p + p */
    pl_node *twice = pl_add(pl_scale(p, 2), pl_scale(p, 3));
    pl_node *loss = pl_sum(pl_add(pl_add(twice, p), p));
    assert_true(gradients(graph, loss, 1, &grads) == 6 * 7);
    for (int i = 0; i < 6; i++)
        assert_true(pl_params_data(grads, 0)[i] == 7);
    pl_params_free(grads);
    pl_graph_free(graph);
    assert_int_equal(0, pl_mem_live());
}

/* The gradient of a sum is one node for both; each has its own memory. */
static void graph_gives_parameters_gradients_of_their_own(void **state)
{
    (void)state;
    pl_graph *graph;
    pl_params *grads;
    pl_node *diff[3];
    assert_ok(pl_graph_new(&graph));
    pl_node *a = pl_parameter(graph, "a", PL_SHAPE(5), "ones");
    pl_node *b = pl_parameter(graph, "b", PL_SHAPE(5), "ones");
    pl_node *c = pl_parameter(graph, "c", PL_SHAPE(1, 5), "ones");
    pl_node *loss = pl_sum(pl_add(pl_add(a, b), pl_reshape(c, PL_SHAPE(5))));
    assert_true(gradients(graph, pl_scale(loss, 0.5f), 1, &grads) == 7.5);
    for (int p = 0; p < 3; p++)
        for (int i = 0; i < 5; i++)
            assert_true(pl_params_data(grads, p)[i] == 0.5f);
    assert_ok(pl_graph_differentiate(graph, loss, diff, 3));
    assert_true(diff[0] != diff[1] && diff[1] != diff[2]);
    pl_params_free(grads);
    pl_graph_free(graph);
}

static void graph_has_no_gradient_where_the_loss_does_not_depend(void **state)
{
    (void)state;
    fixture f = make();
    pl_node *diff[2] = { f.input, f.input };
    pl_node *loss = pl_mean(pl_inner(f.input, f.weights, NULL));
    assert_ok(pl_graph_differentiate(f.graph, loss, diff, 2));
    assert_non_null(diff[0]);
    assert_null(diff[1]);
    assert_true(pl_shape_equal(f.weights->shape, diff[0]->shape));
    pl_graph_free(f.graph);

    f = make(); /* accuracy lets no gradient through */
    pl_node *logits = pl_inner(f.input, f.weights, f.bias);
    loss = pl_mean(pl_accuracy(logits, f.labels));
    assert_ok(pl_graph_differentiate(f.graph, loss, diff, 2));
    assert_true(diff[0] == NULL && diff[1] == NULL);
    pl_graph_free(f.graph);
}

static void graph_refuses_a_loss_that_is_not_a_scalar(void **state)
{
    (void)state;
    fixture f = make();
    pl_node *diff[2];
    pl_node *loss =
        pl_softmax_xent(pl_inner(f.input, f.weights, f.bias), f.labels);
    assert_fails(PL_SHAPE, "node softmax_xent6: a loss must be a scalar",
                 pl_graph_differentiate(f.graph, loss, diff, 2));
    pl_graph_free(f.graph);
}

static bool separable(const pl_node *loss)
{
    bool result;
    assert_non_null(loss);
    assert_ok(pl_graph_separable(loss, true, &result));
    return result;
}

static void graph_knows_for_which_losses_a_batch_may_be_split(void **state)
{
    (void)state;
    fixture f = make();
    pl_node *logits = pl_relu(pl_inner(f.input, f.weights, f.bias));
    pl_node *each = pl_softmax_xent(logits, f.labels);
    pl_node *loss = pl_mean(each);
    assert_true(separable(loss));
    assert_true(separable(pl_scale(loss, 0.3f)));
    assert_true(separable(pl_add(loss, pl_scale(pl_mean(logits), 2))));
    assert_true(separable(pl_mean(f.weights))); /* no batch in it at all */
    assert_true(separable(pl_mean(pl_flatten(f.image))));
    assert_false(separable(pl_sum(each)));
    assert_false(separable(pl_add(loss, pl_sum(each))));
    assert_false(separable(pl_tanh(loss)));
    /* x^T x has all examples in each row. */
    assert_false(separable(pl_mean(pl_matmul_tn(f.input, f.input))));
    /* So has what is computed with it. */
    pl_node *gram = pl_matmul_tn(f.input, f.input);
    assert_false(separable(pl_mean(pl_matmul(f.input, gram))));
    assert_ok(pl_graph_status(f.graph));
    pl_graph_free(f.graph);
    assert_int_equal(0, pl_mem_live());
}

static pl_node *build_net(pl_graph *graph)
{
    pl_node *x = pl_input(graph, "x", PL_FLOAT32, PL_SHAPE(PL_BATCH, 2, 2));
    pl_node *labels = pl_input(graph, "y", PL_INT32, PL_SHAPE(PL_BATCH));
    pl_node *w = pl_parameter(graph, "w", PL_SHAPE(5, 4), "glorot");
    pl_node *b = pl_parameter(graph, "b", PL_SHAPE(5), "zeros");
    pl_node *v = pl_parameter(graph, "v", PL_SHAPE(3, 5), "glorot");
    pl_node *hidden = pl_tanh(pl_inner(pl_flatten(x), w, b));
    pl_node *logits = pl_named(pl_matmul_nt(hidden, v), "logits");
    return pl_mean(pl_softmax_xent(logits, labels));
}

static pl_status build_once(void)
{
    pl_graph *graph;
    PL_TRY(pl_graph_new(&graph));
    pl_node *loss = build_net(graph);
    pl_status status = pl_graph_status(graph);
    assert_true((status == PL_OK) == (loss != NULL));
    pl_graph_free(graph);
    return status;
}

static pl_status differentiate_once(bool plan_too)
{
    pl_graph *graph;
    pl_node *diff[3];
    PL_TRY(pl_graph_new(&graph));
    pl_plan *plan = NULL;
    pl_node *loss = build_net(graph);
    pl_status status = pl_graph_status(graph);
    if (status == PL_OK)
        status = pl_graph_differentiate(graph, loss, diff, 3);
    if (status == PL_OK && plan_too)
        status = pl_plan_new(&plan, &(pl_plan_opts) {
                                        .graph = graph,
                                        .batch = 7,
                                        .outputs = &loss,
                                        .output_count = 1,
                                        .diff = diff,
                                        .diff_count = 3,
                                    });
    pl_plan_free(plan);
    pl_graph_free(graph);
    return status;
}

static void graph_survives_failed_allocations(void **state)
{
    (void)state;
    assert_survives_failed_allocations(build_once(), (void)0);
    assert_survives_failed_allocations(differentiate_once(false), (void)0);
    assert_survives_failed_allocations(differentiate_once(true), (void)0);
    assert_int_equal(0, pl_mem_live());
}

static void exec_survives_failed_allocations(void **state)
{
    (void)state;
    pl_graph *graph;
    pl_params *params, *grads;
    pl_plan *plan;
    pl_exec *exec = NULL;
    pl_node *diff[3];
    bool cut;
    assert_ok(pl_graph_new(&graph));
    pl_node *loss = build_net(graph);
    assert_survives_failed_allocations(pl_graph_separable(loss, true, &cut),
                                       (void)0);
    assert_survives_failed_allocations(pl_graph_params(graph, &params),
                                       pl_params_free(params));
    assert_ok(pl_graph_differentiate(graph, loss, diff, 3));
    assert_ok(pl_graph_params(graph, &params));
    assert_ok(pl_params_seal(params));
    assert_ok(pl_params_like(&grads, params));
    assert_ok(pl_plan_new(&plan, &(pl_plan_opts) { .graph = graph,
                                                   .batch = 7,
                                                   .outputs = &loss,
                                                   .output_count = 1,
                                                   .diff = diff,
                                                   .diff_count = 3 }));
    assert_survives_failed_allocations(pl_exec_new(&exec, plan, params, grads),
                                       pl_exec_free(exec));
    pl_plan_free(plan);
    pl_params_free(params);
    pl_params_free(grads);
    pl_graph_free(graph);
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(
    cmocka_unit_test(graph_names_the_node_of_each_wrong_shape),
    cmocka_unit_test(graph_remembers_the_first_error),
    cmocka_unit_test(graph_passes_null_through_every_call),
    cmocka_unit_test(graph_names_nodes_by_operator_and_number),
    cmocka_unit_test(graph_flattens_all_but_the_batch),
    cmocka_unit_test(graph_adds_the_gradients_of_a_parameter_used_twice),
    cmocka_unit_test(graph_gives_parameters_gradients_of_their_own),
    cmocka_unit_test(graph_has_no_gradient_where_the_loss_does_not_depend),
    cmocka_unit_test(graph_refuses_a_loss_that_is_not_a_scalar),
    cmocka_unit_test(graph_knows_for_which_losses_a_batch_may_be_split),
    cmocka_unit_test(graph_survives_failed_allocations),
    cmocka_unit_test(exec_survives_failed_allocations))
