#include "cli/bottleneck.h"

#include "support/unit.h"

/* The text that a summary of these rows gets; "" without one. */
static void check(const char *head, const char *rows, const char *what,
                  const char *text)
{
    char json[2048];
    pl_json *summary;
    const pl_json *found;
    const char *value;
    snprintf(json, sizeof json, "{%s, \"per_worker\": [%s]}", head, rows);
    assert_ok(pl_json_parse(&summary, json, strlen(json), "summary"));
    assert_ok(pl_bottleneck_put(summary));
    assert_ok(pl_json_get_object(summary, "bottleneck", &found));
    assert_ok(pl_json_get_text(found, "what", &value));
    assert_string_equal(what, value);
    assert_ok(pl_json_get_text(found, "text", &value));
    assert_string_equal(text, value);
    pl_json_free(summary);
}

#define SINGLE "\"strategy\": \"single\", \"mode\": null"
#define SYNC   "\"strategy\": \"ps\", \"mode\": \"sync\""
#define ASYNC  "\"strategy\": \"ps\", \"mode\": \"async\""
#define ROW(seconds, in, compute, send, wait)                                  \
    "{\"seconds\": " #seconds ", \"input_share\": " #in                        \
    ", \"computing_share\": " #compute ", \"sending_share\": " #send           \
    ", \"waiting_share\": " #wait "}"

static void bottleneck_is_what_took_most_of_the_time(void **state)
{
    (void)state;
    check(SINGLE, ROW(2.0, 0.25, 0.75, 0.0, 0.0), "computing",
          "computing: 75 % of the time (reading 25 %)");
    check(SINGLE, ROW(2.0, 0.6, 0.4, 0.0, 0.0), "reading",
          "reading data: 60 % of the time (computing 40 %)");
    check(ASYNC, ROW(1.0, 0.0, 0.3, 0.5, 0.2), "sending",
          "sending gradients: 50 % of the time (computing 30 %, waiting 20 %)");
    check(SINGLE, ROW(2.0, 0.0, 1.0, 0.0, 0.0), "computing",
          "computing: 100 % of the time");
}

static void bottleneck_names_the_worker_all_wait_for(void **state)
{
    (void)state;
    const char *rows = ROW(1.0, 0.0, 0.2, 0.0, 0.8) "," ROW(
        1.0, 0.0, 0.9, 0.0, 0.1) "," ROW(1.0, 0.0, 0.2, 0.0, 0.8);
    check(SYNC, rows, "waiting",
          "waiting for worker 1, the slowest: 57 % of the time (computing 43 "
          "%)");
    check(ASYNC, rows, "waiting",
          "waiting for the parameter servers: 57 % of the time (computing 43 "
          "%)");
}

static void bottleneck_of_equal_workers_is_the_servers(void **state)
{
    (void)state;
    check(SYNC, ROW(1.0, 0.0, 0.4, 0.0, 0.6) "," ROW(1.0, 0.0, 0.5, 0.0, 0.5),
          "waiting",
          "waiting for the parameter servers: 55 % of the time (computing 45 "
          "%)");
    check("\"strategy\": \"allreduce\", \"mode\": null",
          ROW(1.0, 0.0, 0.4, 0.0, 0.6) "," ROW(1.0, 0.0, 0.5, 0.0, 0.5),
          "waiting",
          "waiting for the other workers' gradients: 55 % of the time "
          "(computing 45 %)");
}

static void bottleneck_of_nothing_is_null(void **state)
{
    (void)state;
    static const char json[] = "{\"per_worker\": [{\"lost\": true}]}";
    pl_json *summary;
    const pl_json *found;
    assert_ok(pl_json_parse(&summary, json, strlen(json), "summary"));
    assert_ok(pl_bottleneck_put(summary));
    assert_true(pl_json_has(summary, "bottleneck"));
    assert_int_not_equal(PL_OK,
                         pl_json_get_object(summary, "bottleneck", &found));
    pl_json_free(summary);
}

UNIT_TESTS(cmocka_unit_test(bottleneck_is_what_took_most_of_the_time),
           cmocka_unit_test(bottleneck_names_the_worker_all_wait_for),
           cmocka_unit_test(bottleneck_of_equal_workers_is_the_servers),
           cmocka_unit_test(bottleneck_of_nothing_is_null))
