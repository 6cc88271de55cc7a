#include "observe/resources/monitor.h"

#include "base/log.h"
#include "support/folder.h"

#include <unistd.h>

static pl_metrics *make_metrics(void)
{
    pl_metrics *metrics;
    int tag;
    assert_ok(pl_metrics_new(&metrics, NULL));
    assert_ok(pl_metrics_tag(metrics, "bytes_sent", &tag));
    assert_ok(pl_metrics_tag(metrics, "bytes_received", &tag));
    assert_ok(pl_metrics_tag(metrics, "step", &tag));
    assert_ok(pl_metrics_tag(metrics, "tests", &tag));
    assert_ok(pl_metrics_tag(metrics, "rss_mb", &tag));
    assert_ok(pl_metrics_tag(metrics, "task_cpu", &tag));
    return metrics;
}

/* <folder>/<this host><suffix> */
static const char *file_of(const char *folder, const char *suffix)
{
    char name[300] = "";
    gethostname(name, 255);
    strcat(name, suffix);
    return test_path(folder, name);
}

static void run_once(pl_metrics *metrics, const char *folder)
{
    pl_monitor *monitor;
    assert_ok(pl_monitor_start(&monitor, &(pl_monitor_opts) {
                                             .folder = folder,
                                             .every_s = 100,
                                             .metrics = metrics,
                                         }));
    pl_monitor_stop(monitor);
}

static int count_headers(const char *path)
{
    char *text;
    int count = 0;
    assert_ok(pl_file_read_text(&text, path, 1 << 20));
    for (const char *at = text; (at = strstr(at, "time,cpu,")) != NULL; at++)
        count++;
    pl_mem_free(text);
    return count;
}

static void monitor_appends_to_the_file_of_the_host(void **state)
{
    pl_metrics *metrics = make_metrics();
    run_once(metrics, *state);
    run_once(metrics, *state);
    assert_int_equal(1, count_headers(file_of(*state, ".csv")));
    assert_false(pl_file_exists(file_of(*state, "-2.csv")));
    pl_metrics_free(metrics);
}

static void monitor_leaves_a_file_of_other_columns_alone(void **state)
{
    pl_metrics *metrics = make_metrics();
    assert_ok(pl_file_replace(file_of(*state, ".csv"), "a,b\n1,2\n", 8));
    run_once(metrics, *state);
    assert_int_equal(0, count_headers(file_of(*state, ".csv")));
    assert_int_equal(1, count_headers(file_of(*state, "-2.csv")));
    pl_metrics_free(metrics);
}

static void monitor_start_survives_each_failed_allocation(void **state)
{
    pl_monitor *monitor;
    pl_metrics *metrics = make_metrics();
    pl_monitor_opts opts = { .folder = *state,
                             .every_s = 100,
                             .metrics = metrics };
    assert_survives_failed_allocations(pl_monitor_start(&monitor, &opts),
                                       pl_monitor_stop(monitor));
    pl_metrics_free(metrics);
}

UNIT_TESTS(TEST_IN_FOLDER(monitor_appends_to_the_file_of_the_host),
           TEST_IN_FOLDER(monitor_leaves_a_file_of_other_columns_alone),
           TEST_IN_FOLDER(monitor_start_survives_each_failed_allocation))
