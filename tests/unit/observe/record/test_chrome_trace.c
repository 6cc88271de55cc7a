#include "observe/record/chrome_trace.h"

#include "base/file/file.h"
#include "base/json/json.h"
#include "support/unit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* A folder of its own for each test, removed afterwards. */
static char folder[64], path[96];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s", "/tmp/paceline-test-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/trace.json", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return pl_file_remove_all(folder) == PL_OK ? 0 : -1;
}

/* Two lanes, three spans, one of them dropped for want of room. */
static pl_trace *make_trace(void)
{
    pl_trace *trace;
    assert_ok(pl_trace_new(&trace, &(pl_trace_opts) { .lanes = 2, .room = 1 }));
    uint64_t begin = pl_trace_begin(trace);
    pl_trace_switch(trace, true);
    pl_trace_span(trace, 0, "a \"quoted\\\n\x01 name", 7, begin + 1000000,
                  begin + 3000000);
    pl_trace_span(trace, 1, "matmul", 8, begin - 500000, begin);
    pl_trace_span(trace, 1, "dropped", 9, begin, begin + 1);
    return trace;
}

static double real_of(const pl_json *object, const char *key)
{
    double value = 0;
    assert_ok(pl_json_get_real(object, key, &value));
    return value;
}

static int64_t int_of(const pl_json *object, const char *key)
{
    int64_t value = 0;
    assert_ok(pl_json_get_int(object, key, INT64_MIN, INT64_MAX, &value));
    return value;
}

static const char *text_of(const pl_json *object, const char *key)
{
    const char *value = NULL;
    assert_ok(pl_json_get_text(object, key, &value));
    return value;
}

static const pl_json *object_of(const pl_json *object, const char *key)
{
    const pl_json *value = NULL;
    assert_ok(pl_json_get_object(object, key, &value));
    return value;
}

/* The file is rounded to nanoseconds. */
static void assert_micros(double ticks, double micros)
{
    double expected = ticks * pl_ticks_ns() / 1000;
    assert_true(micros > expected - 0.001 && micros < expected + 0.001);
}

static void check_names(const pl_json *events)
{
    assert_string_equal("process_name", text_of(pl_json_at(events, 0), "name"));
    assert_string_equal(
        "worker 3", text_of(object_of(pl_json_at(events, 0), "args"), "name"));
    for (size_t lane = 0; lane < 2; lane++) {
        const pl_json *event = pl_json_at(events, 1 + lane);
        char expected[32];
        snprintf(expected, sizeof expected, "thread %zu", lane);
        assert_string_equal("thread_name", text_of(event, "name"));
        assert_string_equal("M", text_of(event, "ph"));
        assert_int_equal(42, int_of(event, "pid"));
        assert_int_equal(lane, int_of(event, "tid"));
        assert_string_equal(expected,
                            text_of(object_of(event, "args"), "name"));
    }
}

static void check_spans(const pl_json *events)
{
    const pl_json *first = pl_json_at(events, 3);
    assert_string_equal("a \"quoted\\\n\x01 name", text_of(first, "name"));
    assert_string_equal("X", text_of(first, "ph"));
    assert_int_equal(42, int_of(first, "pid"));
    assert_int_equal(0, int_of(first, "tid"));
    assert_int_equal(7, int_of(object_of(first, "args"), "step"));
    assert_micros(1000000, real_of(first, "ts"));
    assert_micros(2000000, real_of(first, "dur"));

    const pl_json *second = pl_json_at(events, 4);
    assert_string_equal("matmul", text_of(second, "name"));
    assert_int_equal(1, int_of(second, "tid"));
    assert_micros(-500000, real_of(second, "ts"));
    assert_micros(500000, real_of(second, "dur"));
}

static void chrome_trace_holds_every_span(void **state)
{
    (void)state;
    pl_trace *trace = make_trace();
    pl_json *json;
    const pl_json *events;
    assert_ok(pl_chrome_trace_write(
        trace, path,
        &(pl_chrome_trace_opts) { .process = "worker 3", .pid = 42 }));
    assert_ok(pl_json_read_file(&json, path, 1 << 20));
    const pl_json *other = object_of(json, "otherData");
    assert_int_equal(1, int_of(other, "dropped"));
    assert_int_equal(pl_trace_begin_wall_ns(trace),
                     int_of(other, "begin_wall_ns"));
    assert_ok(pl_json_get_array(json, "traceEvents", &events));
    assert_int_equal(5, pl_json_length(events));
    check_names(events);
    check_spans(events);
    pl_json_free(json);
    pl_trace_free(trace);
}

static void chrome_trace_cuts_a_name_that_is_too_long(void **state)
{
    (void)state;
    char name[3000];
    pl_trace *trace;
    pl_json *json;
    memset(name, '\n', sizeof name); /* six bytes each when escaped */
    name[sizeof name - 1] = '\0';
    assert_ok(pl_trace_new(&trace, &(pl_trace_opts) { .lanes = 1 }));
    pl_trace_switch(trace, true);
    pl_trace_span(trace, 0, name, INT64_MAX, 0, UINT64_MAX);
    assert_ok(pl_chrome_trace_write(trace, path, NULL));
    assert_ok(pl_json_read_file(&json, path, 1 << 20));
    pl_json_free(json);
    pl_trace_free(trace);
}

static void chrome_trace_of_nothing_is_valid(void **state)
{
    (void)state;
    pl_trace *trace;
    pl_json *json;
    const pl_json *events;
    assert_ok(pl_trace_new(&trace, &(pl_trace_opts) { .lanes = 1 }));
    assert_ok(pl_chrome_trace_write(trace, path, NULL));
    assert_ok(pl_json_read_file(&json, path, 1 << 20));
    assert_ok(pl_json_get_array(json, "traceEvents", &events));
    assert_int_equal(2, pl_json_length(events));
    pl_json_free(json);
    pl_trace_free(trace);
}

static void chrome_trace_survives_each_failed_allocation(void **state)
{
    (void)state;
    pl_trace *trace = make_trace();
    assert_survives_failed_allocations(pl_chrome_trace_write(trace, path, NULL),
                                       (void)0);
    pl_trace_free(trace);
}

/* A failure after the renaming leaves the whole file, any other none. */
static void chrome_trace_is_never_seen_in_part(void **state)
{
    (void)state;
    pl_trace *trace = make_trace();
    bool failed = true;
    for (long nth = 0; failed; nth++) {
        pl_file_fail_at(nth, ENOSPC);
        pl_status status = pl_chrome_trace_write(trace, path, NULL);
        failed = pl_file_fail_off();
        assert_int_equal(failed ? PL_IO : PL_OK, status);
        if (failed)
            assert_non_null(strstr(pl_error_message(), "trace /tmp/"));
        assert_true(failed || pl_file_exists(path));
        if (pl_file_exists(path)) {
            pl_json *json;
            assert_ok(pl_json_read_file(&json, path, 1 << 20));
            pl_json_free(json);
            assert_ok(pl_file_remove_all(path));
        }
    }
    pl_trace_free(trace);
}

#define IN_FOLDER(test)                                                        \
    cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

/* Spans that follow each other, whatever their length in ticks, end where the
 * next begins, to the nanosecond. */
static void spans_that_follow_each_other_do_not_overlap(void **state)
{
    (void)state;
    enum {
        SPANS = 5000
    };
    pl_trace *trace;
    pl_json *json;
    const pl_json *events;
    assert_ok(
        pl_trace_new(&trace, &(pl_trace_opts) { .lanes = 1, .room = SPANS }));
    pl_trace_switch(trace, true);
    uint64_t at = pl_trace_begin(trace);
    for (uint64_t i = 0; i < SPANS; i++) {
        uint64_t next = at + i * 7919 % 1237;
        pl_trace_span(trace, 0, "span", 1, at, next);
        at = next;
    }
    assert_ok(pl_chrome_trace_write(trace, path, NULL));
    pl_trace_free(trace);
    assert_ok(pl_json_read_file(&json, path, 1 << 20));
    assert_ok(pl_json_get_array(json, "traceEvents", &events));
    int64_t end = 0, spans = 0;
    for (size_t i = 0; i < pl_json_length(events); i++) {
        const pl_json *event = pl_json_at(events, i);
        if (strcmp(text_of(event, "ph"), "X") != 0)
            continue;
        int64_t begin = llround(real_of(event, "ts") * 1000);
        if (spans++ > 0)
            assert_int_equal(end, begin);
        end = begin + llround(real_of(event, "dur") * 1000);
    }
    assert_int_equal(SPANS, spans);
    pl_json_free(json);
}

UNIT_TESTS(
    cmocka_unit_test_setup_teardown(spans_that_follow_each_other_do_not_overlap,
                                    make_folder, remove_folder),
    IN_FOLDER(chrome_trace_holds_every_span),
    IN_FOLDER(chrome_trace_cuts_a_name_that_is_too_long),
    IN_FOLDER(chrome_trace_of_nothing_is_valid),
    IN_FOLDER(chrome_trace_survives_each_failed_allocation),
    IN_FOLDER(chrome_trace_is_never_seen_in_part))
