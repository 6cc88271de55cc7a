#include "train/budget.h"

#include "support/folder.h"
#include "support/train.h"
#include "train/aggregate.h"

#define BATCH 160
#define EVAL  96

static const rig_opts wide = { .model = &pl_model_lenet,
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
    assert_int_equal(3 * block, all.checkpoint);
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

/* All that a loop allocates, by the same options. */
static void budget_is_what_is_allocated(void **state)
{
    int64_t before = pl_mem_live_bytes();
    rig_opts with_folder = wide;
    with_folder.folder = *state;
    rig r;
    rig_init(&r, &with_folder);
    pl_compute *compute, *scorer;
    pl_aggregator *aggregator;
    pl_compute_opts opts = { .network = r.network,
                             .batch = BATCH,
                             .pool = r.pool };
    assert_ok(pl_compute_new(&compute, &opts));
    opts.batch = EVAL;
    opts.forward = true;
    assert_ok(pl_compute_new(&scorer, &opts));
    assert_ok(pl_aggregator_new(&aggregator, &(pl_aggregator_opts) {
                                                 .params = r.network->params,
                                                 .pool = r.pool,
                                                 .micro_batches = 2,
                                             }));
    assert_ok(
        pl_snapshot_save(r.snapshot, &(pl_progress) { .step = 1 }, false));
    int64_t taken = pl_mem_live_bytes() - before;

    pl_network *draft = draft_of(&r);
    pl_budget_opts plan = plan_of(draft);
    plan.data_bytes = r.train->held_bytes + r.test->held_bytes;
    int64_t planned = make(&plan).total;
    /* Graphs, plans, metrics and rounding are not counted. */
    assert_true(taken > planned * 99 / 100);
    assert_true(taken < planned + planned / 50 + 1000000);
    pl_network_free(draft);
    pl_aggregator_free(aggregator);
    pl_compute_free(scorer);
    pl_compute_free(compute);
    rig_close(&r);
    assert_int_equal(0, pl_mem_live());
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

UNIT_TESTS(cmocka_unit_test(budget_counts_each_part),
           TEST_IN_FOLDER(budget_is_what_is_allocated),
           cmocka_unit_test(budget_finds_the_largest_batch_that_fits),
           cmocka_unit_test(budget_survives_failed_allocations))
