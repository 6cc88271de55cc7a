#include "base/record/metric.h"

#include "base/thread.h"
#include "support/unit.h"

#include <stdatomic.h>

#define WRITERS 4
#define EACH    20000

static void metrics_new_survives_each_failed_allocation(void **state)
{
    (void)state;
    pl_metrics *metrics = NULL;
    assert_survives_failed_allocations(pl_metrics_new(&metrics, NULL),
                                       pl_metrics_free(metrics));
}

static void metrics_tag_survives_each_failed_allocation(void **state)
{
    (void)state;
    pl_metrics *metrics;
    int tag = -1;
    assert_ok(pl_metrics_new(&metrics, &(pl_metrics_opts) { .queue = 4 }));
    pl_mem_fail_at(0);
    pl_status status = pl_metrics_tag(metrics, "loss", &tag);
    assert_true(pl_mem_fail_off());
    assert_int_equal(PL_NOMEM, status);
    assert_int_equal(-1, tag);
    assert_int_equal(0, pl_metrics_tag_count(metrics));
    assert_ok(pl_metrics_tag(metrics, "loss", &tag));
    assert_int_equal(0, tag);
    pl_metrics_free(metrics);
    pl_metrics_free(NULL);
}

static void metrics_tag_is_the_same_for_the_same_name(void **state)
{
    (void)state;
    pl_metrics *metrics;
    int loss, examples, again;
    assert_ok(pl_metrics_new(&metrics, NULL));
    assert_ok(pl_metrics_tag(metrics, "loss", &loss));
    assert_ok(pl_metrics_tag(metrics, "examples", &examples));
    assert_ok(pl_metrics_tag(metrics, "loss", &again));
    assert_int_equal(loss, again);
    assert_int_not_equal(loss, examples);
    assert_int_equal(2, pl_metrics_tag_count(metrics));
    assert_string_equal("examples", pl_metrics_tag_name(metrics, examples));
    pl_metrics_free(metrics);
}

static void metrics_tag_refuses_one_too_many(void **state)
{
    (void)state;
    pl_metrics *metrics;
    int tag = -1;
    assert_ok(pl_metrics_new(&metrics, NULL));
    for (int i = 0; i < PL_METRICS_TAGS; i++) {
        char name[32];
        snprintf(name, sizeof name, "m%d", i);
        assert_ok(pl_metrics_tag(metrics, name, &tag));
        assert_int_equal(i, tag);
    }
    assert_fails(PL_UNSUPPORTED, "metric more: there are 64 already",
                 pl_metrics_tag(metrics, "more", &tag));
    assert_ok(pl_metrics_tag(metrics, "m7", &tag));
    assert_int_equal(7, tag);
    pl_metrics_free(metrics);
}

static void metrics_gauges_start_at_zero_and_hold_the_latest(void **state)
{
    (void)state;
    pl_metrics *metrics;
    int a, b;
    assert_ok(pl_metrics_new(&metrics, NULL));
    assert_ok(pl_metrics_tag(metrics, "a", &a));
    assert_ok(pl_metrics_tag(metrics, "b", &b));
    assert_true(pl_metrics_get(metrics, a) == 0);
    pl_metrics_set(metrics, a, -2.5);
    pl_metrics_add(metrics, b, 1.25);
    pl_metrics_add(metrics, b, 2);
    assert_true(pl_metrics_get(metrics, a) == -2.5);
    assert_true(pl_metrics_get(metrics, b) == 3.25);
    pl_metrics_free(metrics);
}

static void metrics_scalars_come_out_in_order(void **state)
{
    (void)state;
    pl_metrics *metrics;
    int loss;
    pl_scalar scalar;
    assert_ok(pl_metrics_new(&metrics, &(pl_metrics_opts) { .queue = 8 }));
    assert_ok(pl_metrics_tag(metrics, "loss", &loss));
    assert_false(pl_metrics_take(metrics, &scalar));
    for (int step = 0; step < 100; step++) { /* around the ring many times */
        pl_metrics_scalar(metrics, loss, 2 * step, 0.5 * step);
        pl_metrics_scalar(metrics, loss, 2 * step + 1, 1.5 * step);
        for (int i = 0; i < 2; i++) {
            assert_true(pl_metrics_take(metrics, &scalar));
            assert_int_equal(loss, scalar.tag);
            assert_int_equal(2 * step + i, scalar.step);
            assert_true(scalar.value == (i + 0.5) * step);
            assert_true(scalar.wall_ns > 0);
        }
        assert_false(pl_metrics_take(metrics, &scalar));
    }
    assert_true(pl_metrics_get(metrics, loss) == 1.5 * 99);
    assert_int_equal(0, pl_metrics_dropped(metrics));
    pl_metrics_free(metrics);
}

static void metrics_a_full_queue_drops_the_newest_and_counts(void **state)
{
    (void)state;
    pl_metrics *metrics;
    int loss;
    pl_scalar scalar;
    assert_ok(pl_metrics_new(&metrics, &(pl_metrics_opts) { .queue = 4 }));
    assert_ok(pl_metrics_tag(metrics, "loss", &loss));
    for (int step = 0; step < 10; step++)
        pl_metrics_scalar(metrics, loss, step, step);
    assert_int_equal(6, pl_metrics_dropped(metrics));
    assert_true(pl_metrics_get(metrics, loss) == 9);
    for (int step = 0; step < 4; step++) {
        assert_true(pl_metrics_take(metrics, &scalar));
        assert_int_equal(step, scalar.step);
    }
    assert_false(pl_metrics_take(metrics, &scalar));
    pl_metrics_scalar(metrics, loss, 77, 1);
    assert_true(pl_metrics_take(metrics, &scalar));
    assert_int_equal(77, scalar.step);
    pl_metrics_free(metrics);
}

struct crowd {
    pl_metrics *metrics;
    int total;           /* a counter all add to */
    int tags[WRITERS];   /* one tag a writer */
    _Atomic int running; /* writers not yet done */
    int64_t taken;
};

static void add_and_put(struct crowd *crowd, int writer)
{
    for (int i = 0; i < EACH; i++) {
        pl_metrics_add(crowd->metrics, crowd->total, 1);
        pl_metrics_scalar(crowd->metrics, crowd->tags[writer], i, i * 0.5);
    }
    atomic_fetch_sub(&crowd->running, 1);
}

/* Each writer's scalars must arrive unbroken and in its own order. */
static void take_all(struct crowd *crowd)
{
    int64_t last[WRITERS];
    for (int w = 0; w < WRITERS; w++)
        last[w] = -1;
    for (;;) {
        bool over = atomic_load(&crowd->running) == 0;
        pl_scalar scalar;
        if (!pl_metrics_take(crowd->metrics, &scalar)) {
            if (over)
                return;
            continue;
        }
        int writer = scalar.tag - crowd->tags[0];
        assert_in_range(writer, 0, WRITERS - 1);
        assert_true(scalar.step > last[writer]);
        assert_true(scalar.value == (double)scalar.step * 0.5);
        last[writer] = scalar.step;
        crowd->taken++;
    }
}

static void crowd_job(void *arg, int item, int thread)
{
    (void)thread;
    if (item == 0)
        take_all(arg);
    else
        add_and_put(arg, item - 1);
}

static void metrics_lose_nothing_between_several_threads(void **state)
{
    (void)state;
    struct crowd crowd = { .running = WRITERS };
    pl_pool *pool;
    assert_ok(
        pl_metrics_new(&crowd.metrics, &(pl_metrics_opts) { .queue = 64 }));
    assert_ok(pl_metrics_tag(crowd.metrics, "total", &crowd.total));
    for (int w = 0; w < WRITERS; w++) {
        char name[32];
        snprintf(name, sizeof name, "writer %d", w);
        assert_ok(pl_metrics_tag(crowd.metrics, name, &crowd.tags[w]));
    }
    assert_ok(pl_pool_new(&pool, WRITERS + 1));
    pl_pool_run(pool, WRITERS + 1, crowd_job, &crowd);
    pl_pool_free(pool);

    assert_true(pl_metrics_get(crowd.metrics, crowd.total) == WRITERS * EACH);
    assert_int_equal(WRITERS * EACH,
                     crowd.taken + (int64_t)pl_metrics_dropped(crowd.metrics));
    pl_metrics_free(crowd.metrics);
}

static void metrics_deliver_histograms_in_order(void **state)
{
    (void)state;
    pl_metrics *metrics;
    assert_ok(pl_metrics_new(&metrics, NULL));
    assert_null(pl_metrics_histogram_take(metrics));
    for (int64_t i = 0; i < 3000; i++)
        pl_metrics_histogram_put(
            metrics, &(pl_metrics_histogram) { .group = "weights", .step = i });
    assert_int_equal(3000 - 1024, pl_metrics_dropped(metrics));
    for (int64_t i = 0; i < 1000; i++) {
        pl_metrics_histogram *taken = pl_metrics_histogram_take(metrics);
        assert_int_equal(i, taken->step);
        pl_mem_free(taken);
    }
    pl_mem_fail_at(0);
    pl_metrics_histogram_put(metrics,
                             &(pl_metrics_histogram) { .group = "lost" });
    assert_true(pl_mem_fail_off());
    assert_int_equal(3000 - 1024 + 1, pl_metrics_dropped(metrics));
    pl_metrics_free(metrics); /* with those that were not taken */
}

UNIT_TESTS(cmocka_unit_test(metrics_new_survives_each_failed_allocation),
           cmocka_unit_test(metrics_tag_survives_each_failed_allocation),
           cmocka_unit_test(metrics_tag_is_the_same_for_the_same_name),
           cmocka_unit_test(metrics_tag_refuses_one_too_many),
           cmocka_unit_test(metrics_gauges_start_at_zero_and_hold_the_latest),
           cmocka_unit_test(metrics_scalars_come_out_in_order),
           cmocka_unit_test(metrics_a_full_queue_drops_the_newest_and_counts),
           cmocka_unit_test(metrics_lose_nothing_between_several_threads),
           cmocka_unit_test(metrics_deliver_histograms_in_order))
