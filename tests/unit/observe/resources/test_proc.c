#include "observe/resources/proc.h"

#include "support/fake_proc.h"

#include <unistd.h>

static void host_is_read_from_proc(void **state)
{
    pl_host_stats host;
    proc_host(*state, 3);
    assert_ok(pl_host_stats_init(&host, *state));
    assert_int_equal(2, host.core_count);
    pl_host_stats_read(&host, *state);
    assert_int_equal(150, host.all.busy);
    assert_int_equal(600, host.all.all);
    assert_int_equal(150, host.cores[0].busy);
    assert_int_equal(0, host.cores[1].busy);
    assert_int_equal(300, host.cores[1].all);
    assert_int_equal(3000, host.switches);
    assert_int_equal(1024, host.memory_kb);
    assert_int_equal(2048, host.memory_total_kb);
    assert_true(host.load == 1.5);
    /* Whole disks: sda and nvme0n1. */
    assert_int_equal(2 * 3000 * 512, host.disk_read_bytes);
    assert_int_equal(6000 * 512, host.disk_written_bytes);
    assert_int_equal(2, host.net_count);
    assert_string_equal("eth0", host.nets[1].name);
    assert_int_equal(9000, host.nets[1].received_bytes);
    assert_int_equal(12000, host.nets[1].sent_bytes);
    assert_int_equal(9, host.nets[1].received_packets);
    assert_int_equal(12, host.nets[1].sent_packets);
    pl_host_stats_close(&host);
}

static void host_without_proc_is_all_zero(void **state)
{
    pl_host_stats host;
    assert_ok(pl_host_stats_init(&host, *state));
    pl_host_stats_read(&host, *state);
    assert_int_equal(0, host.core_count);
    assert_int_equal(0, host.net_count);
    assert_int_equal(0, host.memory_total_kb);
    pl_host_stats_close(&host);
}

/* Lines that are cut off or malformed are skipped. */
static void host_skips_malformed_lines(void **state)
{
    pl_host_stats host;
    proc_put(*state, "stat", "cpu 1 2\ncpux 1 2 3 4\ncpu0 1 2 3 4 5 6\ncpu");
    assert_ok(pl_file_make_folder(test_path(*state, "net")));
    proc_put(*state, "net/dev", "eth0: 1 2 3\n: 1\nno colon\nlo:");
    proc_put(*state, "diskstats", "8 0 sda 1\n8 0\n\n");
    proc_put(*state, "meminfo", "MemTotal:");
    assert_ok(pl_host_stats_init(&host, *state));
    pl_host_stats_read(&host, *state);
    assert_int_equal(1, host.core_count);
    assert_int_equal(12, host.cores[0].busy);
    assert_int_equal(0, host.all.all);
    assert_int_equal(0, host.net_count);
    assert_int_equal(0, host.disk_read_bytes);
    pl_host_stats_close(&host);
}

static void process_is_read_from_proc(void **state)
{
    pl_process process;
    proc_process(*state, 77, 5, 2);
    assert_true(pl_process_read(&process, *state, 77));
    assert_int_equal(5, process.parent);
    assert_int_equal(300, process.ticks);
    assert_int_equal(3072, process.rss_kb);
    assert_int_equal(4096, process.peak_kb);
    assert_int_equal(30, process.switches);
    assert_int_equal(200, process.read_bytes);
    assert_int_equal(400, process.written_bytes);
    assert_false(pl_process_read(&process, *state, 78));
}

static void own_process_is_found(void **state)
{
    (void)state;
    pl_process process;
    assert_true(pl_process_read(&process, PL_PROC, getpid()));
    assert_int_equal(getppid(), process.parent);
    assert_true(process.rss_kb > 0);
}

static void process_tree_has_children_and_theirs(void **state)
{
    pid_t pids[8];
    proc_process(*state, 10, 1, 1);
    proc_process(*state, 11, 10, 1);
    proc_process(*state, 12, 11, 1);
    proc_process(*state, 13, 1, 1);
    assert_int_equal(3, pl_process_tree(*state, 10, pids, 8));
    assert_int_equal(10, pids[0]);
    assert_int_equal(11, pids[1]);
    assert_int_equal(12, pids[2]);
    assert_int_equal(2, pl_process_tree(*state, 10, pids, 2));
    assert_int_equal(0, pl_process_tree(*state, 14, pids, 8));
}

UNIT_TESTS(TEST_IN_FOLDER(host_is_read_from_proc),
           TEST_IN_FOLDER(host_without_proc_is_all_zero),
           TEST_IN_FOLDER(host_skips_malformed_lines),
           TEST_IN_FOLDER(process_is_read_from_proc),
           cmocka_unit_test(own_process_is_found),
           TEST_IN_FOLDER(process_tree_has_children_and_theirs))
