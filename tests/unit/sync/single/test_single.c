#include "sync/single/single.h"

#include "support/train.h"

#define BATCH 64
#define STEPS 5

typedef void take_step(rig *r, pl_compute *compute, const pl_batch *batch,
                       int64_t step);

/* The update is made range by range, with the gradient. */
static void step_by_ranges(rig *r, pl_compute *compute, const pl_batch *batch,
                           int64_t step)
{
    pl_compute_gradient(compute, batch, step, 0, r->sync);
}

/* The gradient is handed over, and the commit updates. */
static void step_by_ready(rig *r, pl_compute *compute, const pl_batch *batch,
                          int64_t step)
{
    pl_compute_gradient(compute, batch, step, 0, NULL);
    pl_params *diff = pl_compute_diff(compute);
    for (int p = pl_params_count(diff) - 1; p >= 0; p--)
        assert_ok(
            r->sync->ops->ready(r->sync, p, pl_params_data(diff, p), NULL));
}

static void train(rig *r, const rig_opts *opts, take_step *take)
{
    rig_init(r, opts);
    r->schedule.warmup = 3;
    pl_reader *reader;
    pl_compute *compute;
    assert_ok(
        pl_reader_new(&reader, r->train, &(pl_reader_opts) { .batch = BATCH }));
    assert_ok(pl_compute_new(&compute, &(pl_compute_opts) {
                                           .network = r->network,
                                           .batch = BATCH,
                                           .pool = r->pool,
                                       }));
    assert_ok(r->sync->ops->join(r->sync, &(pl_standing) { 0 }));
    for (int64_t step = 1; step <= STEPS; step++) {
        pl_batch batch;
        pl_commit committed;
        assert_ok(pl_reader_next(reader, &batch));
        for (int p = 0; p < pl_params_count(r->network->params); p++)
            assert_ok(r->sync->ops->need(r->sync, p, NULL));
        take(r, compute, &batch, step);
        assert_ok(r->sync->ops->commit(r->sync, &committed));
        assert_int_equal(step, committed.step);
        assert_false(committed.dropped || committed.stop);
    }
    assert_ok(r->sync->ops->save(r->sync, &(pl_progress) { 0 }, true));
    assert_ok(r->sync->ops->finish(r->sync));
    pl_compute_free(compute);
    pl_reader_free(reader);
}

static void single_updates_the_same_bits_by_ranges_and_by_commit(void **state)
{
    (void)state;
    const pl_optim_opts optims[] = {
        { .name = "sgd", .weight_decay = 1e-3 },
        { .name = "momentum" },
        { .name = "momentum", .nesterov = true },
        { .name = "adam" },
        { .name = "adagrad" },
        { .name = "rmsprop" },
        { .name = "ftrl" },
    };
    for (size_t i = 0; i < sizeof optims / sizeof *optims; i++)
        for (int64_t side = 8; side <= 28; side += 20) {
            rig a, b, c;
            rig_opts opts = { .optim = optims[i], .side = side };
            train(&a, &opts, step_by_ranges);
            train(&b, &opts, step_by_ready);
            assert_same_state(&a, &b);
            opts.threads = 3;
            train(&c, &opts, step_by_ready);
            assert_same_state(&a, &c);
            rig_close(&a);
            rig_close(&b);
            rig_close(&c);
        }
    assert_int_equal(0, pl_mem_live());
}

/* A resumed run continues the number of its step: Adam and the warm-up
 * depend on it. */
static void single_continues_counting_where_it_joins(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, &(rig_opts) { .lr = 1 });
    r.schedule.warmup = 10;
    pl_commit committed;
    assert_ok(r.sync->ops->join(r.sync, &(pl_standing) { .step = 4 }));
    r.sync->ops->local->begin(r.sync);
    assert_true(r.optim->args.lr == 0.5f);
    assert_ok(r.sync->ops->commit(r.sync, &committed));
    assert_int_equal(5, committed.step);
    rig_close(&r);
}

static void single_survives_failed_allocations(void **state)
{
    (void)state;
    pl_sync *sync = NULL;
    pl_optim optim = { .frozen = NULL };
    assert_survives_failed_allocations(
        pl_single_new(&sync, &(pl_single_opts) { .optim = &optim }),
        sync->ops->free(sync));
}

UNIT_TESTS(
    cmocka_unit_test(single_updates_the_same_bits_by_ranges_and_by_commit),
    cmocka_unit_test(single_continues_counting_where_it_joins),
    cmocka_unit_test(single_survives_failed_allocations))
