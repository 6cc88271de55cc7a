#include "base/host/skew.h"

#include "support/unit.h"

static void skew_uses_the_shortest_round_trip(void **state)
{
    (void)state;
    pl_skew skew = { 0 };
    pl_skew_hear(&skew, 1000, 1400, 9000);
    assert_true(skew.known);
    assert_int_equal(9000 - 1200, skew.ahead_ns);
    pl_skew_hear(&skew, 2000, 2100, 5050); /* a shorter one */
    assert_int_equal(3000, skew.ahead_ns);
    pl_skew_hear(&skew, 3000, 3500, 0); /* a longer one */
    pl_skew_hear(&skew, 3000, 2999, 0); /* an impossible one */
    assert_int_equal(3000, skew.ahead_ns);
    assert_int_equal(100, skew.trip_ns);
}

static void skew_of_one_machine_is_zero(void **state)
{
    (void)state;
    pl_skew skew = { 0 };
    pl_skew_hear(&skew, 1000, 1400, 1390); /* answered late */
    assert_true(skew.known);
    assert_int_equal(0, skew.ahead_ns);
}

/* A peer may send any value. */
static void skew_of_an_impossible_clock_is_ignored(void **state)
{
    (void)state;
    static const int64_t clocks[] = { INT64_MIN, INT64_MIN + 1, INT64_MAX };
    pl_skew skew = { 0 };
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        pl_skew_hear(&skew, 1000, 1400, clocks[i]);
        assert_false(skew.known);
    }
}

UNIT_TESTS(cmocka_unit_test(skew_uses_the_shortest_round_trip),
           cmocka_unit_test(skew_of_one_machine_is_zero),
           cmocka_unit_test(skew_of_an_impossible_clock_is_ignored))
