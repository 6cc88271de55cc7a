#include "app/plan/units.h"

#include "support/unit.h"

static void units_of_rates_are_bits(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double bytes_per_s;
    } cases[] = {
        { "1Gbit", 125e6 },       { "100 mbit", 12.5e6 }, { "8kbit/s", 1000 },
        { "2.5Gbit/s", 312.5e6 }, { "unlimited", 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double found = -1;
        assert_ok(pl_units_rate(&found, "link", cases[i].text));
        assert_true(found == cases[i].bytes_per_s);
    }
}

static void units_of_a_rate_are_written_in_usual_notation(void **state)
{
    (void)state;
    char text[PL_UNITS_TEXT];
    assert_string_equal("1 Gbit/s", pl_units_rate_text(125e6, text));
    assert_string_equal("94.12 Mbit/s", pl_units_rate_text(11.765e6, text));
    assert_string_equal("8 kbit/s", pl_units_rate_text(1000, text));
    assert_string_equal("0.4 kbit/s", pl_units_rate_text(50, text));
    assert_string_equal("unlimited", pl_units_rate_text(0, text));
}

static void units_of_times_are_seconds(void **state)
{
    (void)state;
    double found;
    assert_ok(pl_units_time(&found, "rtt", "250us"));
    assert_true(found == 250 * 1e-6);
    assert_ok(pl_units_time(&found, "rtt", "0.5 ms"));
    assert_true(found == 0.5 * 1e-3);
    assert_ok(pl_units_factor(&found, "for", "10x"));
    assert_true(found == 10);
    assert_ok(pl_units_factor(&found, "for", "2.5"));
    assert_true(found == 2.5);
}

static void units_name_the_flag_and_what_was_found(void **state)
{
    (void)state;
    static const char *const wrong[] = { "",         "1",      "fast",
                                         "1GB",      "-1Gbit", "nan gbit",
                                         "inf gbit", "1Gbit x" };
    double found;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(PL_USAGE, "--link: expected a rate",
                     pl_units_rate(&found, "link", wrong[i]));
    assert_fails(PL_USAGE, "found \"2 hours\"",
                 pl_units_time(&found, "rtt", "2 hours"));
    assert_fails(PL_USAGE, "--rtt", pl_units_time(&found, "rtt", "61s"));
    assert_fails(PL_USAGE, "10x", pl_units_factor(&found, "for", "0.5x"));
}

UNIT_TESTS(cmocka_unit_test(units_of_rates_are_bits),
           cmocka_unit_test(units_of_a_rate_are_written_in_usual_notation),
           cmocka_unit_test(units_of_times_are_seconds),
           cmocka_unit_test(units_name_the_flag_and_what_was_found))
