#include "base/host/steal.h"

#include "support/folder.h"
#include "support/unit.h"

/* 60 ticks more of computing, 20 of the kernel, 20 stolen; the rest was idle.
 */
static void steal_is_a_share_of_the_time_wanted(void **state)
{
    char *root = *state;
    test_put(root, "proc/stat",
             "cpu  100 10 50 1000 7 3 2 5 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
    pl_steal before = pl_steal_read(root);
    assert_int_equal(5, before.stolen);
    assert_int_equal(170, before.wanted);
    test_put(root, "proc/stat", "cpu  150 20 65 9000 70 5 5 25 99 99\n");
    pl_steal after = pl_steal_read(root);
    assert_true(pl_steal_share(&before, &after) == 0.2);
}

static void unknown_steal_counts_as_zero(void **state)
{
    char *root = *state;
    pl_steal none = pl_steal_read(root);
    assert_int_equal(0, none.wanted);
    assert_true(pl_steal_share(&none, &none) == 0);
    test_put(root, "proc/stat", "cpu  100 10 50 1000\n"); /* of old kernels */
    assert_int_equal(0, pl_steal_read(root).wanted);
    /* Counters that went back, as in a container that was moved. */
    const pl_steal more = { .stolen = 9, .wanted = 99 };
    const pl_steal less = { .stolen = 8, .wanted = 100 };
    assert_true(pl_steal_share(&more, &less) == 0);
}

UNIT_TESTS(TEST_IN_FOLDER(steal_is_a_share_of_the_time_wanted),
           TEST_IN_FOLDER(unknown_steal_counts_as_zero))
