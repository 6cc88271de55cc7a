/* Every case of every operator: each kernels table against the reference, and
 * gradients against finite differences.
 *
 * The inputs of a case become parameters; the loss is the sum of the tanh of
 * the result, so that no two elements have the same gradient.  A batch cannot
 * be a parameter: it is made of one, [elements, examples], by a product with
 * the identity, whose rows are the batch's. */
#include "graph/plan.h"
#include "support/kernels.h"
#include "tensor/shape.h"

#define SMALL 200  /* elements of all inputs, for finite differences */
#define STEP  2e-3 /* of a finite difference */

static const pl_op *const ops[] = {
#define OP_ADDRESS(name) &pl_op_##name,
    PL_OP_LIST(OP_ADDRESS)
#undef OP_ADDRESS
};
#define OPS (sizeof ops / sizeof *ops)

/* One case, built and planned for one table. */
typedef struct trial {
    pl_graph *graph;
    pl_node *out;
    pl_node *diff[PL_MAX_INPUTS];
    pl_params *params, *grads;
    pl_plan *plan;
    pl_exec *exec;
    int32_t *labels;
    float *identity;
    pl_view views[2]; /* of the identity, if there is one, and the labels */
    int64_t batch;
    int64_t out_count;
} trial;

static int input_count(const pl_op_case *c)
{
    int count = 0;
    while (count < PL_MAX_INPUTS && c->inputs[count].rank > 0)
        count++;
    return count;
}

static void build(trial *t, const pl_op_case *c)
{
    int count = input_count(c);
    pl_node *in[PL_MAX_INPUTS] = { NULL }, *identity = NULL;
    assert_ok(pl_graph_new(&t->graph));
    t->batch = c->batch > 0 ? c->batch : 1;
    if (c->batch > 0)
        identity = pl_input(t->graph, "identity", PL_FLOAT32,
                            PL_SHAPE(PL_BATCH, c->batch));
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "in%d", i);
        bool labels = c->label_classes > 0 && i == count - 1;
        pl_shape shape = c->inputs[i];
        if (pl_shape_batched(shape)) {
            pl_node *columns =
                pl_parameter(t->graph, name,
                             PL_SHAPE(pl_shape_row(shape), c->batch), "zeros");
            in[i] = pl_reshape(pl_inner(identity, columns, NULL), shape);
        } else if (labels) {
            in[i] = pl_input(t->graph, name, PL_INT32, shape);
        } else {
            in[i] = pl_parameter(t->graph, name, shape, "zeros");
        }
    }
    t->out = c->build(in);
    assert_ok(pl_graph_status(t->graph));
    pl_node *loss = t->out->shape.rank == 0 ? pl_scale(t->out, 1.0f)
                                            : pl_sum(pl_tanh(t->out));
    assert_ok(pl_graph_differentiate(t->graph, loss, t->diff, PL_MAX_INPUTS));
    t->out_count = pl_shape_count(t->out->shape, t->batch);
}

static void make_identity(trial *t, const pl_op_case *c)
{
    if (c->batch == 0)
        return;
    size_t n = (size_t)c->batch;
    t->identity = pl_mem_alloc(n * n, sizeof *t->identity);
    assert_non_null(t->identity);
    for (size_t i = 0; i < n; i++)
        t->identity[i * n + i] = 1.0f;
    t->views[0] = (pl_view) { .data = t->identity,
                              .stride = c->batch,
                              .dtype = PL_FLOAT32,
                              .scale = 1.0f };
}

static void make_labels(trial *t, const pl_op_case *c)
{
    if (c->label_classes == 0)
        return;
    int64_t rows = c->inputs[input_count(c) - 1].dim[0];
    t->labels = pl_mem_alloc((size_t)rows, sizeof *t->labels);
    assert_non_null(t->labels);
    for (int64_t r = 0; r < rows; r++)
        t->labels[r] = (int32_t)(7 * r % c->label_classes);
    t->views[c->batch > 0] = (pl_view) {
        .data = t->labels, .stride = 1, .dtype = PL_INT32, .scale = 1.0f
    };
}

static void trial_init(trial *t, const pl_op_case *c, const pl_kernels *table)
{
    *t = (trial) { .graph = NULL };
    build(t, c);
    make_identity(t, c);
    make_labels(t, c);
    assert_ok(pl_graph_params(t->graph, &t->params));
    assert_ok(pl_params_seal(t->params));
    assert_ok(pl_params_like(&t->grads, t->params));
    assert_ok(
        pl_plan_new(&t->plan, &(pl_plan_opts) {
                                  .graph = t->graph,
                                  .batch = t->batch,
                                  .kernels = table,
                                  .outputs = &t->out,
                                  .output_count = 1,
                                  .diff = t->diff,
                                  .diff_count = pl_params_count(t->params),
                              }));
    assert_ok(pl_exec_new(&t->exec, t->plan, t->params, t->grads));
}

static void trial_close(trial *t)
{
    pl_exec_free(t->exec);
    pl_plan_free(t->plan);
    pl_params_free(t->params);
    pl_params_free(t->grads);
    pl_graph_free(t->graph);
    pl_mem_free(t->labels);
    pl_mem_free(t->identity);
}

static const float *run(trial *t)
{
    pl_exec_run(
        t->exec,
        &(pl_exec_args) { .rows = t->batch, .views = t->views, .seed = 1.0f });
    return pl_exec_output(t->exec, 0);
}

/* The same numbers in every trial of a case: evenly spaced and shuffled, so
 * that no two are near each other and none is near the kink of relu. */
static void set_inputs(trial *t, uint64_t key)
{
    for (int p = 0; p < pl_params_count(t->params); p++) {
        float *data = pl_params_data(t->params, p);
        int64_t count = pl_params_get(t->params, p)->count;
        for (int64_t i = 0; i < count; i++) {
            uint32_t at;
            pl_rng_permute(key + (uint64_t)p, (uint64_t)count, (uint64_t)i, 1,
                           &at);
            double x = 1.5 * (at + 0.5) / (double)count;
            data[i] = (float)(x < 0.8 ? x - 0.9 : x - 0.7);
            /* A variance is not negative. */
            if (pl_params_get(t->params, p)->averaged)
                data[i] = fabsf(data[i]);
        }
    }
}

static void assert_alike(const pl_op *op, const pl_kernels *table,
                         const char *what, const float *got,
                         const float *expected, int64_t count)
{
    double size = 0;
    for (int64_t i = 0; i < count; i++)
        size = fmax(size, fabs((double)expected[i]));
    for (int64_t i = 0; i < count; i++)
        if (!is_near((double)got[i], (double)expected[i], 1e-6 + 1e-5 * size))
            fail_msg("%s, %s: %s element %lld is %.9g, not %.9g", op->name,
                     table->name, what, (long long)i, (double)got[i],
                     (double)expected[i]);
}

/* The loss in double precision, from the result alone. */
static double loss_of(trial *t)
{
    const float *out = run(t);
    double sum = 0;
    for (int64_t i = 0; i < t->out_count; i++)
        sum += t->out->shape.rank == 0 ? (double)out[i] : tanh((double)out[i]);
    return sum;
}

static void check_differences(trial *t, const pl_op *op)
{
    pl_params *grads;
    assert_ok(pl_params_like(&grads, t->grads));
    run(t);
    memcpy(pl_params_block(grads), pl_params_block(t->grads),
           (size_t)pl_params_block_count(grads) * sizeof(float));
    for (int p = 0; p < pl_params_count(t->params); p++) {
        float *data = pl_params_data(t->params, p);
        assert_non_null(t->diff[p]);
        if (pl_params_get(t->params, p)->averaged)
            continue; /* what it approaches is no slope */
        for (int64_t i = 0; i < pl_params_get(t->params, p)->count; i++) {
            float before = data[i], up = before + (float)STEP,
                  down = before - (float)STEP;
            data[i] = up;
            double above = loss_of(t);
            data[i] = down;
            double below = loss_of(t);
            data[i] = before;
            double slope = (above - below) / ((double)up - (double)down);
            double got = (double)pl_params_data(grads, p)[i];
            if (!is_near(got, slope, 5e-4 * (1 + fabs(slope))))
                fail_msg("%s: gradient of input %d, element %lld is %g, by "
                         "differences %g",
                         op->name, p, (long long)i, got, slope);
        }
    }
    pl_params_free(grads);
}

static void check_case(const pl_op *op, const pl_op_case *c, uint64_t key)
{
    trial expected;
    trial_init(&expected, c, reference_table());
    set_inputs(&expected, key);
    const float *out = run(&expected);
    FOR_EACH_TABLE(table)
    {
        trial got;
        trial_init(&got, c, table);
        set_inputs(&got, key);
        assert_alike(op, table, "result", run(&got), out, got.out_count);
        for (int p = 0; p < pl_params_count(got.params); p++)
            assert_alike(op, table, pl_params_get(got.params, p)->name,
                         pl_params_data(got.grads, p),
                         pl_params_data(expected.grads, p),
                         pl_params_get(got.params, p)->count);
        trial_close(&got);
    }
    if (op->gradient != NULL && pl_params_elements(expected.params) <= SMALL)
        check_differences(&expected, op);
    trial_close(&expected);
}

static void op_cases_hold_on_every_table(void **state)
{
    (void)state;
    for (size_t o = 0; o < OPS; o++)
        for (const pl_op_case *c = ops[o]->cases; c != NULL && c->build != NULL;
             c++)
            check_case(ops[o], c, 100 * o);
    assert_int_equal(0, pl_mem_live());
}

/* An operator of the public header has a small case, so that its gradient is
 * compared with differences; those of gradients are seen through them. */
static void op_with_a_gradient_has_a_small_case(void **state)
{
    (void)state;
    for (size_t o = 0; o < OPS; o++) {
        int64_t least = INT64_MAX;
        for (const pl_op_case *c = ops[o]->cases; c != NULL && c->build != NULL;
             c++) {
            int64_t elements = 0;
            for (int i = 0; i < input_count(c); i++)
                elements += pl_shape_count(c->inputs[i], c->batch);
            least = elements < least ? elements : least;
        }
        if (ops[o]->gradient != NULL && least > SMALL)
            fail_msg("%s has a gradient and no case of at most %d elements",
                     ops[o]->name, SMALL);
    }
}

UNIT_TESTS(cmocka_unit_test(op_cases_hold_on_every_table),
           cmocka_unit_test(op_with_a_gradient_has_a_small_case))
