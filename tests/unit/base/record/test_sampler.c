#include "base/record/sampler.h"

#include "base/clock.h"
#include "support/unit.h"

static uint64_t ticks(double seconds)
{
    return (uint64_t)(seconds * 1e9 / pl_ticks_ns());
}

/* The points of a curve after some seconds of steps of `step_s`. */
static int64_t points(double seconds, double step_s)
{
    pl_sampler sampler = { 0 };
    int64_t count = 0, steps = (int64_t)(seconds / step_s);
    for (int64_t i = 0; i <= steps; i++)
        count += pl_sampler_due(&sampler, ticks(1 + (double)i * step_s));
    return count;
}

static void sampler_takes_every_step_at_first(void **state)
{
    (void)state;
    assert_in_range(points(0, 1), 1, 1);
    assert_in_range(points(100, 0.5), 201, 201);
    assert_in_range(points(100, 0.01), 1600, 2001); /* every 50 ms */
}

/* Each time e as long, 2,000 points more. */
static void sampler_points_grow_with_the_logarithm_of_the_time(void **state)
{
    (void)state;
    int64_t hour = points(3600, 0.02), day = points(86400, 0.05);
    assert_in_range(hour, 8000, 9300);
    assert_in_range(day, 13000, 15600);
    assert_in_range(points(30 * 86400.0, 1), 14000, 16400);
}

/* At any time the last point is younger than a two-thousandth of the curve. */
static void sampler_leaves_no_large_gap(void **state)
{
    (void)state;
    pl_sampler sampler = { 0 };
    double last = 0;
    for (double at = 0; at < 5000; at += 0.03) {
        if (pl_sampler_due(&sampler, ticks(1 + at)))
            last = at;
        assert_true(at - last <= 0.08 + at / PL_SAMPLER_POINTS);
    }
}

UNIT_TESTS(cmocka_unit_test(sampler_takes_every_step_at_first),
           cmocka_unit_test(sampler_points_grow_with_the_logarithm_of_the_time),
           cmocka_unit_test(sampler_leaves_no_large_gap))
