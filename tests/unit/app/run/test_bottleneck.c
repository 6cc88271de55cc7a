#include "app/run/bottleneck.h"

#include "support/unit.h"

/* The bottleneck of these rows. */
static void check(const char *strategy, const char *mode,
                  const pl_worker_report *rows, size_t count, const char *what,
                  const char *text)
{
    pl_summary summary = {
        .strategy = strategy,
        .mode = mode,
        .per_worker = (pl_worker_report *)rows,
        .worker_count = count,
    };
    pl_bottleneck_find(&summary);
    assert_true(summary.has_bottleneck);
    assert_string_equal(what, summary.bottleneck.what);
    assert_string_equal(text, summary.bottleneck.text);
}

#define SINGLE "single", NULL
#define SYNC   "ps", "sync"
#define ASYNC  "ps", "async"
#define ROW(all, in, compute, send, wait)                                      \
    {                                                                          \
        .seconds = (all), .input_share = (in), .computing_share = (compute),   \
        .sending_share = (send), .waiting_share = (wait)                       \
    }
#define ONE(...) (const pl_worker_report[]) { ROW(__VA_ARGS__) }, 1

static void bottleneck_is_what_took_most_of_the_time(void **state)
{
    (void)state;
    check(SINGLE, ONE(2.0, 0.25, 0.75, 0.0, 0.0), "computing",
          "computing: 75 % of the time (reading 25 %)");
    check(SINGLE, ONE(2.0, 0.6, 0.4, 0.0, 0.0), "reading",
          "reading data: 60 % of the time (computing 40 %)");
    check(ASYNC, ONE(1.0, 0.0, 0.3, 0.5, 0.2), "sending",
          "sending gradients: 50 % of the time (computing 30 %, waiting 20 %)");
    check(SINGLE, ONE(2.0, 0.0, 1.0, 0.0, 0.0), "computing",
          "computing: 100 % of the time");
}

static void bottleneck_names_the_worker_all_wait_for(void **state)
{
    (void)state;
    const pl_worker_report rows[] = { ROW(1.0, 0.0, 0.2, 0.0, 0.8),
                                      ROW(1.0, 0.0, 0.9, 0.0, 0.1),
                                      ROW(1.0, 0.0, 0.2, 0.0, 0.8) };
    check(SYNC, rows, 3, "waiting",
          "waiting for worker 1, the slowest: 57 % of the time (computing 43 "
          "%)");
    check(ASYNC, rows, 3, "waiting",
          "waiting for the parameter servers: 57 % of the time (computing 43 "
          "%)");
}

static void bottleneck_of_equal_workers_is_the_servers(void **state)
{
    (void)state;
    const pl_worker_report rows[] = { ROW(1.0, 0.0, 0.4, 0.0, 0.6),
                                      ROW(1.0, 0.0, 0.5, 0.0, 0.5) };
    check(SYNC, rows, 2, "waiting",
          "waiting for the parameter servers: 55 % of the time (computing 45 "
          "%)");
    check("allreduce", NULL, rows, 2, "waiting",
          "waiting for the other workers' gradients: 55 % of the time "
          "(computing 45 %)");
}

static void bottleneck_of_nothing_is_null(void **state)
{
    (void)state;
    pl_worker_report row = pl_worker_report_lost(0, 3, 0);
    pl_summary summary = { .stopped_by = "steps",
                           .per_worker = &row,
                           .worker_count = 1 };
    pl_json *json;
    pl_bottleneck_find(&summary);
    assert_false(summary.has_bottleneck);
    assert_ok(pl_fields_write(&pl_summary_fields, &summary, &json));
    assert_true(pl_json_has(json, "bottleneck"));
    pl_json_free(json);
}

UNIT_TESTS(cmocka_unit_test(bottleneck_is_what_took_most_of_the_time),
           cmocka_unit_test(bottleneck_names_the_worker_all_wait_for),
           cmocka_unit_test(bottleneck_of_equal_workers_is_the_servers),
           cmocka_unit_test(bottleneck_of_nothing_is_null))
