#include "observe/resources/usage.h"

#include "support/fake_proc.h"

#include <math.h>

static const pl_usage_job nobody = { .sent_bytes = NAN, .received_bytes = NAN };

static void usage_new_survives_each_failed_allocation(void **state)
{
    pl_usage *usage;
    pl_usage_opts opts = { .root = *state };
    proc_host(*state, 1);
    assert_survives_failed_allocations(pl_usage_new(&usage, &opts),
                                       pl_usage_free(usage));
}

static void usage_gives_rates_between_samples(void **state)
{
    pl_usage *usage;
    pid_t pid = 77;
    pl_usage_job job = { .pids = &pid, .count = 1 };
    proc_host(*state, 1);
    proc_process(*state, 77, 1, 0);
    assert_ok(pl_usage_new(&usage, &(pl_usage_opts) { .root = *state }));
    job.sent_bytes = job.received_bytes = 100;
    (void)pl_usage_sample(usage, 1000, &job);
    proc_host(*state, 3);
    proc_process(*state, 77, 1, 2);
    job.sent_bytes = 1100;
    job.received_bytes = 300;
    const pl_usage_view *view = pl_usage_sample(usage, 1002, &job);
    assert_true(view->cpu == 25 && view->cores[0] == 50 && view->cores[1] == 0);
    assert_true(view->memory_mb == 1 && view->memory_total_mb == 2);
    assert_true(view->switches == 1000);
    assert_true(view->disk_read_bytes == 2 * 1000 * 512);
    assert_int_equal(1, view->job_tasks);
    assert_true(fabs(view->job_cpu - 100 * 150 / pl_proc_ticks_per_s()) < 1e-9);
    assert_true(view->job_rss_mb == 3 && view->job_peak_mb == 3);
    assert_true(view->job_switches == 15 && view->job_read_bytes == 100);
    assert_true(view->job_sent_bytes == 500 && view->job_received_bytes == 100);
    assert_string_equal("lo", view->nets[0].name);
    assert_true(view->nets[1].sent_bytes == 4000);
    pl_usage_free(usage);
}

/* A process that ran before, but was not listed, causes no spike. */
static void usage_counts_a_new_process_from_its_start(void **state)
{
    pl_usage *usage;
    pid_t pids[] = { 77, 78 };
    pl_usage_job job = { .pids = pids, .count = 2 };
    proc_host(*state, 1);
    assert_ok(pl_usage_new(&usage, &(pl_usage_opts) { .root = *state }));
    (void)pl_usage_sample(usage, 1000, &nobody);
    proc_process(*state, 77, 1, 2); /* its start time is unknown */
    proc_process(*state, 78, 1, 2);
    proc_put(*state, "78/stat",
             "78 (a) S 1 1 1 0 -1 0 1 0 0 0 200 100 0 0 20 0 1 0 1 0\n");
    const pl_usage_view *view = pl_usage_sample(usage, 1001, &job);
    assert_int_equal(2, view->job_tasks);
    assert_true(fabs(view->job_cpu - 100 * 300 / pl_proc_ticks_per_s()) < 1e-9);
    pl_usage_free(usage);
}

static void usage_distinguishes_roles(void **state)
{
    pl_usage *usage;
    pid_t pids[] = { 77, 78 };
    pl_tasks_role roles[] = { PL_TASKS_PS, PL_TASKS_WORKER };
    pl_usage_job job = { .pids = pids, .count = 2, .roles = roles };
    proc_host(*state, 1);
    proc_process(*state, 77, 1, 0);
    proc_process(*state, 78, 1, 0);
    assert_ok(pl_usage_new(&usage,
                           &(pl_usage_opts) { .root = *state, .roles = true }));
    assert_non_null(strstr(pl_usage_header(usage),
                           ",worker_tasks,worker_cpu,worker_rss_mb,"
                           "worker_sent_bytes_per_s,"
                           "worker_received_bytes_per_s,ps_tasks,"));
    (void)pl_usage_sample(usage, 1000, &job);
    proc_process(*state, 77, 1, 2);
    job.role_sent_bytes[PL_TASKS_WORKER] = 500;
    const pl_usage_role *role = pl_usage_sample(usage, 1001, &job)->roles;
    assert_true(role[PL_TASKS_WORKER].cpu == 0);
    assert_true(role[PL_TASKS_PS].cpu > 0);
    assert_int_equal(1, role[PL_TASKS_PS].tasks);
    assert_true(role[PL_TASKS_PS].rss_mb == 3);
    assert_int_equal(0, role[PL_TASKS_EVALUATOR].tasks);
    assert_true(role[PL_TASKS_WORKER].sent_bytes == 500);
    pl_usage_free(usage);
}

static void usage_lines_have_the_columns_of_the_header(void **state)
{
    pl_usage *usage;
    proc_host(*state, 1);
    assert_ok(pl_usage_new(&usage, &(pl_usage_opts) { .root = *state }));
    (void)pl_usage_sample(usage, 1000, &nobody);
    proc_host(*state, 2);
    (void)pl_usage_sample(usage, 1001, &nobody);
    assert_string_equal(
        "time,cpu,cpu0,cpu1,load,memory_mb,memory_total_mb,switches_per_s,"
        "disk_read_bytes_per_s,disk_written_bytes_per_s,job_tasks,job_cpu,"
        "job_rss_mb,job_peak_mb,job_switches_per_s,job_read_bytes_per_s,"
        "job_written_bytes_per_s,job_sent_bytes_per_s,"
        "job_received_bytes_per_s,lo_received_bytes_per_s,lo_sent_bytes_per_s,"
        "lo_received_packets_per_s,lo_sent_packets_per_s,"
        "eth0_received_bytes_per_s,eth0_sent_bytes_per_s,"
        "eth0_received_packets_per_s,eth0_sent_packets_per_s\n",
        pl_usage_header(usage));
    assert_string_equal("1001.000,25.0,50.0,0.0,1.50,1.0,2.0,1000,1024000,"
                        "1024000,0,0.0,0.0,0.0,0,0,0,,,1000,2000,1,2,3000,4000,"
                        "3,4\n",
                        pl_usage_line(usage));
    pl_usage_free(usage);
}

/* An interface that is gone, one set back, one that is new. */
static void usage_leaves_unknown_values_empty(void **state)
{
    pl_usage *usage;
    proc_host(*state, 5);
    assert_ok(pl_usage_new(&usage, &(pl_usage_opts) { .root = *state }));
    (void)pl_usage_sample(usage, 1000, &nobody);
    proc_put(*state, "net/dev",
             "lo: 1 1 0 0 0 0 0 0 1 1\nwlan0: 1 1 0 0 0 0 0 0 1 1\n");
    const pl_usage_view *view = pl_usage_sample(usage, 1001, &nobody);
    assert_int_equal(2, view->net_count);
    assert_true(isnan(view->nets[0].sent_bytes));
    assert_true(isnan(view->nets[1].sent_bytes));
    assert_true(isnan(view->cpu)); /* no tick has passed */
    assert_null(strstr(pl_usage_line(usage), "nan"));
    pl_usage_free(usage);
}

static void usage_keeps_the_most_memory_of_the_job(void **state)
{
    pl_usage *usage;
    pid_t pids[] = { 77, 78 };
    pl_usage_job job = { .pids = pids, .count = 2 };
    proc_host(*state, 1);
    proc_process(*state, 77, 1, 1);
    proc_process(*state, 78, 1, 1);
    assert_ok(pl_usage_new(&usage, &(pl_usage_opts) { .root = *state }));
    assert_true(pl_usage_sample(usage, 1000, &job)->job_rss_mb == 6);
    assert_ok(pl_file_remove_all(test_path(*state, "78")));
    const pl_usage_view *view = pl_usage_sample(usage, 1001, &job);
    assert_true(view->job_rss_mb == 3 && view->job_peak_mb == 6);
    assert_int_equal(1, view->job_tasks);
    pl_usage_free(usage);
}

UNIT_TESTS(TEST_IN_FOLDER(usage_new_survives_each_failed_allocation),
           TEST_IN_FOLDER(usage_gives_rates_between_samples),
           TEST_IN_FOLDER(usage_counts_a_new_process_from_its_start),
           TEST_IN_FOLDER(usage_distinguishes_roles),
           TEST_IN_FOLDER(usage_lines_have_the_columns_of_the_header),
           TEST_IN_FOLDER(usage_leaves_unknown_values_empty),
           TEST_IN_FOLDER(usage_keeps_the_most_memory_of_the_job))
