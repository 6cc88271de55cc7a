/* Plans whose layers oneDNN computes, against the same graphs on the
 * reference kernels. */
#include "graph/plan.h"
#include "graph/plan_priv.h"
#include "support/kernels.h"
#include "tensor/shape.h"

#include <math.h>
#include <stdlib.h>

#define BATCH 4
#define SIDE  31
#define IMAGE (3 * SIDE * SIDE)

typedef struct net {
    pl_graph *graph;
    pl_node *loss, *inner; /* an image inside */
    pl_node *diff[32];
    int params;
} net;

static pl_node *param(net *n, pl_shape shape)
{
    char name[16];
    snprintf(name, sizeof name, "p%d", n->params++);
    return pl_parameter(n->graph, name, shape, "glorot");
}

static pl_node *conv(net *n, pl_node *src, int64_t outs, int64_t kernel,
                     int64_t stride, int64_t pad)
{
    int64_t channels = pl_node_shape(src).dim[1];
    return pl_conv2d(src, param(n, PL_SHAPE(outs, channels, kernel, kernel)),
                     param(n, PL_SHAPE(outs)), stride, pad);
}

static pl_node *dense(net *n, pl_node *src, int64_t outs)
{
    return pl_inner(src, param(n, PL_SHAPE(outs, pl_node_shape(src).dim[1])),
                    param(n, PL_SHAPE(outs)));
}

/* AlexNet, but for its sizes. */
static pl_node *small_alexnet(net *n, pl_node *x)
{
    x = pl_max_pool(pl_relu(conv(n, x, 20, 7, 2, 2)), 3, 2);
    x = pl_max_pool(pl_relu(conv(n, x, 48, 5, 1, 2)), 3, 2);
    x = pl_relu(conv(n, x, 32, 3, 1, 1));
    n->inner = x;
    x = pl_relu(conv(n, x, 33, 3, 1, 1));
    x = pl_flatten(pl_max_pool(x, 3, 2));
    return dense(n, pl_relu(dense(n, x, 40)), 10);
}

/* Where layouts meet: odd channels, an activation that is not 0 at 0, two
 * readers, another shape of the same memory, few channels. */
static pl_node *odd_one(net *n, pl_node *x)
{
    pl_node *a = pl_sigmoid(conv(n, x, 18, 3, 2, 1)); /* [18, 16, 16] */
    pl_node *b = conv(n, a, 18, 3, 1, 1);
    pl_node *c = pl_add(pl_relu(b), pl_tanh(b));
    n->inner = c;
    x = pl_reshape(c, PL_SHAPE(PL_BATCH, 72, 8, 8));
    x = pl_avg_pool(pl_relu(pl_scale(conv(n, x, 5, 3, 1, 1), 0.5f)), 2, 2);
    x = pl_relu(pl_flatten(conv(n, x, 16, 1, 1, 0)));
    x = pl_reshape(x, PL_SHAPE(PL_BATCH, 64, 2, 2));
    return dense(n, pl_flatten(conv(n, x, 16, 2, 1, 0)), 10);
}

/* Dropout has one mask in all layouts. */
static pl_node *forgetful(net *n, pl_node *x)
{
    x = pl_dropout(pl_relu(conv(n, x, 32, 3, 1, 1)), 0.3f);
    n->inner = x;
    x = pl_flatten(pl_max_pool(conv(n, x, 20, 3, 1, 1), 3, 2));
    return dense(n, pl_relu(dense(n, pl_dropout(x, 0.5f), 40)), 10);
}

static pl_node *normalized(net *n, pl_node *x, int64_t outs)
{
    int64_t channels = pl_node_shape(x).dim[1];
    x = pl_conv2d(x, param(n, PL_SHAPE(outs, channels, 3, 3)), NULL, 1, 1);
    pl_node *scale = param(n, PL_SHAPE(outs)),
            *shift = param(n, PL_SHAPE(outs));
    char name[16];
    snprintf(name, sizeof name, "s%d", n->params++);
    pl_node *running =
        pl_statistic(n->graph, name, PL_SHAPE(outs), "ones", 0.1f);
    return pl_batch_norm(x, scale, shift, running, running, 1e-5f);
}

/* Channels that do not fill a block, normalized, padded, added, joined. */
static pl_node *residual(net *n, pl_node *x)
{
    x = pl_max_pool(pl_pad(pl_leaky_relu(normalized(n, x, 20), 0.1f), 1), 3, 2);
    n->inner = x;
    pl_node *y = pl_gelu(pl_add(x, normalized(n, x, 20)));
    y = pl_concat(y, normalized(n, y, 37), 1);
    return dense(n, pl_global_avg_pool(pl_relu(y)), 10);
}

typedef pl_node *architecture(net *n, pl_node *x);

static void net_init(net *n, architecture *make)
{
    *n = (net) { .graph = NULL };
    assert_ok(pl_graph_new(&n->graph));
    pl_node *x = pl_input(n->graph, "x", PL_FLOAT32, PL_SHAPE(PL_BATCH, IMAGE));
    pl_node *labels =
        pl_input(n->graph, "labels", PL_INT32, PL_SHAPE(PL_BATCH));
    x = pl_reshape(x, PL_SHAPE(PL_BATCH, 3, SIDE, SIDE));
    n->loss = pl_mean(pl_softmax_xent(make(n, x), labels));
    assert_ok(pl_graph_status(n->graph));
    assert_ok(pl_graph_differentiate(n->graph, n->loss, n->diff, 32));
}

typedef struct machine {
    pl_params *params, *grads;
    pl_plan *plan;
    pl_exec *exec;
} machine;

typedef struct machine_opts {
    const char *kernels; /* default: the best */
    pl_world world;
    int threads;
    bool bf16;
    bool keep; /* n->inner is an output as well */
} machine_opts;

static pl_plan_opts plan_opts(const net *n, machine_opts o, pl_node *outputs[2])
{
    outputs[0] = n->loss;
    outputs[1] = n->inner;
    return (pl_plan_opts) {
        .graph = n->graph,
        .batch = BATCH,
        .kernels =
            o.kernels != NULL ? pl_kernels_find(o.kernels) : pl_kernels_best(),
        .outputs = outputs,
        .output_count = o.keep ? 2 : 1,
        .diff = n->diff,
        .diff_count = n->params,
        .world = o.world,
        .bf16 = o.bf16,
        .threads = o.threads,
    };
}

static void machine_init(machine *m, const net *n, machine_opts o)
{
    pl_node *outputs[2];
    pl_plan_opts opts = plan_opts(n, o, outputs);
    assert_ok(pl_graph_params(n->graph, &m->params));
    assert_ok(pl_params_seal(m->params));
    assert_ok(pl_params_like(&m->grads, m->params));
    for (int p = 0; p < pl_params_count(m->params); p++)
        for (int64_t i = 0; i < pl_params_get(m->params, p)->count; i++)
            pl_params_data(m->params, p)[i] =
                (float)(0.4 * pl_rng_uniform((uint64_t)p, (uint64_t)i) - 0.2);
    assert_ok(pl_plan_new(&m->plan, &opts));
    assert_ok(pl_exec_new(&m->exec, m->plan, m->params, m->grads));
}

static void machine_close(machine *m)
{
    pl_exec_free(m->exec);
    pl_plan_free(m->plan);
    pl_params_free(m->params);
    pl_params_free(m->grads);
}

/* The loss of `rows` examples drawn by `key`. */
static double run_with(const machine *m, int64_t rows, uint64_t key,
                       pl_exec_hooks *hooks)
{
    static uint8_t images[BATCH][IMAGE];
    int32_t labels[BATCH];
    for (int r = 0; r < BATCH; r++) {
        labels[r] = (int32_t)pl_rng_below(key, (uint64_t)r, 10);
        for (int i = 0; i < IMAGE; i++)
            images[r][i] =
                (uint8_t)pl_rng_below(key + 1, (uint64_t)(r * IMAGE + i), 256);
    }
    pl_view views[] = {
        { .data = images,
          .stride = IMAGE,
          .dtype = PL_UINT8,
          .scale = 1.0f / 255 },
        { .data = labels, .stride = 1, .dtype = PL_INT32, .scale = 1.0f },
    };
    pl_exec_run(m->exec, &(pl_exec_args) { .rows = rows,
                                           .views = views,
                                           .seed = 1.0f,
                                           .hooks = hooks });
    return (double)*pl_exec_output(m->exec, 0);
}

static double run(const machine *m, int64_t rows, uint64_t key)
{
    return run_with(m, rows, key, NULL);
}

/* The first layer reads bytes in place. */
static pl_node *two_dense(net *n, pl_node *x)
{
    x = pl_relu(dense(n, pl_flatten(x), 37));
    n->inner = x;
    return dense(n, x, 10);
}

/* Added to a sum at once it has the bits of a product added afterwards: with
 * so few rows oneDNN adds the sum last, unless the product is a vector. */
static void check_adding(const machine *m, const pl_node *diff, int64_t rows,
                         const float *factors, float scale,
                         const float *product)
{
    int64_t count = diff->shape.dim[0] * diff->shape.dim[1];
    size_t bytes = (size_t)count * sizeof(float);
    float *sum = malloc(bytes), *expected = malloc(bytes);
    for (int64_t i = 0; i < count; i++) {
        sum[i] = (float)(i % 17) / 7;
        expected[i] = sum[i] + product[i];
    }
    bool added = pl_exec_multiply_add(m->exec, diff, rows, factors, scale, sum);
    assert_true(added == pl_plan_measure(m->plan).large);
    if (added)
        assert_memory_equal(expected, sum, bytes);
    free(sum);
    free(expected);
}

/* What another execution makes of the factors is the gradient itself. */
static void check_factors(architecture *make, machine_opts o, int expected)
{
    net n;
    machine a, b;
    int found = 0;
    net_init(&n, make);
    machine_init(&a, &n, o);
    machine_init(&b, &n, o);
    run(&b, 1, 7); /* its views are bound to another batch */
    float *kept[32] = { NULL }, scale[32];
    for (int p = 0; p < n.params; p++) {
        pl_factor_sizes sizes;
        if (!pl_plan_factors(n.diff[p], &sizes))
            continue;
        kept[p] = calloc((size_t)(BATCH * (sizes.outputs + sizes.inputs)),
                         sizeof(float));
        pl_exec_keep_factors(a.exec, n.diff[p], kept[p], &scale[p]);
        found++;
    }
    assert_int_equal(expected, found);
    for (int64_t rows = BATCH; rows > 0; rows -= 3) {
        run(&a, rows, 3);
        for (int p = 0; p < n.params; p++) {
            if (kept[p] == NULL)
                continue;
            size_t bytes = (size_t)pl_params_get(a.grads, p)->count * 4;
            float *again = malloc(bytes);
            pl_exec_multiply(b.exec, n.diff[p], rows, kept[p], scale[p], again);
            assert_memory_equal(pl_params_data(a.grads, p), again, bytes);
            check_adding(&b, n.diff[p], rows, kept[p], scale[p], again);
            free(again);
        }
    }
    for (int p = 0; p < n.params; p++)
        free(kept[p]);
    machine_close(&a);
    machine_close(&b);
    pl_graph_free(n.graph);
}

static void factors_give_the_gradient_in_small_and_large_plans(void **state)
{
    (void)state;
    static const pl_world worlds[] = { PL_WORLD_SMALL, PL_WORLD_LARGE };
    for (int i = 0; i < 4; i++) {
        machine_opts o = { .world = worlds[i / 2], .threads = 1 + i % 2 };
        check_factors(small_alexnet, o, 2);
        check_factors(two_dense, o, 2);
    }
}

/* Each parameter's gradient, as a vector: the difference is small beside it. */
static void assert_gradients_agree(const machine *got, const machine *expected,
                                   double share)
{
    for (int p = 0; p < pl_params_count(got->grads); p++) {
        const float *a = pl_params_data(got->grads, p);
        const float *b = pl_params_data(expected->grads, p);
        double difference = 0, size = 0;
        for (int64_t i = 0; i < pl_params_get(got->grads, p)->count; i++) {
            difference += pow((double)(a[i] - b[i]), 2);
            size += pow((double)b[i], 2);
        }
        assert_true(size > 0);
        if (!(sqrt(difference) <= share * sqrt(size)))
            fail_msg("parameter %d: off by %g of %g", p, sqrt(difference),
                     sqrt(size));
    }
}

static bool large(const machine *m)
{
    return pl_plan_measure(m->plan).large;
}

static void check_agreement(architecture *make, machine_opts o)
{
    if (pl_kernels_find(o.kernels) == NULL)
        return;
    net n;
    machine m, reference;
    net_init(&n, make);
    machine_init(&m, &n, o);
    o.kernels = "reference";
    machine_init(&reference, &n, o);
    assert_true(large(&m));
    assert_false(large(&reference));
    /* All rows, fewer, and all again: a run leaves nothing behind. */
    static const int64_t rows[] = { BATCH, 1, BATCH - 1, BATCH };
    for (uint64_t i = 0; i < 4; i++) {
        double loss = run(&m, rows[i], i),
               expected = run(&reference, rows[i], i);
        assert_true(is_near(loss, expected, (o.bf16 ? 1e-2 : 1e-5) * expected));
        assert_gradients_agree(&m, &reference, o.bf16 ? 0.15 : 1e-4);
    }
    if (o.keep) {
        int64_t count = pl_shape_count(pl_node_shape(n.inner), BATCH);
        for (int64_t i = 0; i < count; i++)
            assert_true(is_near((double)pl_exec_output(m.exec, 1)[i],
                                (double)pl_exec_output(reference.exec, 1)[i],
                                1e-4));
    }
    machine_close(&m);
    machine_close(&reference);
    pl_graph_free(n.graph);
}

static void large_plan_agrees_with_the_reference(void **state)
{
    (void)state;
    static const char *const tables[] = { "avx512", "avx2" };
    static architecture *const nets[] = { small_alexnet, odd_one, forgetful,
                                          residual };
    for (int i = 0; i < 8; i++)
        check_agreement(nets[i / 2],
                        (machine_opts) {
                            .kernels = tables[i % 2],
                            .world = PL_WORLD_LARGE,
                            .threads = i == 1 || i == 4 || i == 6 ? 2 : 1,
                            .keep = i == 0 || i == 3 || i == 4 || i == 7,
                        });
}

/* ... and rounds: its loss is another one, but the same each time. */
static void large_plan_in_bf16_is_near_the_reference(void **state)
{
    (void)state;
    static architecture *const nets[] = { small_alexnet, odd_one, residual };
    if (!pl_dnn_has_bf16(pl_kernels_best()))
        skip();
    machine_opts bf16 = {
        .kernels = "avx512", .world = PL_WORLD_LARGE, .threads = 1, .bf16 = true
    };
    machine_opts plain = bf16;
    plain.bf16 = false;
    for (int i = 0; i < 3; i++) {
        net n;
        machine a, b;
        check_agreement(nets[i], bf16);
        net_init(&n, nets[i]);
        machine_init(&a, &n, bf16);
        machine_init(&b, &n, plain);
        double loss = run(&a, BATCH, 1);
        assert_true(loss == run(&a, BATCH, 1));
        assert_true(loss != run(&b, BATCH, 1));
        machine_close(&a);
        machine_close(&b);
        pl_graph_free(n.graph);
    }
}

static void large_plan_repeats_its_bits(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        machine_opts o = { .world = PL_WORLD_LARGE, .threads = threads };
        net n;
        machine a, b;
        net_init(&n, small_alexnet);
        machine_init(&a, &n, o);
        machine_init(&b, &n, o);
        run(&b, BATCH, 5); /* a different past */
        double loss = run(&a, BATCH, 3);
        assert_true(loss == run(&b, BATCH, 3));
        size_t bytes = (size_t)pl_params_block_count(a.grads) * sizeof(float);
        assert_memory_equal(pl_params_block(a.grads), pl_params_block(b.grads),
                            bytes);
        machine_close(&a);
        machine_close(&b);
        pl_graph_free(n.graph);
    }
}

static void large_plan_joins_relu_and_bias_gradient(void **state)
{
    (void)state;
    if (!pl_dnn_usable(pl_kernels_best()))
        skip();
    net n;
    machine m;
    net_init(&n, small_alexnet);
    machine_init(&m, &n, (machine_opts) { .world = PL_WORLD_LARGE });
    int relus = 0;
    for (int s = 0; s < m.plan->step_count; s++) {
        const pl_op *op = pl_graph_get(n.graph, m.plan->steps[s].node)->op;
        if (m.plan->steps[s].kind != PL_STEP_RUN)
            continue;
        assert_true(op != &pl_op_conv2d_bias);
        relus += op == &pl_op_relu;
    }
    assert_int_equal(1, relus); /* behind the first product */
    machine_close(&m);
    pl_graph_free(n.graph);
}

static pl_node *one_layer(net *n, pl_node *x)
{
    return dense(n, pl_flatten(conv(n, x, 8, 3, 1, 0)), 10);
}

static pl_node *heavy_layer(net *n, pl_node *x)
{
    x = conv(n, conv(n, x, 64, 3, 1, 1), 64, 3, 1, 1);
    return dense(n, pl_flatten(pl_max_pool(x, 31, 1)), 10);
}

/* As much work, but the channels fill the blocks badly. */
static pl_node *odd_layer(net *n, pl_node *x)
{
    x = conv(n, conv(n, x, 70, 3, 1, 1), 70, 3, 1, 1);
    return dense(n, pl_flatten(pl_max_pool(x, 31, 1)), 10);
}

static pl_node *heavy_product(net *n, pl_node *x)
{
    return dense(n, dense(n, pl_flatten(x), 1000), 10);
}

/* By shape alone. */
static void plan_chooses_small_or_large_by_shape(void **state)
{
    (void)state;
    static const struct {
        architecture *make;
        bool large;
    } cases[] = {
        { one_layer, false },
        { heavy_layer, true },
        { odd_layer, false },
        { heavy_product, true },
    };
    bool usable = pl_dnn_usable(pl_kernels_best());
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        net n;
        machine m;
        net_init(&n, cases[i].make);
        machine_init(&m, &n, (machine_opts) { .threads = 1 });
        assert_true(large(&m) == (usable && cases[i].large));
        machine_close(&m);
        machine_init(&m, &n, (machine_opts) { .world = PL_WORLD_SMALL });
        assert_false(large(&m));
        machine_close(&m);
        machine_init(
            &m, &n,
            (machine_opts) { .kernels = "portable", .world = PL_WORLD_LARGE });
        assert_false(large(&m));
        machine_close(&m);
        pl_graph_free(n.graph);
    }
}

/* Alternating in one memory: no plan relies on its content between two runs. */
static void large_plan_runs_in_the_memory_of_another(void **state)
{
    (void)state;
    net n;
    machine host;
    net_init(&n, small_alexnet);
    machine_init(&host, &n, (machine_opts) { .world = PL_WORLD_LARGE });
    pl_node *outputs[2];
    pl_plan_opts opts =
        plan_opts(&n, (machine_opts) { .world = PL_WORLD_LARGE }, outputs);
    opts.diff_count = 0;
    machine guest = host;
    assert_ok(pl_plan_new(&guest.plan, &opts));
    assert_ok(
        pl_exec_new_in(&guest.exec, guest.plan, host.params, NULL, host.exec));
    double first = run(&host, BATCH, 3);
    for (int i = 0; i < 2; i++) {
        assert_true(first == run(&guest, BATCH, 3));
        assert_true(first == run(&host, BATCH, 3));
    }
    pl_exec_free(guest.exec);
    pl_plan_free(guest.plan);
    machine_close(&host);
    pl_graph_free(n.graph);
}

/* Observes a run: parameters are NaN until they are needed. */
typedef struct watcher {
    machine *m;
    pl_params *real;   /* the parameters */
    pl_params *copies; /* gradients, when they were ready */
    int needs[32], readies[32];
    int refuse; /* this parameter's `ready`; -1: none */
} watcher;

static pl_status watch_need(void *context, int p)
{
    watcher *w = context;
    memcpy(pl_params_data(w->m->params, p), pl_params_data(w->real, p),
           (size_t)pl_params_get(w->real, p)->count * sizeof(float));
    w->needs[p]++;
    return PL_OK;
}

static pl_status watch_ready(void *context, int p)
{
    watcher *w = context;
    memcpy(pl_params_data(w->copies, p), pl_params_data(w->m->grads, p),
           (size_t)pl_params_get(w->copies, p)->count * sizeof(float));
    w->readies[p]++;
    if (p == w->refuse)
        return PL_FAIL(PL_CLOSED, "parameter %d is not wanted", p);
    return PL_OK;
}

static void watcher_init(watcher *w, machine *m)
{
    *w = (watcher) { .m = m, .refuse = -1 };
    size_t bytes = (size_t)pl_params_block_count(m->params) * sizeof(float);
    assert_ok(pl_params_like(&w->real, m->params));
    assert_ok(pl_params_like(&w->copies, m->params));
    memcpy(pl_params_block(w->real), pl_params_block(m->params), bytes);
}

static void watcher_hide(const watcher *w)
{
    for (int p = 0; p < pl_params_count(w->real); p++)
        for (int64_t i = 0; i < pl_params_get(w->real, p)->count; i++)
            pl_params_data(w->m->params, p)[i] = NAN;
}

static void check_hooks(architecture *make, machine_opts o)
{
    net n;
    machine m, plain;
    watcher w;
    net_init(&n, make);
    machine_init(&m, &n, o);
    machine_init(&plain, &n, o);
    watcher_init(&w, &m);
    watcher_hide(&w);
    pl_exec_hooks hooks = { watch_need, watch_ready, &w, PL_OK };
    double loss = run_with(&m, BATCH, 3, &hooks);
    assert_ok(hooks.status);
    assert_true(loss == run(&plain, BATCH, 3));
    size_t bytes = (size_t)pl_params_block_count(m.grads) * sizeof(float);
    assert_memory_equal(pl_params_block(plain.grads), pl_params_block(w.copies),
                        bytes);
    for (int p = 0; p < pl_params_count(m.params); p++) {
        assert_int_equal(1, w.needs[p]);
        assert_int_equal(1, w.readies[p]);
    }
    w.refuse = pl_params_count(m.params) - 2;
    run_with(&m, BATCH, 3, &hooks);
    assert_int_equal(PL_CLOSED, hooks.status);
    assert_int_equal(2, w.readies[w.refuse]);
    assert_int_equal(1, w.readies[0]);
    pl_params_free(w.real);
    pl_params_free(w.copies);
    machine_close(&m);
    machine_close(&plain);
    pl_graph_free(n.graph);
}

static void exec_requests_parameters_and_reports_gradients(void **state)
{
    (void)state;
    static architecture *const nets[] = { small_alexnet, odd_one, forgetful };
    for (int i = 0; i < 6; i++)
        check_hooks(nets[i / 2],
                    (machine_opts) {
                        .world = i % 2 == 0 ? PL_WORLD_SMALL : PL_WORLD_LARGE,
                        .threads = 1,
                    });
}

static void large_plan_survives_each_failed_allocation(void **state)
{
    (void)state;
    net n;
    net_init(&n, odd_one);
    machine m;
    machine_init(&m, &n, (machine_opts) { .world = PL_WORLD_LARGE });
    pl_node *outputs[2];
    pl_plan_opts opts = plan_opts(
        &n, (machine_opts) { .world = PL_WORLD_LARGE, .keep = true }, outputs);
    long live = pl_mem_live();
    bool failed = true;
    for (long nth = 0; failed; nth++) {
        pl_plan *plan = NULL;
        pl_exec *exec = NULL;
        pl_mem_fail_at(nth);
        pl_status status = pl_plan_new(&plan, &opts);
        if (status == PL_OK)
            status = pl_exec_new(&exec, plan, m.params, m.grads);
        failed = pl_mem_fail_off();
        assert_int_equal(failed ? PL_NOMEM : PL_OK, status);
        pl_exec_free(exec);
        pl_plan_free(plan);
    }
    assert_int_equal(live, pl_mem_live());
    machine_close(&m);
    pl_graph_free(n.graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_plan_agrees_with_the_reference),
        cmocka_unit_test(large_plan_in_bf16_is_near_the_reference),
        cmocka_unit_test(large_plan_repeats_its_bits),
        cmocka_unit_test(factors_give_the_gradient_in_small_and_large_plans),
        cmocka_unit_test(large_plan_joins_relu_and_bias_gradient),
        cmocka_unit_test(plan_chooses_small_or_large_by_shape),
        cmocka_unit_test(large_plan_runs_in_the_memory_of_another),
        cmocka_unit_test(exec_requests_parameters_and_reports_gradients),
        cmocka_unit_test(large_plan_survives_each_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
