#include "train/loop/due.h"

#include "base/clock.h"
#include "support/unit.h"

static const pl_due_pace pace = { .step_examples = 100, .steps_per_epoch = 6 };

/* The steps up to `last` at which it is due, for a run that stands at
 * `first`, as "3 6 9". */
static const char *steps_of(pl_every every, pl_due_pace at, int64_t first,
                            int64_t last)
{
    static char text[256];
    pl_due due;
    size_t used = 0;
    text[0] = '\0';
    pl_due_init(&due, every, at, first);
    for (int64_t step = first + 1; step <= last; step++)
        if (pl_due_now(&due, step, 0))
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld",
                                     used > 0 ? " " : "", (long long)step);
    return text;
}

static void due_counts_steps(void **state)
{
    (void)state;
    const pl_every three = { PL_EVERY_STEPS, 3 }, one = { PL_EVERY_STEPS, 1 };
    assert_string_equal("3 6 9", steps_of(three, pace, 0, 10));
    assert_string_equal("1 2 3", steps_of(one, pace, 0, 3));
    /* A resumed run keeps the same interval; what was due at its step is over.
     */
    assert_string_equal("6 9", steps_of(three, pace, 3, 10));
    assert_string_equal("6 9", steps_of(three, pace, 4, 10));
    assert_string_equal("6 9", steps_of(three, pace, 5, 10));
}

/* At the first step that has seen so many more. */
static void due_counts_examples(void **state)
{
    (void)state;
    const pl_every even = { PL_EVERY_EXAMPLES, 200 };
    const pl_every uneven = { PL_EVERY_EXAMPLES, 250 };
    const pl_every few = { PL_EVERY_EXAMPLES, 30 };
    assert_string_equal("2 4 6", steps_of(even, pace, 0, 7));
    assert_string_equal("3 5 8 10", steps_of(uneven, pace, 0, 10));
    assert_string_equal("1 2 3", steps_of(few, pace, 0, 3));
    assert_string_equal("8 10", steps_of(uneven, pace, 5, 10));
    assert_string_equal("8 10", steps_of(uneven, pace, 6, 10));
}

static void due_counts_epochs(void **state)
{
    (void)state;
    const pl_every one = { PL_EVERY_EPOCHS, 1 }, two = { PL_EVERY_EPOCHS, 2 };
    const pl_due_pace unknown = { .step_examples = 100, .steps_per_epoch = -1 };
    assert_string_equal("6 12 18", steps_of(one, pace, 0, 20));
    assert_string_equal("12 24", steps_of(two, pace, 0, 30));
    assert_string_equal("12 18", steps_of(one, pace, 6, 20));
    assert_string_equal("12 18", steps_of(one, pace, 11, 20));
    assert_string_equal("", steps_of(one, unknown, 0, 100));
}

/* Numbers beyond all steps: it does not come, and nothing overflows. */
static void due_in_the_far_future_does_not_come(void **state)
{
    (void)state;
    const pl_every_unit units[] = { PL_EVERY_STEPS, PL_EVERY_EXAMPLES,
                                    PL_EVERY_EPOCHS };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        pl_every far = { units[i], INT64_MAX },
                 wraps = { units[i], INT64_C(1) << 61 };
        assert_string_equal("", steps_of(far, pace, 0, 20));
        assert_string_equal("", steps_of(wraps, pace, 0, 20));
    }
}

static void due_never_comes(void **state)
{
    (void)state;
    const pl_every never = { PL_EVERY_NEVER, 0 };
    assert_string_equal("", steps_of(never, pace, 0, 1000));
}

static void due_counts_seconds_of_the_clock(void **state)
{
    (void)state;
    const uint64_t second = (uint64_t)(1e9 / pl_ticks_ns());
    pl_due due;
    pl_due_init(&due, (pl_every) { PL_EVERY_SECONDS, 60 }, pace, 10);
    uint64_t at = due.next_ticks;
    assert_true(at > pl_ticks_now()); /* a minute from here */
    assert_false(pl_due_now(&due, 1000, at - 1));
    assert_true(pl_due_now(&due, 1001, at + second));
    /* A minute after it came, not after it should have come. */
    assert_false(pl_due_now(&due, 1002, at + second));
    assert_false(pl_due_now(&due, 1003, at + 60 * second));
    assert_true(pl_due_now(&due, 1004, at + 62 * second));
}

/* Steps may be left out, as in a cluster where others also count. */
static void due_comes_once_when_steps_are_skipped(void **state)
{
    (void)state;
    pl_due due;
    pl_due_init(&due, (pl_every) { PL_EVERY_STEPS, 10 }, pace, 0);
    assert_false(pl_due_now(&due, 9, 0));
    assert_true(pl_due_now(&due, 35, 0));
    assert_false(pl_due_now(&due, 39, 0));
    assert_true(pl_due_now(&due, 40, 0));
}

UNIT_TESTS(cmocka_unit_test(due_counts_steps),
           cmocka_unit_test(due_counts_examples),
           cmocka_unit_test(due_counts_epochs),
           cmocka_unit_test(due_in_the_far_future_does_not_come),
           cmocka_unit_test(due_never_comes),
           cmocka_unit_test(due_counts_seconds_of_the_clock),
           cmocka_unit_test(due_comes_once_when_steps_are_skipped))
