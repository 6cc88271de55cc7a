#include "graph/plan.h"

#include "graph/plan_priv.h"
#include "support/kernels.h"
#include "tensor/shape.h"

#define BATCH 9
#define WIDE  16
#define MOST  400 /* nodes of a test's graph */

/* A graph with its gradients, made ready to run with some outputs. */
typedef struct machine {
    pl_params *params, *grads;
    pl_plan *plan;
    pl_exec *exec;
} machine;

static void machine_init(machine *m, const pl_plan_opts *opts)
{
    assert_ok(pl_graph_params(opts->graph, &m->params));
    assert_ok(pl_params_seal(m->params));
    assert_ok(pl_params_like(&m->grads, m->params));
    for (int p = 0; p < pl_params_count(m->params); p++)
        for (int64_t i = 0; i < pl_params_get(m->params, p)->count; i++)
            pl_params_data(m->params, p)[i] =
                (float)(0.6 * pl_rng_uniform((uint64_t)p, (uint64_t)i) - 0.3);
    assert_ok(pl_plan_new(&m->plan, opts));
    assert_ok(pl_exec_new(&m->exec, m->plan, m->params, m->grads));
}

static void machine_close(machine *m)
{
    pl_exec_free(m->exec);
    pl_plan_free(m->plan);
    pl_params_free(m->params);
    pl_params_free(m->grads);
}

/* A batch of bytes, picked by index. */
typedef struct batch {
    uint8_t bytes[2 * BATCH][WIDE];
    uint32_t index[BATCH];
    int32_t labels[BATCH];
    pl_view views[2];
} batch;

static void batch_init(batch *b)
{
    for (int r = 0; r < 2 * BATCH; r++)
        for (int i = 0; i < WIDE; i++)
            b->bytes[r][i] = (uint8_t)draw_int(0, 255);
    for (int r = 0; r < BATCH; r++) {
        b->index[r] = (uint32_t)draw_int(0, 2 * BATCH - 1);
        b->labels[r] = (int32_t)draw_int(0, WIDE - 1);
    }
    b->views[0] = (pl_view) { .data = b->bytes,
                              .index = b->index,
                              .stride = WIDE,
                              .dtype = PL_UINT8,
                              .scale = 1.0f / 255 };
    b->views[1] = (pl_view) {
        .data = b->labels, .stride = 1, .dtype = PL_INT32, .scale = 1.0f
    };
}

static void run(const machine *m, const batch *b, int64_t rows)
{
    pl_exec_run(m->exec, &(pl_exec_args) {
                             .rows = rows, .views = b->views, .seed = 1.0f });
}

/* A graph of operators drawn at random, all [batch, WIDE]. */
typedef struct net {
    pl_graph *graph;
    pl_node *loss;
    pl_node *diff[64];
    int diff_count;
} net;

static pl_node *random_node(net *n, pl_node *const *made, int count)
{
    /* Mostly the newest, at times an old one. */
    pl_node *a = made[draw_int(0, 3) > 0 ? count - 1 : draw_int(0, count - 1)];
    pl_node *b = made[draw_int(0, count - 1)];
    char name[16];
    snprintf(name, sizeof name, "p%d", n->diff_count);
    switch (draw_int(0, 8)) {
    case 0:
        return pl_relu(a);
    case 1:
        return pl_tanh(a);
    case 2:
        return pl_sigmoid(a);
    case 3:
        return pl_scale(a, draw(-1, 1));
    case 4:
        return pl_reshape(pl_tanh(pl_reshape(a, PL_SHAPE(PL_BATCH, 4, 4))),
                          PL_SHAPE(PL_BATCH, WIDE));
    case 5:
        n->diff_count++;
        return pl_bias(a,
                       pl_parameter(n->graph, name, PL_SHAPE(WIDE), "zeros"));
    case 6:
        n->diff_count++;
        return pl_inner(
            a, pl_parameter(n->graph, name, PL_SHAPE(WIDE, WIDE), "glorot"),
            NULL);
    default:
        return pl_add(a, b);
    }
}

static void net_init(net *n, int nodes)
{
    *n = (net) { .graph = NULL };
    assert_ok(pl_graph_new(&n->graph));
    pl_node *made[MOST];
    made[0] = pl_input(n->graph, "x", PL_FLOAT32, PL_SHAPE(PL_BATCH, WIDE));
    pl_node *labels =
        pl_input(n->graph, "labels", PL_INT32, PL_SHAPE(PL_BATCH));
    for (int i = 1; i < nodes; i++)
        made[i] = random_node(n, made, i);
    n->loss = pl_mean(pl_softmax_xent(made[nodes - 1], labels));
    assert_ok(pl_graph_status(n->graph));
    assert_ok(pl_graph_differentiate(n->graph, n->loss, n->diff, 64));
    assert_true(pl_graph_count(n->graph) < MOST);
}

static pl_plan_opts net_opts(const net *n)
{
    return (pl_plan_opts) {
        .graph = n->graph,
        .batch = BATCH,
        .outputs = &n->loss,
        .output_count = 1,
        .diff = n->diff,
        .diff_count = n->diff_count,
    };
}

/* Every node that computes, so that no memory is used again. */
static int computed(const pl_graph *graph, pl_node **list)
{
    int count = 0;
    for (int i = 0; i < pl_graph_count(graph); i++)
        if (pl_graph_get(graph, i)->op->run != NULL)
            list[count++] = pl_graph_get(graph, i);
    return count;
}

static void plan_that_shares_memory_computes_the_same(void **state)
{
    (void)state;
    batch b;
    for (int round = 0; round < 60; round++) {
        net n;
        machine shared, apart;
        pl_node *all[MOST];
        net_init(&n, 2 + round / 2);
        batch_init(&b);
        pl_plan_opts opts = net_opts(&n);
        machine_init(&shared, &opts);
        opts.outputs = all;
        opts.output_count = computed(n.graph, all);
        machine_init(&apart, &opts);
        int loss = 0;
        while (all[loss] != n.loss)
            loss++;
        for (int again = 0; again < 2; again++) {
            int64_t rows = again == 0 ? BATCH : draw_int(1, BATCH);
            run(&shared, &b, rows);
            run(&apart, &b, rows);
            assert_memory_equal(pl_exec_output(apart.exec, loss),
                                pl_exec_output(shared.exec, 0), sizeof(float));
            assert_memory_equal(
                pl_params_block(apart.grads), pl_params_block(shared.grads),
                (size_t)pl_params_block_count(shared.grads) * sizeof(float));
        }
        machine_close(&shared);
        machine_close(&apart);
        pl_graph_free(n.graph);
    }
    assert_int_equal(0, pl_mem_live());
}

static int root_of(const pl_node *node)
{
    while (node->op->alias)
        node = node->in[0];
    return node->id;
}

/* When a result is made and last read, found from the graph alone; only the
 * order of the steps is the plan's. */
typedef struct life {
    int made, last;
    int64_t bytes;
} life;

static void find_lives(const net *n, const pl_plan *plan, life *lives)
{
    int steps = plan->step_count;
    for (int i = 0; i < plan->value_count; i++)
        lives[i] = (life) { steps, -1, 0 };
    for (int s = 0; s < steps; s++) {
        const pl_node *node = pl_graph_get(n->graph, plan->steps[s].node);
        life *own = &lives[node->id];
        own->made = s;
        own->last = s;
        own->bytes = 4 * pl_shape_count(node->shape, plan->batch);
        if (plan->steps[s].kind != PL_STEP_RUN)
            continue;
        for (int d = 0; d < n->diff_count; d++)
            if (n->diff[d] == node)
                own->bytes = 0; /* in the gradients' block */
        if (node->op->workspace != NULL)
            own->bytes += 4 * node->op->workspace(node, plan->batch);
        for (int j = 0; j < node->input_count; j++)
            lives[root_of(node->in[j])].last = s;
    }
    lives[n->loss->id].last = steps;
}

/* What is still needed after some step must fit at once. */
static int64_t largest_live_set(const net *n, const pl_plan *plan)
{
    life lives[MOST];
    int64_t largest = 0;
    find_lives(n, plan, lives);
    for (int s = 0; s < plan->step_count; s++) {
        int64_t bytes = 0;
        for (int i = 0; i < plan->value_count; i++)
            if (lives[i].made <= s && (lives[i].last > s || lives[i].made == s))
                bytes += lives[i].bytes;
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

static void plan_memory_covers_all_live_results(void **state)
{
    (void)state;
    for (int round = 0; round < 60; round++) {
        net n;
        pl_plan *plan;
        net_init(&n, 2 + round / 2);
        pl_plan_opts opts = net_opts(&n);
        assert_ok(pl_plan_new(&plan, &opts));
        pl_plan_memory memory = pl_plan_measure(plan);
        assert_true(memory.bytes >= largest_live_set(&n, plan));
        assert_true(memory.bytes <= memory.unshared_bytes);
        assert_int_equal(plan->step_count, memory.steps);
        pl_plan_free(plan);
        pl_graph_free(n.graph);
    }
}

/* Forward only, a chain needs two results at a time, however long it is. */
static void plan_of_a_deep_net_reuses_memory(void **state)
{
    (void)state;
    pl_graph *graph;
    pl_plan *plan;
    assert_ok(pl_graph_new(&graph));
    pl_node *h = pl_input(graph, "x", PL_FLOAT32, PL_SHAPE(PL_BATCH, WIDE));
    pl_node *w = pl_parameter(graph, "w", PL_SHAPE(WIDE, WIDE), "glorot");
    for (int i = 0; i < 40; i++)
        h = pl_relu(pl_inner(h, w, NULL));
    pl_node *loss = pl_mean(h);
    assert_ok(pl_plan_new(&plan, &(pl_plan_opts) { .graph = graph,
                                                   .batch = 64,
                                                   .outputs = &loss,
                                                   .output_count = 1 }));
    pl_plan_memory memory = pl_plan_measure(plan);
    const int64_t one = 64 * WIDE * 4;
    assert_true(memory.unshared_bytes >= 80 * one);
    assert_true(memory.bytes <= 2 * one + 64);
    assert_int_equal(40 * WIDE * WIDE, memory.multiply_adds);
    pl_plan_free(plan);
    pl_graph_free(graph);
}

static void plan_converts_a_view_for_operators_that_cannot_read_it(void **state)
{
    (void)state;
    batch b;
    machine m;
    pl_graph *graph;
    pl_node *outputs[3];
    batch_init(&b);
    assert_ok(pl_graph_new(&graph));
    pl_node *x = pl_input(graph, "x", PL_FLOAT32, PL_SHAPE(PL_BATCH, WIDE));
    pl_node *cube = pl_reshape(x, PL_SHAPE(PL_BATCH, 2, 8)); /* no copy */
    outputs[0] = pl_relu(x);
    outputs[1] = pl_add(cube, cube);
    outputs[2] =
        pl_inner(x, pl_parameter(graph, "w", PL_SHAPE(1, WIDE), "ones"), NULL);
    machine_init(&m, &(pl_plan_opts) { .graph = graph,
                                       .batch = BATCH,
                                       .outputs = outputs,
                                       .output_count = 3 });
    int loads = 0;
    for (int s = 0; s < m.plan->step_count; s++)
        loads += m.plan->steps[s].kind == PL_STEP_TO_PLAIN;
    assert_int_equal(1, loads); /* once for all */
    run(&m, &b, BATCH);
    for (int r = 0; r < BATCH; r++) {
        double sum = 0;
        for (int i = 0; i < WIDE; i++) {
            double exact = (double)b.bytes[b.index[r]][i] / 255;
            int at = r * WIDE + i;
            sum += exact * (double)pl_params_data(m.params, 0)[i];
            assert_true(
                is_near((double)pl_exec_output(m.exec, 0)[at], exact, 1e-7));
            assert_true(is_near((double)pl_exec_output(m.exec, 1)[at],
                                2 * exact, 2e-7));
        }
        assert_true(is_near((double)pl_exec_output(m.exec, 2)[r], sum, 1e-5));
    }
    machine_close(&m);
    pl_graph_free(graph);
}

/* Nothing is converted for an operator that reads bytes in place. */
static void plan_reads_a_batch_in_place_where_it_can(void **state)
{
    (void)state;
    pl_graph *graph;
    pl_plan *plan;
    assert_ok(pl_graph_new(&graph));
    pl_node *x = pl_input(graph, "x", PL_FLOAT32, PL_SHAPE(PL_BATCH, 28, 28));
    pl_node *w = pl_parameter(graph, "w", PL_SHAPE(16, 784), "zeros");
    pl_node *out = pl_inner(pl_flatten(x), w, NULL);
    assert_ok(pl_plan_new(&plan, &(pl_plan_opts) { .graph = graph,
                                                   .batch = 100,
                                                   .outputs = &out,
                                                   .output_count = 1 }));
    assert_int_equal(100 * 16 * 4, pl_plan_measure(plan).bytes);
    assert_int_equal(1, pl_plan_measure(plan).steps);
    pl_plan_free(plan);
    pl_graph_free(graph);
}

/* An input without a batch is as large as it says, whatever the batch. */
static void plan_converts_an_input_without_a_batch(void **state)
{
    (void)state;
    const float values[] = { 1, -2, 3, -4, 5, -6 };
    const pl_view views[] = {
        { .data = values, .stride = 1, .dtype = PL_FLOAT32, .scale = 1.0f },
        { .data = values, .stride = 2, .dtype = PL_FLOAT32, .scale = 1.0f },
    };
    machine m;
    pl_graph *graph;
    pl_node *outputs[2];
    assert_ok(pl_graph_new(&graph));
    outputs[0] = pl_relu(pl_input(graph, "x", PL_FLOAT32, PL_SHAPE(PL_BATCH)));
    outputs[1] = pl_relu(pl_input(graph, "table", PL_FLOAT32, PL_SHAPE(3, 2)));
    machine_init(&m, &(pl_plan_opts) { .graph = graph,
                                       .batch = 6,
                                       .outputs = outputs,
                                       .output_count = 2 });
    pl_exec_run(m.exec, &(pl_exec_args) { .rows = 6, .views = views });
    for (int i = 0; i < 6; i++) {
        float expected = values[i] > 0 ? values[i] : 0;
        assert_true(pl_exec_output(m.exec, 0)[i] == expected);
        assert_true(pl_exec_output(m.exec, 1)[i] == expected);
    }
    machine_close(&m);
    pl_graph_free(graph);
}

static void plan_runs_fewer_rows_than_planned(void **state)
{
    (void)state;
    net n;
    batch b;
    net_init(&n, 12);
    batch_init(&b);
    pl_plan_opts opts = net_opts(&n);
    machine large;
    machine_init(&large, &opts);
    for (int64_t rows = 1; rows <= BATCH; rows++) {
        machine exact;
        opts.batch = rows;
        machine_init(&exact, &opts);
        run(&exact, &b, rows);
        run(&large, &b, rows);
        assert_memory_equal(pl_exec_output(exact.exec, 0),
                            pl_exec_output(large.exec, 0), sizeof(float));
        assert_memory_equal(
            pl_params_block(exact.grads), pl_params_block(large.grads),
            (size_t)pl_params_block_count(exact.grads) * sizeof(float));
        machine_close(&exact);
    }
    machine_close(&large);
    pl_graph_free(n.graph);
}

static void exec_writes_the_gradients_to_the_given_memory(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        net n;
        batch b;
        machine m;
        pl_params *other;
        net_init(&n, 2 + round);
        batch_init(&b);
        pl_plan_opts opts = net_opts(&n);
        machine_init(&m, &opts);
        assert_ok(pl_params_like(&other, m.params));
        size_t bytes = (size_t)pl_params_block_count(m.grads) * sizeof(float);
        run(&m, &b, BATCH);
        pl_exec_bind(m.exec, other);
        run(&m, &b, BATCH);
        assert_memory_equal(pl_params_block(m.grads), pl_params_block(other),
                            bytes);
        memset(pl_params_block(m.grads), 0, bytes);
        pl_exec_bind(m.exec, m.grads);
        run(&m, &b, BATCH);
        assert_memory_equal(pl_params_block(other), pl_params_block(m.grads),
                            bytes);
        pl_params_free(other);
        machine_close(&m);
        pl_graph_free(n.graph);
    }
}

/* An early result that is an output is intact at the end: no later result took
 * its memory. */
static void plan_keeps_its_outputs(void **state)
{
    (void)state;
    batch b;
    machine m;
    pl_graph *graph;
    pl_node *outputs[3];
    batch_init(&b);
    assert_ok(pl_graph_new(&graph));
    pl_node *x = pl_input(graph, "x", PL_FLOAT32, PL_SHAPE(PL_BATCH, WIDE));
    pl_node *early = pl_scale(x, 255);
    pl_node *h = pl_scale(early, 2);
    outputs[0] = pl_reshape(early, PL_SHAPE(PL_BATCH, 4, 4));
    outputs[1] = pl_parameter(graph, "p", PL_SHAPE(3), "zeros");
    for (int i = 0; i < 10; i++)
        h = pl_tanh(pl_add(h, h));
    outputs[2] = h;
    machine_init(&m, &(pl_plan_opts) { .graph = graph,
                                       .batch = BATCH,
                                       .outputs = outputs,
                                       .output_count = 3 });
    run(&m, &b, BATCH);
    for (int r = 0; r < BATCH; r++)
        for (int i = 0; i < WIDE; i++)
            assert_true(is_near((double)pl_exec_output(m.exec, 0)[r * WIDE + i],
                                (double)b.bytes[b.index[r]][i], 1e-4));
    assert_ptr_equal(pl_params_data(m.params, 0), pl_exec_output(m.exec, 1));
    machine_close(&m);
    pl_graph_free(graph);
}

/* A plan too large for any machine still reports its size. */
static void plan_needs_no_memory_until_it_is_executed(void **state)
{
    (void)state;
    pl_graph *graph;
    pl_plan *plan;
    assert_ok(pl_graph_new(&graph));
    pl_node *x = pl_input(graph, "x", PL_FLOAT32, PL_SHAPE(PL_BATCH, 1024));
    pl_node *w = pl_parameter(graph, "w", PL_SHAPE(1 << 16, 1024), "zeros");
    pl_node *loss = pl_mean(pl_relu(pl_inner(x, w, NULL)));
    pl_node *diff[1];
    assert_ok(pl_graph_differentiate(graph, loss, diff, 1));
    long before = pl_mem_live();
    assert_ok(pl_plan_new(&plan, &(pl_plan_opts) { .graph = graph,
                                                   .batch = (int64_t)1 << 24,
                                                   .outputs = &loss,
                                                   .output_count = 1,
                                                   .diff = diff,
                                                   .diff_count = 1 }));
    assert_true(pl_plan_measure(plan).bytes >= (int64_t)1 << 42);
    pl_plan_free(plan);
    assert_int_equal(before, pl_mem_live());
    pl_graph_free(graph);
}

UNIT_TESTS(
    cmocka_unit_test(plan_that_shares_memory_computes_the_same),
    cmocka_unit_test(plan_memory_covers_all_live_results),
    cmocka_unit_test(plan_of_a_deep_net_reuses_memory),
    cmocka_unit_test(plan_converts_a_view_for_operators_that_cannot_read_it),
    cmocka_unit_test(plan_reads_a_batch_in_place_where_it_can),
    cmocka_unit_test(plan_converts_an_input_without_a_batch),
    cmocka_unit_test(plan_runs_fewer_rows_than_planned),
    cmocka_unit_test(exec_writes_the_gradients_to_the_given_memory),
    cmocka_unit_test(plan_keeps_its_outputs),
    cmocka_unit_test(plan_needs_no_memory_until_it_is_executed))
