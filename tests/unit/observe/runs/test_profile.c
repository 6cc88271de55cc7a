#include "observe/runs/profile.h"

#include "support/unit.h"

#include <math.h>

/* A worker: a product on two threads, on one of them inside a wait. */
static const char worker[] =
    "{\"otherData\":{\"begin_wall_ns\":5000000,\"begin_clock_ns\":1000000,"
    "\"ahead_ns\":500000,\"dropped\":3,\"gflops\":10.0,\"gbytes\":5.0,"
    "\"operators\":[{\"name\":\"dense\",\"op\":\"inner\",\"shape\":\"[10, 2]\","
    "\"flop\":20000.0,\"bytes\":1.0},"
    "{\"name\":\"relu\",\"op\":\"relu\",\"shape\":\"[10, 2]\","
    "\"flop\":0.0,\"bytes\":1000.0}]},"
    "\"traceEvents\":["
    "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"tid\":0},"
    "{\"name\":\"dense\",\"ph\":\"X\",\"ts\":10.0,\"dur\":2.0,\"pid\":0,"
    "\"tid\":0,\"args\":{\"step\":1}},"
    "{\"name\":\"wait\",\"ph\":\"X\",\"ts\":5.0,\"dur\":20.0,\"pid\":0,"
    "\"tid\":0,\"args\":{\"step\":1}},"
    "{\"name\":\"dense\",\"ph\":\"X\",\"ts\":10.0,\"dur\":2.0,\"pid\":0,"
    "\"tid\":1,\"args\":{\"step\":1}},"
    "{\"name\":\"relu\",\"ph\":\"X\",\"ts\":30.0,\"dur\":1.0,\"pid\":0,"
    "\"tid\":0,\"args\":{\"step\":1}}]}";

static const char server[] =
    "{\"otherData\":{\"begin_wall_ns\":1,\"begin_clock_ns\":1200000,"
    "\"dropped\":0,\"gflops\":0.0,\"gbytes\":0.0,\"operators\":[]},"
    "\"traceEvents\":[{\"name\":\"push\",\"ph\":\"X\",\"ts\":7.0,\"dur\":1.0,"
    "\"pid\":0,\"tid\":0,\"args\":{\"step\":1}}]}";

static pl_json *parse(const char *text)
{
    pl_json *json;
    assert_ok(pl_json_parse(&json, text, strlen(text), "trace"));
    return json;
}

static double real_of(const pl_json *row, const char *key)
{
    double value = 0;
    assert_ok(pl_json_get_real(row, key, &value));
    return value;
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

/* A trace may say that any number of spans was dropped. */
static void profile_of_hostile_counts_does_not_overflow(void **state)
{
    (void)state;
    static const char text[] =
        "{\"otherData\":{\"dropped\":9223372036854775807,\"gflops\":0.0,"
        "\"gbytes\":0.0,\"operators\":[]},\"traceEvents\":[]}";
    pl_profile *profile;
    pl_json *trace = parse(text);
    assert_ok(pl_profile_new(&profile));
    for (int i = 0; i < 3; i++)
        assert_ok(pl_profile_add(profile, trace, "worker-0.json"));
    assert_true(pl_profile_dropped(profile) == INT64_MAX / 2);
    pl_profile_free(profile);
    pl_json_free(trace);
}

static void profile_adds_up_calls_time_and_speed(void **state)
{
    (void)state;
    pl_profile *profile;
    pl_table *table;
    pl_json *trace = parse(worker), *rows;
    const char *name;
    assert_ok(pl_profile_new(&profile));
    assert_ok(pl_profile_add(profile, trace, "worker-0.json"));
    assert_int_equal(3, pl_profile_dropped(profile));
    assert_ok(pl_profile_table(&(pl_profile_part) { profile, NULL }, 1,
                               "operators", "Time", &table));
    assert_ok(pl_table_json(table, &rows));
    assert_int_equal(3, pl_json_length(rows));
    /* The wait, without what was inside it. */
    assert_ok(pl_json_get_text(pl_json_at(rows, 0), "name", &name));
    assert_string_equal("wait", name);
    assert_true(real_of(pl_json_at(rows, 0), "mean_us") == 18);
    const pl_json *dense = pl_json_at(rows, 1);
    assert_true(real_of(dense, "calls") == 2);
    assert_true(near(real_of(dense, "total_ms"), 0.004));
    assert_true(near(real_of(dense, "gflops"), 5)); /* 20,000 in 4 us */
    assert_true(near(real_of(dense, "of_limit"), 0.5));
    const pl_json *relu = pl_json_at(rows, 2);
    assert_true(near(real_of(relu, "gbytes"), 1)); /* 1000 in 1 us */
    assert_true(near(real_of(relu, "of_limit"), 0.2));
    pl_json_free(rows);
    pl_table_free(table);
    pl_profile_free(profile);
    pl_json_free(trace);
}

static void profile_names_the_longest_operators(void **state)
{
    (void)state;
    pl_profile *profile;
    pl_profile_share found[2];
    pl_json *trace = parse(worker);
    assert_ok(pl_profile_new(&profile));
    assert_ok(pl_profile_add(profile, trace, "worker-0.json"));
    assert_int_equal(2, pl_profile_longest(profile, found, 2));
    assert_string_equal("dense", found[0].name);
    assert_true(near(found[0].share, 0.8)); /* 4 us beside 1 us of relu */
    assert_string_equal("relu", found[1].name);
    assert_int_equal(1, pl_profile_longest(profile, found, 1));
    assert_string_equal("dense", found[0].name);
    pl_profile_free(profile);
    pl_json_free(trace);
}

/* Two parts of a step record the bytes that each of them moved, more than
 * memory could deliver. */
static void profile_adds_up_the_bytes_of_spans(void **state)
{
    (void)state;
    static const char text[] =
        "{\"otherData\":{\"dropped\":0,\"gflops\":10.0,\"gbytes\":2.0,"
        "\"operators\":[{\"name\":\"dot\",\"op\":\"X w + b\","
        "\"shape\":\"[10]\",\"flop\":0.0,\"bytes\":0.0}]},"
        "\"traceEvents\":["
        "{\"name\":\"dot\",\"ph\":\"X\",\"ts\":10.0,\"dur\":1.0,\"tid\":0,"
        "\"args\":{\"step\":1,\"bytes\":2000}},"
        "{\"name\":\"dot\",\"ph\":\"X\",\"ts\":10.0,\"dur\":1.0,\"tid\":1,"
        "\"args\":{\"step\":1,\"bytes\":4000}}]}";
    pl_profile *profile;
    pl_table *table;
    pl_json *trace = parse(text), *rows;
    const char *note;
    assert_ok(pl_profile_new(&profile));
    assert_ok(pl_profile_add(profile, trace, "worker-0.json"));
    assert_ok(pl_profile_table(&(pl_profile_part) { profile, NULL }, 1,
                               "operators", "Time", &table));
    assert_ok(pl_table_json(table, &rows));
    const pl_json *dot = pl_json_at(rows, 0);
    assert_true(near(real_of(dot, "gbytes"), 3)); /* 6000 in 2 us */
    assert_true(near(real_of(dot, "of_limit"), 1.5));
    assert_ok(pl_json_get_text(dot, "note", &note));
    assert_string_equal("data in cache", note);
    pl_json_free(rows);
    pl_table_free(table);
    pl_profile_free(profile);
    pl_json_free(trace);
}

static double time_of(const pl_json *events, size_t index)
{
    return real_of(pl_json_at(events, index), "ts");
}

/* The worker began at 1.5 ms of the server's clock, the server at 1.2. */
static void profile_merges_traces_on_one_clock(void **state)
{
    (void)state;
    pl_json *traces[] = { parse(worker), parse(server) }, *merged;
    const pl_json *events;
    int64_t pid;
    assert_ok(pl_profile_merge(traces, 2, &merged));
    assert_ok(pl_json_get_array(merged, "traceEvents", &events));
    assert_int_equal(6, pl_json_length(events));
    assert_true(time_of(events, 1) == 310);
    assert_true(time_of(events, 5) == 7);
    assert_ok(pl_json_get_int(pl_json_at(events, 5), "pid", 0, 9, &pid));
    assert_int_equal(1, pid);
    pl_json_free(merged);
    pl_json_free(traces[0]);
    pl_json_free(traces[1]);
}

/* Where clocks were not compared, wall-clock times are used. */
static void profile_merges_by_the_calendar_without_a_clock(void **state)
{
    (void)state;
    pl_json *traces[] = { parse(server), parse(server) }, *merged;
    const pl_json *events;
    assert_ok(pl_profile_merge(traces, 2, &merged));
    assert_ok(pl_json_get_array(merged, "traceEvents", &events));
    assert_true(time_of(events, 0) == 7 && time_of(events, 1) == 7);
    pl_json_free(merged);
    pl_json_free(traces[0]);
    pl_json_free(traces[1]);
}

static void profile_refuses_files_that_are_not_traces(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "{}",
        "{\"otherData\":{\"dropped\":0,\"operators\":[]}}",
        "{\"otherData\":{\"dropped\":0,\"operators\":[{}]},"
        "\"traceEvents\":[]}",
        "{\"otherData\":{\"dropped\":0,\"operators\":[]},"
        "\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\"}]}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pl_profile *profile;
        pl_json *trace = parse(wrong[i]);
        assert_ok(pl_profile_new(&profile));
        assert_fails(PL_FORMAT, "x.json is not a trace of paceline",
                     pl_profile_add(profile, trace, "x.json"));
        pl_profile_free(profile);
        pl_json_free(trace);
    }
}

static void profile_new_survives_each_failed_allocation(void **state)
{
    (void)state;
    pl_profile *profile;
    assert_survives_failed_allocations(pl_profile_new(&profile),
                                       pl_profile_free(profile));
}

UNIT_TESTS(cmocka_unit_test(profile_of_hostile_counts_does_not_overflow),
           cmocka_unit_test(profile_adds_up_calls_time_and_speed),
           cmocka_unit_test(profile_names_the_longest_operators),
           cmocka_unit_test(profile_adds_up_the_bytes_of_spans),
           cmocka_unit_test(profile_merges_traces_on_one_clock),
           cmocka_unit_test(profile_merges_by_the_calendar_without_a_clock),
           cmocka_unit_test(profile_refuses_files_that_are_not_traces),
           cmocka_unit_test(profile_new_survives_each_failed_allocation))
