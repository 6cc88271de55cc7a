#include "train/compute/budget.h"

#include "support/folder.h"
#include "support/train.h"
#include "train/compute/aggregate.h"
#include "train/compute/ahead.h"

#define BATCH 160
#define EVAL  96

static const rig_opts wide = { .model = &pl_model_lenet,
                               .side = 28,
                               .classes = 10,
                               .examples = 512,
                               .optim = { .name = "adam" } };

/* Large: oneDNN computes it, and tests are run in its memory. */
static pl_status large_build(pl_build *b)
{
    pl_node *hidden =
        pl_dropout(pl_relu(pl_dense(b, "hidden", b->input, 3000)), 0.5f);
    b->logits = pl_dense(b, "output", hidden, b->classes);
    return PL_OK;
}

static const pl_model large_model = { .name = "large", .build = large_build };
static const rig_opts large = { .model = &large_model,
                                .side = 28,
                                .classes = 10,
                                .examples = 512,
                                .optim = { .name = "adam" } };

static pl_budget_opts plan_of(const pl_network *network)
{
    return (pl_budget_opts) {
        .network = network,
        .batch = BATCH,
        .slots = 2,
        .aggregates = true,
        .eval_batch = EVAL,
        .saves = true,
        .data_bytes = 1000,
    };
}

static pl_budget make(const pl_budget_opts *opts)
{
    pl_budget budget;
    assert_ok(pl_budget_make(&budget, opts));
    return budget;
}

/* A network without values, to plan with. */
static pl_network *draft_of(const rig *r)
{
    pl_network *network;
    assert_ok(pl_network_new(&network, r->network->model,
                             &(pl_network_opts) {
                                 .example = r->train->shape,
                                 .classes = r->train->classes,
                                 .no_values = true,
                             }));
    return network;
}

static void budget_counts_each_part(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, &wide);
    pl_budget_opts opts = plan_of(r.network);
    pl_budget all = make(&opts);
    int64_t block = pl_params_block_count(r.network->params) * 4;
    assert_int_equal(block, all.params);
    assert_int_equal(2 * block, all.optimizer);
    assert_int_equal(pl_frozen_pool(3 * block), all.checkpoint);
    assert_int_equal(1000, all.data);
    assert_true(all.evaluation > 0);
    assert_int_equal(all.total, all.params + all.optimizer + all.work +
                                    all.evaluation + all.checkpoint + 1000);
    opts.aggregates = opts.saves = false;
    opts.eval_batch = 0;
    pl_budget less = make(&opts);
    assert_int_equal(all.work - block, less.work);
    assert_int_equal(0, less.evaluation);
    assert_int_equal(0, less.checkpoint);
    rig_close(&r);
    assert_int_equal(0, pl_mem_live());
}

/* All that a loop allocates, by the same options.  Blocks of several MB begin
 * and end at huge pages: `rounding` bytes together. */
static void check_allocated(rig_opts rig_options, const char *folder,
                            int64_t rounding)
{
    int64_t before = pl_mem_live_bytes();
    rig_options.folder = folder;
    rig r;
    rig_init(&r, &rig_options);
    pl_compute *compute, *scorer;
    pl_aggregator *aggregator;
    pl_compute_opts opts = { .network = r.network,
                             .batch = BATCH,
                             .pool = r.pool };
    assert_ok(pl_compute_new(&compute, &opts));
    opts.batch = EVAL;
    opts.forward = true;
    opts.beside = compute;
    opts.beside_batch = BATCH;
    int64_t trainer = pl_mem_live_bytes();
    assert_ok(pl_compute_new(&scorer, &opts));
    int64_t tests = pl_mem_live_bytes() - trainer;
    assert_ok(pl_aggregator_new(&aggregator, &(pl_aggregator_opts) {
                                                 .params = r.network->params,
                                                 .pool = r.pool,
                                                 .micro_batches = 2,
                                             }));
    int64_t taken = pl_mem_live_bytes() - before;

    pl_network *draft = draft_of(&r);
    pl_budget_opts plan = plan_of(draft);
    plan.threads = rig_options.threads;
    plan.data_bytes = r.train->held_bytes + r.test->held_bytes;
    pl_budget budget = make(&plan);
    int64_t planned = budget.total - budget.checkpoint; /* none is written */
    /* Graphs, plans, metrics and rounding are not counted. */
    assert_in_range(tests, budget.evaluation, budget.evaluation + 100000);
    assert_true(taken > planned * 99 / 100);
    assert_true(taken < planned + planned / 50 + 1000000 + rounding);
    pl_network_free(draft);
    pl_aggregator_free(aggregator);
    pl_compute_free(scorer);
    pl_compute_free(compute);
    rig_close(&r);
    assert_int_equal(0, pl_mem_live());
}

static void budget_is_what_is_allocated(void **state)
{
    for (int threads = 1; threads <= 2; threads++) {
        rig_opts small_ones = wide, large_ones = large;
        small_ones.threads = large_ones.threads = threads;
        check_allocated(small_ones, *state, 0);
        check_allocated(large_ones, *state, 9 * (4 << 20));
    }
}

static void budget_of_a_large_model_tests_in_the_memory_of_training(
    void **state)
{
    (void)state;
    if (!pl_dnn_usable(pl_kernels_best()))
        skip();
    rig r;
    rig_init(&r, &large);
    pl_budget_opts opts = plan_of(r.network);
    for (opts.batch = 1; opts.batch <= BATCH; opts.batch *= 4)
        assert_int_equal(0, make(&opts).evaluation);
    rig_close(&r);
}

static void budget_finds_the_largest_batch_that_fits(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, &wide);
    pl_budget_opts opts = plan_of(r.network);
    const int64_t batches[] = { 1, 16, 17, 100, BATCH };
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        pl_budget_opts one = opts;
        one.batch = batches[i];
        int64_t limit = make(&one).total, found;
        assert_ok(pl_budget_largest(&opts, limit, &found));
        assert_in_range(found, batches[i], BATCH);
        one.batch = found;
        assert_true(make(&one).total <= limit);
        one.batch = found + 1;
        assert_true(found == BATCH || make(&one).total > limit);
    }
    int64_t found;
    assert_ok(pl_budget_largest(&opts, 1000, &found));
    assert_int_equal(0, found);
    rig_close(&r);
}

static void budget_survives_failed_allocations(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, &wide);
    pl_budget budget;
    pl_budget_opts opts = plan_of(r.network);
    long live = pl_mem_live();
    bool failed = true;
    for (long nth = 0; failed; nth++) {
        pl_mem_fail_at(nth);
        pl_status status = pl_budget_make(&budget, &opts);
        failed = pl_mem_fail_off();
        assert_int_equal(failed ? PL_NOMEM : PL_OK, status);
        assert_int_equal(live, pl_mem_live());
    }
    rig_close(&r);
}

/* Several batches are held, except of a stream. */
static void budget_counts_sparse_batches_read_ahead(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, &(rig_opts) { .model = &pl_model_sparse });
    pl_budget_opts plan = { .network = r.network, .batch = BATCH };
    int64_t one = make(&plan).work;
    plan.threads = 3;
    assert_int_equal(pl_ahead_batches(false, BATCH, 3) * one, make(&plan).work);
    plan.streams = true;
    assert_int_equal(one, make(&plan).work);
    rig_close(&r);
}

UNIT_TESTS(
    cmocka_unit_test(budget_counts_each_part),
    cmocka_unit_test(budget_counts_sparse_batches_read_ahead),
    TEST_IN_FOLDER(budget_is_what_is_allocated),
    cmocka_unit_test(budget_of_a_large_model_tests_in_the_memory_of_training),
    cmocka_unit_test(budget_finds_the_largest_batch_that_fits),
    cmocka_unit_test(budget_survives_failed_allocations))
