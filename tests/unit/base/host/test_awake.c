#include "base/host/awake.h"

#include "base/clock.h"
#include "support/unit.h"

#define S INT64_C(1000000000)

static void awake_time_excludes_sleep(void **state)
{
    (void)state;
    pl_awake awake;
    pl_awake_init(&awake, 100 * S, 7 * S);
    assert_int_equal(100 * S + 1, pl_awake_ns(&awake, 100 * S + 1, 0));
    int64_t half = 100 * S + S / 2;
    assert_false(pl_awake_asks(&awake, half));
    assert_int_equal(half, pl_awake_ns(&awake, half, 0));
    assert_true(pl_awake_asks(&awake, half + 60 * S));
    assert_int_equal(half, pl_awake_ns(&awake, half + 60 * S, 7 * S));
    assert_int_equal(half + 1, pl_awake_ns(&awake, half + 60 * S + 1, 0));
}

/* An update of a large model takes seconds of the processor. */
static void awake_time_advances_during_work(void **state)
{
    (void)state;
    pl_awake awake;
    pl_awake_init(&awake, 100 * S, 7 * S);
    assert_int_equal(103 * S, pl_awake_ns(&awake, 103 * S, 10 * S));
    pl_awake_mark(&awake, 10 * S);
    /* Several threads may have worked. */
    assert_int_equal(105 * S, pl_awake_ns(&awake, 105 * S, 14 * S));
    /* Stopped for 9 s in a second of work. */
    assert_int_equal(106 * S, pl_awake_ns(&awake, 115 * S, 15 * S));
}

static void awake_reads_the_clocks_of_the_machine(void **state)
{
    (void)state;
    int64_t before = pl_clock_processor_ns(), boot = pl_clock_boot_ns();
    while (pl_clock_processor_ns() == before)
        ;
    assert_true(pl_clock_processor_ns() > before);
    assert_true(boot > 0 && pl_clock_boot_ns() >= boot);
    char first[PL_BOOT_ID], second[PL_BOOT_ID];
    pl_clock_boot_id(first);
    pl_clock_boot_id(second);
    assert_string_equal(first, second);
    assert_true(strlen(first) > 0);
}

UNIT_TESTS(cmocka_unit_test(awake_time_excludes_sleep),
           cmocka_unit_test(awake_time_advances_during_work),
           cmocka_unit_test(awake_reads_the_clocks_of_the_machine))
