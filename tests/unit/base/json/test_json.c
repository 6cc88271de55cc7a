#include "base/json/json.h"

#include "support/folder.h"

#include <math.h>
#include <stdlib.h>

static pl_json *parse(const char *text)
{
    pl_json *json;
    assert_ok(pl_json_parse(&json, text, strlen(text), "text"));
    return json;
}

static void assert_text(const char *expected, const pl_json *json, int indent)
{
    char *text;
    assert_ok(pl_json_text(json, indent, &text));
    assert_string_equal(expected, text);
    pl_mem_free(text);
}

/* What is printed: one line. */
static void assert_line(const char *expected, const pl_json *json)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    assert_ok(pl_json_print(json, file));
    assert_int_equal(0, fclose(file));
    assert_int_equal('\n', text[bytes - 1]);
    text[bytes - 1] = '\0';
    assert_string_equal(expected, text);
    free(text);
}

/* An object with one member of each kind. */
static pl_status build(pl_json **out)
{
    pl_json *json;
    pl_json *list = NULL;
    pl_json *inner = NULL;
    pl_status status;
    PL_TRY(pl_json_new_object(&json));
    PL_TRY_OUT(status,
               pl_json_set_text(json, "text", "gr\xc3\xbc\xc3\x9f \"x\"\n"));
    PL_TRY_OUT(status, pl_json_set_int(json, "int", INT64_MIN));
    PL_TRY_OUT(status, pl_json_set_real(json, "real", 0.1));
    PL_TRY_OUT(status, pl_json_set_real(json, "whole", 3.0));
    PL_TRY_OUT(status, pl_json_set_real(json, "infinite", (double)INFINITY));
    PL_TRY_OUT(status, pl_json_set_bool(json, "bool", true));
    PL_TRY_OUT(status, pl_json_set_null(json, "null"));
    PL_TRY_OUT(status, pl_json_new_array(&list));
    PL_TRY_OUT(status, pl_json_set_take(json, "list", list));
    PL_TRY_OUT(status, pl_json_append_int(list, 1));
    PL_TRY_OUT(status, pl_json_append_text(list, "two"));
    PL_TRY_OUT(status, pl_json_new_object(&inner));
    PL_TRY_OUT(status, pl_json_append_take(list, inner));
    *out = json;
    return PL_OK;
out:
    pl_json_free(json);
    return status;
}

#define BUILT                                                                  \
    "{\"text\":\"gr\xc3\xbc\xc3\x9f \\\"x\\\"\\n\","                           \
    "\"int\":-9223372036854775808,\"real\":0.1,\"whole\":3.0,"                 \
    "\"infinite\":null,\"bool\":true,\"null\":null,\"list\":[1,\"two\",{}]}"

static void json_is_written_in_order_and_reads_back(void **state)
{
    (void)state;
    pl_json *json;
    assert_ok(build(&json));
    assert_text(BUILT, json, 0);
    assert_line(BUILT, json);
    pl_json *again = parse(BUILT);
    assert_true(pl_json_equal(json, again));
    pl_json *copy;
    assert_ok(pl_json_copy(&copy, again));
    pl_json_free(again);
    assert_true(pl_json_equal(json, copy));
    pl_json_free(copy);
    pl_json_free(json);
}

static void json_indents(void **state)
{
    (void)state;
    pl_json *json = parse("{\"a\":[1,[]],\"b\":{\"c\":{}}}");
    assert_text("{\n  \"a\": [\n    1,\n    []\n  ],\n"
                "  \"b\": {\n    \"c\": {}\n  }\n}",
                json, 2);
    pl_json_free(json);
}

static void json_reals_read_back_the_same(void **state)
{
    (void)state;
    const double values[] = {
        0.0,   -0.0,  0.1,          1.0 / 3, 5e-324,
        1e300, 1e100, (double)0.1f, -2.5,    123456789.0
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        pl_json *json;
        char *text;
        assert_ok(pl_json_new_object(&json));
        assert_ok(pl_json_set_real(json, "x", values[i]));
        assert_ok(pl_json_text(json, 0, &text));
        pl_json *again = parse(text);
        double x;
        assert_ok(pl_json_get_real(again, "x", &x));
        assert_memory_equal(&values[i], &x, sizeof x);
        assert_true(pl_json_equal(json, again));
        pl_mem_free(text);
        pl_json_free(again);
        pl_json_free(json);
    }
}

static void json_is_read_by_key_and_index(void **state)
{
    (void)state;
    pl_json *json = parse(BUILT);
    const char *text;
    int64_t number;
    double real;
    bool flag;
    const pl_json *list;
    assert_ok(pl_json_get_text(json, "text", &text));
    assert_string_equal("gr\xc3\xbc\xc3\x9f \"x\"\n", text);
    assert_ok(pl_json_get_int(json, "int", INT64_MIN, 0, &number));
    assert_true(number == INT64_MIN);
    assert_ok(pl_json_get_real(json, "real", &real));
    assert_true(real == 0.1);
    assert_ok(pl_json_get_bool(json, "bool", &flag));
    assert_true(flag);
    assert_ok(pl_json_get_array(json, "list", &list));
    assert_int_equal(3, pl_json_length(list));
    assert_ok(pl_json_int_at(list, 0, 1, 1, &number));
    assert_int_equal(1, number);
    assert_string_equal("an object", pl_json_kind(pl_json_at(list, 2)));
    assert_null(pl_json_at(list, 3));
    assert_true(pl_json_has(json, "null"));
    assert_false(pl_json_has(json, "none"));
    assert_int_equal(8, pl_json_length(json));
    pl_json_free(json);
}

static void json_members_come_in_order(void **state)
{
    (void)state;
    pl_json *json = parse("{\"z\":0,\"a\":1,\"m\":2}");
    const char *keys[] = { "z", "a", "m" };
    const char *key;
    const pl_json *value;
    void *walk = NULL;
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(keys[i], pl_json_key_at(json, i));
        assert_true(pl_json_next(json, &walk, &key, &value));
        assert_string_equal(keys[i], key);
        assert_ptr_equal(pl_json_value_at(json, i), value);
    }
    assert_false(pl_json_next(json, &walk, &key, &value));
    assert_null(pl_json_key_at(json, 3));
    assert_null(pl_json_value_at(json, 3));
    pl_json_free(json);
}

static void json_of_another_kind_is_named(void **state)
{
    (void)state;
    pl_json *json = parse("{\"step\":\"x\",\"n\":7,\"l\":[true]}");
    int64_t number;
    const char *text;
    bool flag;
    const pl_json *inner;
    assert_fails(PL_FORMAT, "step: expected an integer, found a string",
                 pl_json_get_int(json, "step", 0, 9, &number));
    assert_fails(PL_FORMAT, "n: 7 is not in 0 .. 6",
                 pl_json_get_int(json, "n", 0, 6, &number));
    assert_fails(PL_FORMAT, "m: missing", pl_json_get_text(json, "m", &text));
    assert_fails(PL_FORMAT, "n: expected true or false, found an integer",
                 pl_json_get_bool(json, "n", &flag));
    assert_fails(PL_FORMAT, "l: expected an object, found an array",
                 pl_json_get_object(json, "l", &inner));
    assert_ok(pl_json_get_array(json, "l", &inner));
    assert_fails(PL_FORMAT, "index 0: number: expected an integer, found true",
                 pl_json_int_at(inner, 0, 0, 1, &number));
    assert_fails(PL_FORMAT, "index 1: missing",
                 pl_json_int_at(inner, 1, 0, 1, &number));
    assert_fails(PL_FORMAT, "expected an object around it, found an array",
                 pl_json_get_int(inner, "x", 0, 1, &number));
    pl_json_free(json);
}

static void json_malformed_is_refused(void **state)
{
    (void)state;
    const char *texts[] = {
        "",
        "{",
        "7",
        "{} x",
        "{\"a\":1,\"a\":2}",
        "{\"a\":\"\\u0000\"}",
        "[\"\xff\"]",
        "[1e999]",
        "[9223372036854775808]",
        "[NaN]",
        "[01]",
    };
    long live = pl_mem_live();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        pl_json *json;
        assert_fails(
            PL_FORMAT, "a.json: line ",
            pl_json_parse(&json, texts[i], strlen(texts[i]), "a.json"));
    }
    char deep[5000];
    memset(deep, '[', sizeof deep);
    pl_json *json;
    assert_fails(PL_FORMAT, "depth",
                 pl_json_parse(&json, deep, sizeof deep, "deep"));
    assert_int_equal(live, pl_mem_live());
}

static void json_text_that_is_not_utf8_is_refused(void **state)
{
    (void)state;
    pl_json *json;
    assert_ok(pl_json_new_object(&json));
    assert_fails(PL_FORMAT, "name: not UTF-8",
                 pl_json_set_text(json, "name", "\xff"));
    assert_fails(PL_FORMAT, "not UTF-8", pl_json_set_int(json, "\xfe", 1));
    assert_int_equal(0, pl_json_length(json));
    pl_json_free(json);
}

static void json_file_is_read_up_to_a_size(void **state)
{
    pl_json *json;
    const char *path = test_path(*state, "a.json");
    assert_ok(pl_file_replace(path, "{\"a\":1}", 7));
    assert_ok(pl_json_read_file(&json, path, 7));
    pl_json_free(json);
    assert_fails(PL_FORMAT, "longer than 6 bytes",
                 pl_json_read_file(&json, path, 6));
    assert_ok(pl_file_replace(path, "{\"a\":}", 6));
    assert_fails(PL_FORMAT, path, pl_json_read_file(&json, path, 7));
}

/* The parser stores long strings in pieces; none may get lost. */
static void json_survives_failed_allocations(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a name of some length, longer than 16 bytes\":"
        "[1,2.5,\"and a text that is longer than a buffer of 16 bytes\","
        "{\"x\":null,\"y\":{}},true,123456789012345678,0.12345678901234567]}";
    pl_json *json;
    assert_survives_failed_allocations(build(&json), pl_json_free(json));
    assert_survives_failed_allocations(
        pl_json_parse(&json, text, strlen(text), "text"), pl_json_free(json));

    pl_json *copy;
    char *again;
    json = parse(text);
    assert_survives_failed_allocations(pl_json_copy(&copy, json),
                                       pl_json_free(copy));
    assert_survives_failed_allocations(pl_json_text(json, 2, &again),
                                       pl_mem_free(again));
    pl_json_free(json);
    assert_int_equal(0, pl_mem_live());
}

/* The library's scanner ran past the end of the text when the buffer of a
 * string could not grow just at its closing quote. */
static void json_survives_a_failure_at_a_closing_quote(void **state)
{
    (void)state;
    for (size_t length = 1; length < 40; length++) {
        char text[64];
        memset(text, 'k', sizeof text);
        text[0] = '[';
        text[1] = text[length + 2] = '"';
        text[length + 3] = ']';
        pl_json *json = NULL;
        assert_survives_failed_allocations(
            pl_json_parse(&json, text, length + 4, "text"), pl_json_free(json));
    }
}

UNIT_TESTS(cmocka_unit_test(json_is_written_in_order_and_reads_back),
           cmocka_unit_test(json_indents),
           cmocka_unit_test(json_reals_read_back_the_same),
           cmocka_unit_test(json_is_read_by_key_and_index),
           cmocka_unit_test(json_members_come_in_order),
           cmocka_unit_test(json_of_another_kind_is_named),
           cmocka_unit_test(json_malformed_is_refused),
           cmocka_unit_test(json_text_that_is_not_utf8_is_refused),
           TEST_IN_FOLDER(json_file_is_read_up_to_a_size),
           cmocka_unit_test(json_survives_failed_allocations),
           cmocka_unit_test(json_survives_a_failure_at_a_closing_quote))
