#include "support/unit.h"

#include "app/sweep/spec.h"

static void assert_read(const char *text, const char *expected)
{
    pl_json *spec;
    char *json;
    assert_ok(pl_sweep_spec_parse(&spec, text, "file"));
    assert_ok(pl_json_text(spec, 0, &json));
    assert_string_equal(expected, json);
    pl_mem_free(json);
    pl_json_free(spec);
}

static void files_are_read(void **state)
{
    (void)state;
    assert_read("# what this is\n\nmodel softmax\nflags --lr 0.1\n"
                "  flags --data 'idx:a b'\r\ngrid batch=1,2 mode=sync\n"
                "grid lr=\"0.5\"\nrepeat 3",
                "{\"model\":\"softmax\",\"flags\":[\"--lr\",\"0.1\",\"--data\","
                "\"idx:a b\"],\"repeat\":3,\"grids\":[{\"batch\":[\"1\",\"2\"],"
                "\"mode\":[\"sync\"]},{\"lr\":[\"0.5\"]}]}");
    assert_read("grid\nmodel m\n", "{\"model\":\"m\",\"flags\":[],\"repeat\":1,"
                                   "\"grids\":[{}]}");
    assert_read("model m\ngrid\nexperiment A1 'What is it?'\n"
                "data mnist --train-examples 9\n",
                "{\"model\":\"m\",\"flags\":[],\"repeat\":1,\"grids\":[{}],"
                "\"experiment\":{\"id\":\"A1\",\"question\":\"What is it?\"},"
                "\"data\":{\"kind\":\"mnist\",\"flags\":"
                "[\"--train-examples\",\"9\"]}}");
}

static void published_values_are_read(void **state)
{
    (void)state;
    assert_read("model m\ngrid\n"
                "published seconds machine mode=sync workers=2 1.5 ?\n",
                "{\"model\":\"m\",\"flags\":[],\"repeat\":1,\"grids\":[{}],"
                "\"published\":[{\"at\":\"file:3\",\"result\":\"seconds\","
                "\"machine\":true,\"where\":{\"mode\":\"sync\",\"workers\":"
                "\"2\"},\"values\":[\"1.5\",\"?\"]}]}");
}

static void a_quick_line_is_read(void **state)
{
    (void)state;
    assert_read("model m\ngrid a=1,2\nquick --epochs 2 a=1 --b=3\n",
                "{\"model\":\"m\",\"flags\":[],\"repeat\":1,\"grids\":[{\"a\":"
                "[\"1\",\"2\"]}],\"quick\":{\"flags\":[\"--epochs\",\"2\","
                "\"--b=3\"],\"grid\":{\"a\":[\"1\"]}}}");
}

static void wrong_lines_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "", "no model" },
        { "model m\n", "no grid" },
        { "modle m\n", "file:1: \"modle\": expected model" },
        { "\n\nwhat ever\n", "file:3: \"what\": expected model, flags" },
        { "model\n", "file:1: model: expected its name" },
        { "model a\nmodel b\n", "file:2: a second model" },
        { "model a --lr 1\n", "file:1: \"--lr\" after the model" },
        { "grid batch\n", "file:1: \"batch\": expected FLAG=VALUE" },
        { "grid =1\n", "expected FLAG=VALUE" },
        { "grid a=\n", "expected FLAG=VALUE" },
        { "grid a=1,,2\n", "a: an empty value" },
        { "grid a=1, b=2\n", "a: an empty value" },
        { "grid a=1 a=2\n", "a appears twice" },
        { "flags 'a\n", "the quote ' is not closed" },
        { "repeat 0\n", "expected a number from 1" },
        { "repeat x\n", "expected a number" },
        { "repeat 2 3\n", "expected a number" },
        { "repeat\n", "expected a number" },
        { "experiment A1\n", "file:1: experiment: expected ID" },
        { "experiment A1 b c\n", "experiment: expected ID" },
        { "experiment A1 b\nexperiment A1 b\n", "file:2: a second" },
        { "data\n", "file:1: data: expected the kind of --data before" },
        { "data mnist:here\n", "data: expected the kind of --data before" },
        { "data a\ndata a\n", "file:2: a second line data" },
        { "quick\n", "file:1: quick: expected flags" },
        { "quick a=1,,2\n", "a: an empty value" },
        { "quick --a\nquick --a\n", "file:2: a second line quick" },
        { "published\n", "file:1: published: expected RESULT VALUE" },
        { "published steps\n", "published: expected RESULT VALUE" },
        { "published second 1\n", "\"second\" is not a result (did you mean "
                                  "seconds?)" },
        { "\npublished steps 1 x\n", "file:2: \"x\": expected a number" },
        { "published steps 1%%\n", "\"1%%\": expected a number" },
        { "published steps inf\n", "\"inf\": expected a number" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_json *spec;
        assert_fails(PL_USAGE, cases[i].message,
                     pl_sweep_spec_parse(&spec, cases[i].text, "file"));
    }
    pl_json *spec;
    assert_fails(PL_USAGE, "--grid: \"x\"",
                 pl_sweep_spec_grid(&spec, "m", "x"));
}

static void reading_survives_failed_allocations(void **state)
{
    (void)state;
    pl_json *spec;
    assert_survives_failed_allocations(
        pl_sweep_spec_parse(&spec, "model m\nflags --a b\ngrid c=1,2\n", "f"),
        pl_json_free(spec));
    assert_survives_failed_allocations(pl_sweep_spec_grid(&spec, "m", "a=1,2"),
                                       pl_json_free(spec));
}

UNIT_TESTS(cmocka_unit_test(files_are_read),
           cmocka_unit_test(published_values_are_read),
           cmocka_unit_test(a_quick_line_is_read),
           cmocka_unit_test(wrong_lines_are_named),
           cmocka_unit_test(reading_survives_failed_allocations))
