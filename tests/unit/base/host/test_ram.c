#include "base/host/ram.h"

#include "support/folder.h"
#include "support/unit.h"

#include <stdlib.h>
#include <unistd.h>

#define MB ((int64_t)1 << 20)

static void put_machine(const char *root)
{
    test_put(root, "proc/meminfo",
             "MemTotal:       16000000 kB\n"
             "MemFree:         1000000 kB\n"
             "MemAvailable:    8192000 kB\n");
}

static void assert_ram(pl_ram ram, int64_t bytes, const char *limit)
{
    assert_int_equal(bytes, ram.bytes);
    assert_string_equal(limit, ram.limit);
}

static void ram_is_what_the_machine_has_available(void **state)
{
    char *root = *state;
    put_machine(root);
    test_put(root, "proc/self/cgroup", "0::/\n");
    assert_ram(pl_ram_read(root, -1), (int64_t)8192000 * 1024, "the machine");
}

static void ram_is_unlimited_where_nothing_is_known(void **state)
{
    assert_true(pl_ram_read(*state, -1).bytes == INT64_MAX);
}

/* The group above has less left than the own one; files can be dropped. */
static void ram_is_what_the_tightest_cgroup_has_left(void **state)
{
    char *root = *state;
    put_machine(root);
    test_put(root, "proc/self/cgroup", "4:memory:/old\n0::/jobs/mine\n");
    test_put(root, "sys/fs/cgroup/jobs/mine/memory.max", "max\n");
    test_put(root, "sys/fs/cgroup/jobs/mine/memory.current", "1048576\n");
    test_put(root, "sys/fs/cgroup/jobs/memory.max", "104857600\n");
    test_put(root, "sys/fs/cgroup/jobs/memory.current", "62914560\n");
    assert_ram(pl_ram_read(root, -1), 40 * MB, "the cgroup");
    test_put(root, "sys/fs/cgroup/jobs/memory.stat",
             "anon 31457280\nfile 31457280\nactive_file 10485760\n"
             "inactive_file 20971520\n");
    assert_ram(pl_ram_read(root, -1), 70 * MB, "the cgroup");
    test_put(root, "sys/fs/cgroup/jobs/mine/memory.max", "2097152\n");
    assert_ram(pl_ram_read(root, -1), MB, "the cgroup");
    test_put(root, "sys/fs/cgroup/jobs/mine/memory.current", "3145728\n");
    assert_ram(pl_ram_read(root, -1), 0, "the cgroup");
}

static void ram_is_what_the_address_space_has_left(void **state)
{
    char *root = *state;
    put_machine(root);
    test_put(root, "proc/self/statm", "1000 500 100 10 0 200 0\n");
    pl_ram ram = pl_ram_read(root, 100 * MB);
    assert_ram(ram, 100 * MB - 1000 * sysconf(_SC_PAGESIZE), "ulimit -v");
    assert_true(ram.address_space);
    ram = pl_ram_read(root, (int64_t)1 << 50);
    assert_string_equal("the machine", ram.limit);
    assert_false(ram.address_space);
}

static void ram_of_this_process_is_known(void **state)
{
    (void)state;
    assert_true(pl_ram_available().bytes > 0);
    assert_true(pl_ram_available().bytes < INT64_MAX);
}

static void ram_peak_stays_when_memory_is_given_back(void **state)
{
    (void)state;
    int64_t before = pl_ram_peak();
    size_t bytes = (size_t)(before + 32 * MB);
    char *block = malloc(bytes);
    assert_non_null(block);
    for (size_t i = 0; i < bytes; i += 512)
        ((volatile char *)block)[i] = 1;
    free(block);
    assert_true(before > 0);
    assert_true(pl_ram_peak() >= before + 32 * MB);
}

UNIT_TESTS(TEST_IN_FOLDER(ram_is_what_the_machine_has_available),
           TEST_IN_FOLDER(ram_is_unlimited_where_nothing_is_known),
           TEST_IN_FOLDER(ram_is_what_the_tightest_cgroup_has_left),
           TEST_IN_FOLDER(ram_is_what_the_address_space_has_left),
           cmocka_unit_test(ram_of_this_process_is_known),
           cmocka_unit_test(ram_peak_stays_when_memory_is_given_back))
