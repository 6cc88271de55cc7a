#include "base/host/group.h"

#include "support/folder.h"
#include "support/unit.h"

static void group_has_the_throttled_time_of_its_quota(void **state)
{
    char *root = *state;
    assert_true(pl_group_throttled(root) == 0);
    test_put(root, "proc/self/cgroup", "0::/jobs/mine\n");
    test_put(root, "sys/fs/cgroup/jobs/mine/cpu.stat",
             "usage_usec 9\nthrottled_usec 2500000\n");
    assert_true(pl_group_throttled(root) == 2.5);
    test_put(root, "proc/self/cgroup",
             "4:memory:/old\n3:cpuacct,cpu:/a\n0::/\n");
    test_put(root, "sys/fs/cgroup/cpu/a/cpu.stat",
             "nr_throttled 3\nthrottled_time 750000000\n");
    assert_true(pl_group_throttled(root) == 0.75);
}

static void group_names_are_those_of_the_controller(void **state)
{
    char *root = *state, group[PL_GROUP_BYTES];
    test_put(root, "proc/self/cgroup",
             "9:cpuset:/x\n3:cpuacct,cpu:/a\n0::/b\n");
    pl_group_name(root, "cpu", group);
    assert_string_equal("/a", group);
    pl_group_name(root, "", group);
    assert_string_equal("/b", group);
    pl_group_name(root, "memory", group);
    assert_string_equal("", group);
}

UNIT_TESTS(TEST_IN_FOLDER(group_has_the_throttled_time_of_its_quota),
           TEST_IN_FOLDER(group_names_are_those_of_the_controller))
