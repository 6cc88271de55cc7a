/* The mask of a dropout: what it depends on, and what it does not. */
#include "graph/plan.h"
#include "support/kernels.h"
#include "tensor/shape.h"

#define ROWS  64
#define WIDE  51 /* rows begin anywhere in the numbers of a mask */
#define COUNT ((int64_t)ROWS * WIDE)

/* Two dropouts of one input times a parameter of ones, so that there is
 * something to train. */
typedef struct machine {
    pl_graph *graph;
    pl_node *outputs[2];
    pl_node *diff;
    pl_params *params, *grads;
    pl_plan *plan;
    pl_exec *exec;
} machine;

typedef struct machine_opts {
    float rate; /* default 0.5 */
    bool forward;
    const pl_kernels *kernels;
} machine_opts;

static void machine_init(machine *m, machine_opts opts)
{
    float rate = opts.rate > 0 ? opts.rate : 0.5f;
    assert_ok(pl_graph_new(&m->graph));
    pl_node *in =
        pl_input(m->graph, "in", PL_FLOAT32, PL_SHAPE(PL_BATCH, WIDE));
    pl_node *bias = pl_parameter(m->graph, "b", PL_SHAPE(WIDE), "zeros");
    pl_node *x = pl_bias(in, bias);
    for (int i = 0; i < 2; i++)
        m->outputs[i] = pl_dropout(x, rate);
    pl_node *loss = pl_sum(pl_add(m->outputs[0], m->outputs[1]));
    assert_ok(pl_graph_differentiate(m->graph, loss, &m->diff, 1));
    assert_ok(pl_graph_params(m->graph, &m->params));
    assert_ok(pl_params_seal(m->params));
    assert_ok(pl_params_like(&m->grads, m->params));
    assert_ok(pl_plan_new(&m->plan, &(pl_plan_opts) {
                                        .graph = m->graph,
                                        .batch = ROWS,
                                        .kernels = opts.kernels,
                                        .outputs = m->outputs,
                                        .output_count = 2,
                                        .diff = &m->diff,
                                        .diff_count = opts.forward ? 0 : 1,
                                    }));
    assert_ok(pl_exec_new(&m->exec, m->plan, m->params, m->grads));
}

static void machine_close(machine *m)
{
    pl_exec_free(m->exec);
    pl_plan_free(m->plan);
    pl_params_free(m->params);
    pl_params_free(m->grads);
    pl_graph_free(m->graph);
}

/* Run rows first .. first + rows - 1 of a batch of ones. */
static void run(const machine *m, uint64_t key, int64_t first, int64_t rows)
{
    static float ones[COUNT];
    for (int64_t i = 0; i < COUNT; i++)
        ones[i] = 1;
    pl_view view = {
        .data = ones, .stride = WIDE, .dtype = PL_FLOAT32, .scale = 1
    };
    pl_exec_run(m->exec, &(pl_exec_args) {
                             .rows = rows,
                             .views = &view,
                             .seed = 1,
                             .key = key,
                             .first_row = first,
                         });
}

static void copy_output(const machine *m, int which, int64_t rows, float *to)
{
    memcpy(to, pl_exec_output(m->exec, which),
           (size_t)(rows * WIDE) * sizeof *to);
}

static int64_t differences(const float *a, const float *b)
{
    int64_t count = 0;
    for (int64_t i = 0; i < COUNT; i++)
        count += a[i] != b[i];
    return count;
}

static void dropout_of_shards_is_that_of_the_batch(void **state)
{
    (void)state;
    static float whole[COUNT], parts[COUNT];
    FOR_EACH_TABLE(table)
    {
        machine m;
        machine_init(&m, (machine_opts) { .kernels = table });
        run(&m, 9, 0, ROWS);
        copy_output(&m, 0, ROWS, whole);
        for (int64_t shards = 1; shards <= 3; shards++) {
            for (int64_t s = 0; s < shards; s++) {
                int64_t first = ROWS * s / shards;
                int64_t rows = ROWS * (s + 1) / shards - first;
                run(&m, 9, first, rows);
                copy_output(&m, 0, rows, parts + first * WIDE);
            }
            assert_memory_equal(whole, parts, sizeof whole);
        }
        machine_close(&m);
    }
}

/* Two fair masks differ in about half of their elements; six standard
 * deviations of that are 3 sqrt(n). */
static void assert_unlike(const float *a, const float *b)
{
    assert_true(is_near((double)differences(a, b), (double)COUNT / 2,
                        3 * sqrt((double)COUNT)));
}

static void dropout_differs_by_key_and_node(void **state)
{
    (void)state;
    static float one[COUNT], other[COUNT], node[COUNT], again[COUNT];
    machine m;
    machine_init(&m, (machine_opts) { 0 });
    run(&m, 9, 0, ROWS);
    copy_output(&m, 0, ROWS, one);
    copy_output(&m, 1, ROWS, node);
    run(&m, 10, 0, ROWS);
    copy_output(&m, 0, ROWS, other);
    run(&m, 9, 0, ROWS);
    copy_output(&m, 0, ROWS, again);
    assert_unlike(one, node);
    assert_unlike(one, other);
    assert_memory_equal(one, again, sizeof one);
    machine_close(&m);
}

static void dropout_drops_as_often_as_it_says(void **state)
{
    (void)state;
    static float out[COUNT];
    const float rates[] = { 0.05f, 0.25f, 0.5f, 0.9f };
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        machine m;
        machine_init(&m, (machine_opts) { .rate = rates[r] });
        double rate = (double)rates[r], trials = 0, dropped = 0;
        for (uint64_t key = 0; key < 100; key++) {
            run(&m, key, 0, ROWS);
            copy_output(&m, 0, ROWS, out);
            for (int64_t i = 0; i < COUNT; i++) {
                if (out[i] == 0)
                    dropped++;
                else
                    assert_true(out[i] == (float)(1 / (1 - rate)));
            }
            trials += (double)COUNT;
        }
        double deviation = sqrt(trials * rate * (1 - rate));
        assert_true(is_near(dropped, trials * rate, 5 * deviation));
        machine_close(&m);
    }
}

/* The gradient of a bias is the number kept in its column, scaled. */
static void dropout_gradient_has_the_mask_of_the_result(void **state)
{
    (void)state;
    machine m;
    machine_init(&m, (machine_opts) { 0 });
    run(&m, 5, 3, ROWS - 3);
    const float *out[] = { pl_exec_output(m.exec, 0),
                           pl_exec_output(m.exec, 1) };
    for (int64_t c = 0; c < WIDE; c++) {
        float sum = 0;
        for (int64_t r = 0; r < ROWS - 3; r++)
            sum += out[0][r * WIDE + c] + out[1][r * WIDE + c];
        assert_true(sum == pl_params_block(m.grads)[c]);
    }
    machine_close(&m);
}

static void dropout_is_left_out_of_a_plan_without_gradients(void **state)
{
    (void)state;
    machine train, test;
    machine_init(&train, (machine_opts) { 0 });
    machine_init(&test, (machine_opts) { .forward = true });
    run(&test, 9, 0, ROWS);
    for (int which = 0; which < 2; which++)
        for (int64_t i = 0; i < COUNT; i++)
            assert_true(pl_exec_output(test.exec, which)[i] == 1.0f);
    /* The batch is loaded and the bias added, no more. */
    assert_int_equal(2, pl_plan_measure(test.plan).steps);
    assert_true(pl_plan_measure(test.plan).bytes <
                pl_plan_measure(train.plan).bytes);
    machine_close(&train);
    machine_close(&test);
}

static void dropout_refuses_a_rate_out_of_range(void **state)
{
    (void)state;
    const float rates[] = { -0.5f, 1, 2, NAN };
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        pl_graph *graph;
        assert_ok(pl_graph_new(&graph));
        pl_node *x =
            pl_input(graph, "in", PL_FLOAT32, PL_SHAPE(PL_BATCH, WIDE));
        assert_null(pl_dropout(x, rates[r]));
        assert_int_equal(PL_USAGE, pl_graph_status(graph));
        assert_non_null(strstr(pl_error_message(), "a dropout rate of"));
        pl_graph_free(graph);
    }
    pl_graph *graph;
    assert_ok(pl_graph_new(&graph));
    pl_node *x = pl_input(graph, "in", PL_FLOAT32, PL_SHAPE(PL_BATCH, WIDE));
    assert_ptr_equal(x, pl_dropout(x, 0));
    pl_graph_free(graph);
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(cmocka_unit_test(dropout_of_shards_is_that_of_the_batch),
           cmocka_unit_test(dropout_differs_by_key_and_node),
           cmocka_unit_test(dropout_drops_as_often_as_it_says),
           cmocka_unit_test(dropout_gradient_has_the_mask_of_the_result),
           cmocka_unit_test(dropout_is_left_out_of_a_plan_without_gradients),
           cmocka_unit_test(dropout_refuses_a_rate_out_of_range))
