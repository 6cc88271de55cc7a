#include "train/loop/first.h"

#include "nn/init.h"
#include "support/unit.h"

#include <string.h>

#define TEXT                                                                   \
    "{\"seed\": \"9\", \"tensors\": [{\"name\": \"w\", \"first\": 0, "         \
    "\"count\": 100, \"init\": \"normal:0.1\"}, {\"name\": \"b\", "            \
    "\"first\": 112, \"count\": 1, \"init\": \"ones\"}]}"

static pl_status fill(const char *text, int64_t first, int64_t count,
                      float *params)
{
    pl_json *description;
    PL_TRY(pl_json_parse(&description, text, strlen(text), "text"));
    pl_status status =
        pl_first_fill(description, (pl_first_range) { first, count }, params);
    pl_json_free(description);
    return status;
}

static void first_parts_are_those_of_the_whole(void **state)
{
    (void)state;
    float whole[128] = { 0 }, weights[100], parts[128];
    assert_ok(fill(TEXT, 0, 128, whole));
    assert_ok(pl_init_fill("normal:0.1", PL_SHAPE(100), 9, "w", weights));
    assert_memory_equal(weights, whole, sizeof weights);
    assert_true(whole[112] == 1.0f && whole[111] == 0.0f);
    for (int64_t cut = 1; cut < 128; cut++) {
        memset(parts, 0xff, sizeof parts);
        assert_ok(fill(TEXT, 0, cut, parts));
        assert_ok(fill(TEXT, cut, 128 - cut, parts + cut));
        assert_memory_equal(whole, parts, sizeof whole);
    }
}

static void first_descriptions_are_not_trusted(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "{}",
        "{\"seed\": \"1\"}",
        "{\"seed\": 1, \"tensors\": []}",
        "{\"seed\": \"1\", \"tensors\": [{\"name\": \"w\"}]}",
        "{\"seed\": \"1\", \"tensors\": [{\"name\": \"w\", \"first\": -1, "
        "\"count\": 4, \"init\": \"ones\"}]}",
        "{\"seed\": \"1\", \"tensors\": [{\"name\": \"w\", \"first\": 0, "
        "\"count\": 9223372036854775807, \"init\": \"ones\"}]}",
    };
    float params[16];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(PL_FORMAT, fill(wrong[i], 0, 16, params));
    assert_fails(PL_USAGE, "init \"some\" is unknown",
                 fill("{\"seed\": \"1\", \"tensors\": [{\"name\": \"w\", "
                      "\"first\": 50, \"count\": 4, \"init\": \"some\"}]}",
                      0, 16, params));
}

UNIT_TESTS(cmocka_unit_test(first_parts_are_those_of_the_whole),
           cmocka_unit_test(first_descriptions_are_not_trusted))
