#include "base/record/trace.h"

#include "base/thread.h"
#include "support/unit.h"

#define LANES 4

static void trace_new_survives_each_failed_allocation(void **state)
{
    (void)state;
    pl_trace *trace = NULL;
    assert_survives_failed_allocations(
        pl_trace_new(&trace, &(pl_trace_opts) { .lanes = 3 }),
        pl_trace_free(trace));
    pl_trace_free(NULL);
}

static void trace_records_only_while_on(void **state)
{
    (void)state;
    pl_trace *trace;
    assert_ok(pl_trace_new(&trace, &(pl_trace_opts) { .lanes = 2 }));
    assert_false(pl_trace_on(NULL));
    assert_false(pl_trace_on(trace));
    pl_trace_span(NULL, 0, "none", 0, 1, 2);
    pl_trace_span(trace, 0, "before", 0, 1, 2);
    pl_trace_switch(trace, true);
    assert_true(pl_trace_on(trace));
    pl_trace_span(trace, 1, "matmul", 7, 10, 20);
    pl_trace_switch(trace, false);
    assert_int_equal(0, pl_trace_mark(trace));
    pl_trace_span(trace, 1, "after", 8, 30, 40);

    assert_int_equal(2, pl_trace_lanes(trace));
    assert_int_equal(0, pl_trace_count(trace, 0));
    assert_int_equal(1, pl_trace_count(trace, 1));
    const pl_span *span = pl_trace_get(trace, 1, 0);
    assert_string_equal("matmul", span->name);
    assert_int_equal(7, span->step);
    assert_int_equal(10, span->begin);
    assert_int_equal(20, span->end);
    pl_trace_free(trace);
}

static void trace_records_its_creation_time(void **state)
{
    (void)state;
    pl_trace *trace;
    uint64_t before = pl_ticks_now();
    assert_ok(pl_trace_new(&trace, &(pl_trace_opts) { .lanes = 1 }));
    assert_true(pl_trace_begin(trace) >= before);
    assert_true(pl_trace_begin(trace) <= pl_ticks_now());
    assert_true(pl_trace_begin_wall_ns(trace) > 0);
    pl_trace_free(trace);
}

static void trace_a_full_lane_drops_and_counts(void **state)
{
    (void)state;
    pl_trace *trace;
    assert_ok(pl_trace_new(&trace, &(pl_trace_opts) { .lanes = 2, .room = 3 }));
    pl_trace_switch(trace, true);
    for (int step = 0; step < 10; step++)
        pl_trace_span(trace, 0, "a", step, 0, 1);
    pl_trace_span(trace, 1, "b", 0, 0, 1);
    assert_int_equal(3, pl_trace_count(trace, 0));
    assert_int_equal(1, pl_trace_count(trace, 1));
    assert_int_equal(7, pl_trace_dropped(trace));
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(i, pl_trace_get(trace, 0, i)->step);
    pl_trace_free(trace);
}

static void record_lane(void *arg, int item, int thread)
{
    (void)thread;
    pl_trace *trace = arg;
    for (int step = 0; step < 1000; step++) {
        uint64_t begin = pl_ticks_now();
        pl_trace_span(trace, item, "work", step, begin, pl_ticks_now());
    }
}

static void trace_lanes_do_not_disturb_each_other(void **state)
{
    (void)state;
    pl_trace *trace;
    pl_pool *pool;
    assert_ok(
        pl_trace_new(&trace, &(pl_trace_opts) { .lanes = LANES, .room = 800 }));
    assert_ok(pl_pool_new(&pool, LANES));
    pl_trace_switch(trace, true);
    pl_pool_run(pool, LANES, record_lane, trace);
    for (int lane = 0; lane < LANES; lane++) {
        assert_int_equal(800, pl_trace_count(trace, lane));
        for (uint32_t i = 0; i < 800; i++) {
            const pl_span *span = pl_trace_get(trace, lane, i);
            assert_int_equal(i, span->step);
            assert_true(span->begin <= span->end);
        }
    }
    assert_int_equal(LANES * 200, pl_trace_dropped(trace));
    pl_pool_free(pool);
    pl_trace_free(trace);
}

UNIT_TESTS(cmocka_unit_test(trace_new_survives_each_failed_allocation),
           cmocka_unit_test(trace_records_only_while_on),
           cmocka_unit_test(trace_records_its_creation_time),
           cmocka_unit_test(trace_a_full_lane_drops_and_counts),
           cmocka_unit_test(trace_lanes_do_not_disturb_each_other))
