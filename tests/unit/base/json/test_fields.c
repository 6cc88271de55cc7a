#include "support/fields.h"

#include "support/unit.h"

#include <math.h>

static pl_json *parse(const char *text)
{
    pl_json *json;
    assert_ok(pl_json_parse(&json, text, strlen(text), "text"));
    return json;
}

static void assert_same_again(const char *text)
{
    pl_json *json = parse(text);
    sample s;
    char *again;
    assert_ok(pl_fields_read(&sample_fields, json, &s));
    assert_ok(pl_fields_text(&sample_fields, &s, 0, &again));
    assert_string_equal(text, again);
    pl_mem_free(again);
    pl_fields_close(&sample_fields, &s);
    pl_json_free(json);
    assert_int_equal(0, pl_mem_live());
}

static void fields_read_and_write_the_same_text(void **state)
{
    (void)state;
    assert_same_again(SAMPLE_FULL);
    assert_same_again(SAMPLE_SMALL);
}

static void fields_of_every_kind_are_read(void **state)
{
    (void)state;
    pl_json *json = parse(SAMPLE_FULL);
    sample s;
    assert_ok(pl_fields_read(&sample_fields, json, &s));
    assert_true(s.on && s.has_nested && s.has_extra);
    assert_int_equal(-5, s.small);
    assert_true(s.large == INT64_MAX);
    assert_int_equal(-1, s.unknown);
    assert_true(s.real == 0.25 && s.rate == 2);
    assert_int_equal(0xbeef, s.crc);
    assert_true(s.id == 0xdeadbeef);
    assert_string_equal("worker1", s.host);
    assert_string_equal("a\nb", s.text);
    assert_null(s.mode);
    assert_string_equal("why", s.error);
    assert_int_equal(SAMPLE_BLUE, s.color);
    assert_int_equal(-1, (int)s.paint);
    assert_true(isnan(s.score.loss) && s.score.auc == 0.5);
    assert_true(s.nested.loss == 1 && isnan(s.nested.auc));
    assert_int_equal(2, s.entry_count);
    assert_null(s.entries[0].note);
    assert_int_equal(99, s.entries[1].index);
    assert_string_equal("n", s.entries[1].note);
    assert_int_equal(2, s.word_count);
    assert_string_equal("two", s.words[1].text);
    assert_true(pl_json_has(s.settings, "a"));
    assert_int_equal(1, pl_json_length(s.list));
    pl_fields_close(&sample_fields, &s);
    pl_json_free(json);
}

/* The value of `key` in SAMPLE_SMALL becomes `value`; NULL takes it out. */
static pl_json *changed(const char *key, const char *value)
{
    pl_json *json = parse(SAMPLE_SMALL), *out, *one;
    const char *name;
    const pl_json *old;
    void *walk = NULL;
    char text[256];
    assert_ok(pl_json_new_object(&out));
    while (pl_json_next(json, &walk, &name, &old))
        if (strcmp(name, key) != 0) {
            assert_ok(pl_json_copy(&one, old));
            assert_ok(pl_json_set_take(out, name, one));
        }
    pl_json_free(json);
    if (value == NULL)
        return out;
    snprintf(text, sizeof text, "[%s]", value);
    json = parse(text);
    assert_ok(pl_json_copy(&one, pl_json_at(json, 0)));
    assert_ok(pl_json_set_take(out, key, one));
    pl_json_free(json);
    return out;
}

static void fields_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *sentence;
    } cases[] = {
        { "on", NULL, "on: missing" },
        { "on", "1", "on: expected true or false, found an integer" },
        { "small", "6", "small: 6 is not in -5 .. 5" },
        { "large", "-1", "large: -1 is not in 0 .. 9223372036854775807" },
        { "large", "1.0", "large: expected an integer, found a real number" },
        { "unknown", "[]",
          "unknown: expected an integer or null, found an array" },
        { "real", "null", "real: expected a number, found null" },
        { "crc", "\"beef\"", "crc: expected 8 hexadecimal digits, found beef" },
        { "crc", "\"0000BEEF\"",
          "crc: expected 8 hexadecimal digits, found 0000BEEF" },
        { "id", "3", "id: expected a string, found an integer" },
        { "host", "\"worker-1\"", "host: 8 bytes, expected at most 7" },
        { "text", "null", "text: expected a string, found null" },
        { "error", "{}", "error: expected a string, found an object" },
        { "color", "\"pink\"",
          "color: expected red, green or blue, found "
          "pink" },
        { "color", "null", "color: expected a string, found null" },
        { "loss", "true", "loss: expected a number or null, found true" },
        { "nested", "[]", "nested: expected an object, found an array" },
        { "nested", "{}", "nested: loss: missing" },
        { "entries", "{}", "entries: expected an array, found an object" },
        { "entries", "[{},{},{},{}]", "entries: 4 entries, expected 0 .. 3" },
        { "entries", "[{\"index\":1,\"note\":\"x\"},{\"index\":100}]",
          "entries: index 1: index: 100 is not in 0 .. 99" },
        { "entries", "[3]",
          "entries: index 0: expected an object, found an integer" },
        { "words", "[\"a\", 1]",
          "words: index 1: value: expected a string, found an integer" },
        { "settings", "[]", "settings: expected an object, found an array" },
        { "list", "{}", "list: expected an array, found an object" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_json *json = changed(cases[i].key, cases[i].value);
        sample s;
        assert_fails(PL_FORMAT, cases[i].sentence,
                     pl_fields_read(&sample_fields, json, &s));
        pl_json_free(json);
        assert_int_equal(0, pl_mem_live());
    }
    pl_json *list = parse("[]");
    sample s;
    assert_fails(PL_FORMAT, "expected an object, found an array",
                 pl_fields_read(&sample_fields, list, &s));
    pl_json_free(list);
}

static void fields_may_be_missing_or_unknown_to_the_table(void **state)
{
    (void)state;
    pl_json *json = changed("rate", NULL);
    sample s;
    assert_ok(pl_json_set_text(json, "of a newer version", "x"));
    assert_ok(pl_fields_read(&sample_fields, json, &s));
    assert_true(s.rate == 0);
    assert_false(s.has_nested || s.has_extra);
    assert_null(s.error);
    assert_true(isnan(s.score.auc) && isnan(s.nested.loss));
    pl_fields_close(&sample_fields, &s);
    pl_json_free(json);
}

static void fields_are_parsed_from_text(void **state)
{
    (void)state;
    static const char text[] = "{\"index\":3,\"note\":\"n\"}";
    sample_entry entry;
    assert_ok(pl_fields_parse(&sample_entry_fields, text, strlen(text), "entry",
                              &entry));
    assert_int_equal(3, entry.index);
    assert_string_equal("n", entry.note);
    pl_fields_close(&sample_entry_fields, &entry);
    assert_fails(
        PL_FORMAT, "entry: index: missing",
        pl_fields_parse(&sample_entry_fields, "{}", 2, "entry", &entry));
    assert_fails(
        PL_FORMAT, "entry: line 1",
        pl_fields_parse(&sample_entry_fields, "{", 1, "entry", &entry));
    assert_int_equal(0, pl_mem_live());
}

static void fields_are_found_by_name(void **state)
{
    (void)state;
    pl_json *json = parse(SAMPLE_FULL);
    sample s;
    assert_ok(pl_fields_read(&sample_fields, json, &s));
    assert_true(pl_fields_number(&sample_fields, &s, "small") == -5);
    assert_true(pl_fields_number(&sample_fields, &s, "real") == 0.25);
    assert_true(pl_fields_number(&sample_fields, &s, "auc") == 0.5);
    assert_true(isnan(pl_fields_number(&sample_fields, &s, "unknown")));
    assert_true(isnan(pl_fields_number(&sample_fields, &s, "text")));
    assert_true(isnan(pl_fields_number(&sample_fields, &s, "none")));
    pl_fields_close(&sample_fields, &s);
    pl_json_free(json);
}

static void fields_are_added_to_an_object(void **state)
{
    (void)state;
    sample_entry entry = { .index = 3 };
    pl_json *json = parse("{\"a\":1}");
    char *text;
    assert_ok(pl_fields_add(&sample_entry_fields, &entry, json));
    assert_ok(pl_json_text(json, 0, &text));
    assert_string_equal("{\"a\":1,\"index\":3}", text);
    pl_mem_free(text);
    pl_json_free(json);
}

static void fields_that_are_not_utf8_are_refused(void **state)
{
    (void)state;
    sample_entry entry = { .note = (char *)"\xff" };
    pl_json *json;
    assert_fails(PL_FORMAT, "note: not UTF-8 text",
                 pl_fields_write(&sample_entry_fields, &entry, &json));
    assert_int_equal(0, pl_mem_live());
}

static void fields_survive_each_failed_allocation(void **state)
{
    (void)state;
    pl_json *json = parse(SAMPLE_FULL), *again;
    sample s;
    assert_survives_failed_allocations(pl_fields_read(&sample_fields, json, &s),
                                       pl_fields_close(&sample_fields, &s));
    assert_ok(pl_fields_read(&sample_fields, json, &s));
    assert_survives_failed_allocations(
        pl_fields_write(&sample_fields, &s, &again), pl_json_free(again));
    pl_fields_close(&sample_fields, &s);
    pl_fields_close(&sample_fields, &s); /* a zeroed one is fine */
    pl_json_free(json);
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(cmocka_unit_test(fields_read_and_write_the_same_text),
           cmocka_unit_test(fields_of_every_kind_are_read),
           cmocka_unit_test(fields_that_do_not_fit_are_refused),
           cmocka_unit_test(fields_may_be_missing_or_unknown_to_the_table),
           cmocka_unit_test(fields_are_parsed_from_text),
           cmocka_unit_test(fields_are_found_by_name),
           cmocka_unit_test(fields_are_added_to_an_object),
           cmocka_unit_test(fields_that_are_not_utf8_are_refused),
           cmocka_unit_test(fields_survive_each_failed_allocation))
