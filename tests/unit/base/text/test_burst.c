#include "base/text/burst.h"
#include "support/unit.h"

#define MS INT64_C(1000000)

static void burst_shows_the_first_and_counts_the_rest(void **state)
{
    (void)state;
    pl_burst burst = { 0 };
    int shown = 0;
    for (int i = 0; i < 1000; i++)
        shown += pl_burst_shows(&burst, 100 * MS);
    assert_int_equal(PL_BURST_SHOWN, shown);
    assert_int_equal(0, pl_burst_rest(&burst, 1099 * MS, false));
    assert_int_equal(990, pl_burst_rest(&burst, 1100 * MS, false));
    assert_int_equal(0, pl_burst_rest(&burst, 5000 * MS, false));
}

static void burst_reports_once_a_second(void **state)
{
    (void)state;
    pl_burst burst = { 0 };
    int shown = 0, told = 0;
    int64_t sum = 0;
    for (int i = 0; i < 5000; i++) { /* one a millisecond */
        shown += pl_burst_shows(&burst, i * MS);
        int64_t rest = pl_burst_rest(&burst, i * MS, false);
        told += rest > 0;
        sum += rest;
    }
    sum += pl_burst_rest(&burst, 5000 * MS, true);
    assert_int_equal(PL_BURST_SHOWN, shown);
    assert_int_equal(4, told);
    assert_int_equal(5000 - PL_BURST_SHOWN, sum);
}

static void burst_ends_after_a_quiet_time(void **state)
{
    (void)state;
    pl_burst burst = { 0 };
    for (int i = 0; i < 20; i++)
        (void)pl_burst_shows(&burst, MS);
    assert_int_equal(10, pl_burst_rest(&burst, 2000 * MS, false));
    assert_false(pl_burst_shows(&burst, 9000 * MS)); /* not quiet yet */
    assert_int_equal(1, pl_burst_rest(&burst, 9001 * MS, true));
    assert_true(pl_burst_shows(&burst, 20000 * MS));
}

UNIT_TESTS(cmocka_unit_test(burst_shows_the_first_and_counts_the_rest),
           cmocka_unit_test(burst_reports_once_a_second),
           cmocka_unit_test(burst_ends_after_a_quiet_time))
