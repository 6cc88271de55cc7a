#include "graph/fuse.h"

#include "graph/plan_priv.h"
#include "support/kernels.h"
#include "tensor/shape.h"

#define MOST_BATCH 19
#define CLASSES    5
#define MOST_IMAGE (3 * 13 * 13)

/* A small network of blocks, each a convolution with or without activation
 * and pooling. */
typedef struct net {
    pl_graph *graph;
    pl_node *loss;
    pl_node *conv[2], *active[2], *pooled[2];
    pl_node *diff[8];
    int params;
    int64_t image; /* elements */
} net;

typedef struct block {
    pl_node *(*activation)(pl_node *); /* NULL: none */
    pl_node *(*pool)(pl_node *, int64_t, int64_t);
    int64_t outs, kernel, stride, pad, size, pool_stride;
} block;

static pl_node *parameter(net *n, pl_shape shape)
{
    char name[8];
    snprintf(name, sizeof name, "p%d", n->params++);
    return pl_parameter(n->graph, name, shape, "glorot");
}

static pl_node *add_block(net *n, pl_node *x, const block *b, int i)
{
    pl_node *w =
        parameter(n, PL_SHAPE(b->outs, x->shape.dim[1], b->kernel, b->kernel));
    pl_node *bias = i == 0 ? parameter(n, PL_SHAPE(b->outs)) : NULL;
    x = n->conv[i] = pl_conv2d(x, w, bias, b->stride, b->pad);
    if (b->activation != NULL)
        x = b->activation(x);
    n->active[i] = x;
    if (b->pool != NULL)
        x = b->pool(x, b->size, b->pool_stride);
    n->pooled[i] = x;
    return x;
}

static void net_init(net *n, pl_shape input, const block *blocks)
{
    *n = (net) { .graph = NULL };
    assert_ok(pl_graph_new(&n->graph));
    pl_node *x = pl_input(n->graph, "x", PL_FLOAT32, input);
    pl_node *labels =
        pl_input(n->graph, "labels", PL_INT32, PL_SHAPE(PL_BATCH));
    n->image = pl_node_row(x);
    assert_true(n->image <= MOST_IMAGE);
    for (int i = 0; i < 2; i++)
        x = add_block(n, x, &blocks[i], i);
    x = pl_flatten(x);
    x = pl_inner(x, parameter(n, PL_SHAPE(CLASSES, x->shape.dim[1])), NULL);
    n->loss = pl_mean(pl_softmax_xent(x, labels));
    assert_ok(pl_graph_status(n->graph));
}

/* What a plan of the network computes for fixed numbers. */
typedef struct result {
    float loss;
    int steps;
    pl_params *grads;
} result;

static result run_net(const net *n, const pl_plan_opts *opts)
{
    static float images[MOST_BATCH * MOST_IMAGE];
    static int32_t labels[MOST_BATCH];
    for (int64_t i = 0; i < opts->batch * n->image; i++)
        images[i] = (float)pl_rng_uniform(1, (uint64_t)i) - 0.3f;
    for (int64_t i = 0; i < opts->batch; i++)
        labels[i] = (int32_t)(i % CLASSES);
    const pl_view views[] = {
        { .data = images, .stride = n->image, .dtype = PL_FLOAT32, .scale = 1 },
        { .data = labels, .stride = 1, .dtype = PL_INT32, .scale = 1 },
    };
    result r;
    pl_params *params;
    pl_plan *plan;
    pl_exec *exec;
    assert_ok(pl_graph_params(n->graph, &params));
    assert_ok(pl_params_seal(params));
    assert_ok(pl_params_like(&r.grads, params));
    for (int p = 0; p < pl_params_count(params); p++)
        for (int64_t i = 0; i < pl_params_get(params, p)->count; i++)
            pl_params_data(params, p)[i] =
                (float)(0.6 * pl_rng_uniform((uint64_t)p, (uint64_t)i) - 0.3);
    assert_ok(pl_plan_new(&plan, opts));
    r.steps = pl_plan_measure(plan).steps;
    assert_ok(pl_exec_new(&exec, plan, params, r.grads));
    for (int again = 0; again < 2; again++)
        pl_exec_run(exec, &(pl_exec_args) { .rows = opts->batch,
                                            .views = views,
                                            .seed = 1.0f });
    r.loss = *pl_exec_output(exec, 0);
    pl_exec_free(exec);
    pl_plan_free(plan);
    pl_params_free(params);
    return r;
}

/* Steps that fusing saves; the results are the same bits. */
static int saved_steps(const net *n, const pl_plan_opts *base)
{
    pl_plan_opts opts = *base;
    result fused = run_net(n, &opts);
    opts.no_fusing = true;
    result apart = run_net(n, &opts);
    assert_memory_equal(&apart.loss, &fused.loss, sizeof(float));
    assert_memory_equal(
        pl_params_block(apart.grads), pl_params_block(fused.grads),
        (size_t)pl_params_block_count(fused.grads) * sizeof(float));
    pl_params_free(apart.grads);
    pl_params_free(fused.grads);
    return apart.steps - fused.steps;
}

static pl_plan_opts train_opts(net *n, const pl_kernels *kernels, int64_t batch)
{
    if (n->diff[0] == NULL)
        assert_ok(pl_graph_differentiate(n->graph, n->loss, n->diff, 8));
    return (pl_plan_opts) {
        .graph = n->graph,
        .batch = batch,
        .kernels = kernels,
        .outputs = &n->loss,
        .output_count = 1,
        .diff = n->diff,
        .diff_count = n->params,
    };
}

static block random_block(void)
{
    static pl_node *(*const activations[])(pl_node *) = { pl_relu, pl_tanh,
                                                          pl_sigmoid, NULL };
    static pl_node *(*const pools[])(
        pl_node *, int64_t, int64_t) = { pl_max_pool, pl_avg_pool, NULL };
    int64_t size = draw_int(1, 3);
    return (block) {
        .activation = activations[draw_int(0, 3)],
        .pool = pools[draw_int(0, 2)],
        .outs = draw_int(1, 9),
        .kernel = draw_int(2, 4),
        .stride = draw_int(1, 2),
        .pad = draw_int(0, 1),
        .size = size,
        .pool_stride = draw_int(0, 3) > 0 ? size : 1,
    };
}

static void fuse_changes_no_bit(void **state)
{
    (void)state;
    for (int round = 0; round < 150; round++) {
        net n;
        block blocks[] = { random_block(), random_block() };
        blocks[1].stride = 1;
        if (blocks[0].size > 1 && blocks[0].stride > 1)
            blocks[1] = (block) { .outs = 3, .kernel = 1, .stride = 1 };
        blocks[1].size = blocks[1].pool_stride = 1 + round % 2;
        blocks[1].kernel = blocks[1].kernel > 2 ? 2 : blocks[1].kernel;
        pl_shape input = PL_SHAPE(PL_BATCH, draw_int(1, 3), draw_int(11, 13),
                                  draw_int(11, 13));
        net_init(&n, input, blocks);
        FOR_EACH_TABLE(kernels)
        {
            pl_plan_opts opts = train_opts(&n, kernels, 1 + round % MOST_BATCH);
            int saved = saved_steps(&n, &opts);
            assert_true(kernels->conv_block != NULL ? saved >= 0 : saved == 0);
        }
        pl_graph_free(n.graph);
    }
    assert_int_equal(0, pl_mem_live());
}

static const block usual = { .activation = pl_relu,
                             .pool = pl_max_pool,
                             .outs = 4,
                             .kernel = 3,
                             .stride = 1,
                             .pad = 1,
                             .size = 2,
                             .pool_stride = 2 };

static void fuse_runs_a_chain_and_its_gradient_as_two_steps(void **state)
{
    (void)state;
    net n;
    net_init(&n, PL_SHAPE(PL_BATCH, 2, 10, 11), (block[]) { usual, usual });
    pl_plan_opts opts = train_opts(&n, NULL, 17);
    /* conv2d, relu, max_pool; max_pool_grad, relu_grad: 3 less a block */
    assert_int_equal(2 * 3, saved_steps(&n, &opts));
    opts.diff_count = 0;
    assert_int_equal(2 * 2, saved_steps(&n, &opts));
    opts.kernels = reference_table();
    assert_int_equal(0, saved_steps(&n, &opts));
    pl_graph_free(n.graph);
}

static void fuse_ends_before_what_a_gradient_needs(void **state)
{
    (void)state;
    net n;
    block mean = usual;
    mean.pool = pl_avg_pool;
    net_init(&n, PL_SHAPE(PL_BATCH, 2, 10, 11), (block[]) { mean, mean });
    pl_plan_opts opts = train_opts(&n, NULL, 17);
    assert_int_equal(2 * 1, saved_steps(&n, &opts));
    opts.diff_count = 0;
    assert_int_equal(2 * 2, saved_steps(&n, &opts));
    pl_graph_free(n.graph);
}

static void fuse_keeps_results_that_others_read(void **state)
{
    (void)state;
    net n;
    net_init(&n, PL_SHAPE(PL_BATCH, 2, 10, 11), (block[]) { usual, usual });
    pl_plan_opts opts = train_opts(&n, NULL, 3);
    pl_node *outputs[] = { n.loss, n.active[0] };
    opts.outputs = outputs;
    opts.output_count = 2;
    /* The first block: conv2d with relu, which is kept; the second whole. */
    assert_int_equal(1 + 3, saved_steps(&n, &opts));
    outputs[1] = n.conv[0];
    assert_int_equal(0 + 3, saved_steps(&n, &opts));
    outputs[1] = n.pooled[0];
    assert_int_equal(3 + 3, saved_steps(&n, &opts));
    pl_graph_free(n.graph);
}

static pl_status plan_once(const pl_plan_opts *opts)
{
    pl_plan *plan;
    PL_TRY(pl_plan_new(&plan, opts));
    pl_plan_free(plan);
    return PL_OK;
}

static void fuse_survives_failed_allocations(void **state)
{
    (void)state;
    net n;
    net_init(&n, PL_SHAPE(PL_BATCH, 2, 10, 11), (block[]) { usual, usual });
    pl_plan_opts opts = train_opts(&n, NULL, 3);
    assert_survives_failed_allocations(plan_once(&opts), (void)0);
    pl_graph_free(n.graph);
}

UNIT_TESTS(cmocka_unit_test(fuse_changes_no_bit),
           cmocka_unit_test(fuse_runs_a_chain_and_its_gradient_as_two_steps),
           cmocka_unit_test(fuse_ends_before_what_a_gradient_needs),
           cmocka_unit_test(fuse_keeps_results_that_others_read),
           cmocka_unit_test(fuse_survives_failed_allocations))
