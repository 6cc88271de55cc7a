#include "base/clock.h"

#include "support/unit.h"

static void clock_fake_moves_only_when_advanced(void **state)
{
    (void)state;
    pl_clock clock;
    pl_clock_init_fake(&clock, 500);
    assert_int_equal(500, pl_clock_now_ns(&clock));
    assert_int_equal(500, pl_clock_now_ns(&clock));
    pl_clock_advance(&clock, 25);
    pl_clock_advance(&clock, 0);
    assert_int_equal(525, pl_clock_now_ns(&clock));
}

static void clock_real_never_goes_back(void **state)
{
    (void)state;
    int64_t last = pl_clock_now_ns(pl_clock_real());
    assert_true(last > 0);
    for (int i = 0; i < 1000; i++) {
        int64_t now = pl_clock_now_ns(pl_clock_real());
        assert_true(now >= last);
        last = now;
    }
}

static void clock_wall_is_after_this_was_written(void **state)
{
    (void)state;
    assert_true(pl_clock_wall_ns() > INT64_C(1700000000) * 1000000000);
}

static void deadline_passes_on_the_nanosecond(void **state)
{
    (void)state;
    pl_clock clock;
    pl_clock_init_fake(&clock, 1000);
    pl_deadline deadline = pl_deadline_in_ms(&clock, 2);
    assert_int_equal(2000000, pl_deadline_left_ns(deadline));
    pl_clock_advance(&clock, 1999999);
    assert_false(pl_deadline_passed(deadline));
    assert_int_equal(1, pl_deadline_left_ns(deadline));
    pl_clock_advance(&clock, 1);
    assert_true(pl_deadline_passed(deadline));
    pl_clock_advance(&clock, 1);
    assert_true(pl_deadline_passed(deadline));
    assert_int_equal(0, pl_deadline_left_ns(deadline));
}

static void deadline_of_no_time_has_passed(void **state)
{
    (void)state;
    assert_true(pl_deadline_passed(pl_deadline_in_ms(pl_clock_real(), 0)));
    assert_true(pl_deadline_passed(pl_deadline_in_ms(pl_clock_real(), -5)));
}

static void deadline_for_ever_does_not_overflow(void **state)
{
    (void)state;
    pl_clock clock;
    pl_clock_init_fake(&clock, 1000);
    pl_deadline late = pl_deadline_in_ms(&clock, INT64_MAX);
    pl_deadline also = pl_deadline_in_ms(&clock, INT64_MAX / 1000000);
    pl_clock_advance(&clock, INT64_MAX / 2);
    assert_false(pl_deadline_passed(late));
    assert_false(pl_deadline_passed(also));
    assert_true(pl_deadline_left_ns(late) > 0);

    pl_deadline early = pl_deadline_in_ms(&clock, INT64_MIN);
    assert_true(pl_deadline_passed(early));
    assert_int_equal(0, pl_deadline_left_ns(early));
}

static void ticks_grow_and_have_a_length(void **state)
{
    (void)state;
    uint64_t first = pl_ticks_now();
    double tick_ns = pl_ticks_ns(); /* measuring takes a while */
    assert_true(pl_ticks_now() > first);
    assert_true(tick_ns > 0.01 && tick_ns < 1000);
    assert_true(pl_ticks_ns() == tick_ns);
}

UNIT_TESTS(cmocka_unit_test(clock_fake_moves_only_when_advanced),
           cmocka_unit_test(clock_real_never_goes_back),
           cmocka_unit_test(clock_wall_is_after_this_was_written),
           cmocka_unit_test(deadline_passes_on_the_nanosecond),
           cmocka_unit_test(deadline_of_no_time_has_passed),
           cmocka_unit_test(deadline_for_ever_does_not_overflow),
           cmocka_unit_test(ticks_grow_and_have_a_length))
