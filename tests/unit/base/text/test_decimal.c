#include "base/rng.h"
#include "base/text/decimal.h"

#include "support/unit.h"

#include <math.h>
#include <stdlib.h>

static void assert_text(const char *expected, double value)
{
    char text[PL_DECIMAL];
    size_t length = pl_decimal_text(value, text);
    assert_string_equal(expected, text);
    assert_int_equal(strlen(expected), length);
}

static void whole_numbers_are_written_in_full(void **state)
{
    (void)state;
    assert_text("0", 0);
    assert_text("0", -0.0);
    assert_text("7", 7);
    assert_text("-120", -120);
    assert_text("1234567", 1234567);
    assert_text("999999999999999", 999999999999999);
}

static void other_numbers_have_six_digits(void **state)
{
    (void)state;
    assert_text("0.5", 0.5);
    assert_text("-0.25", -0.25);
    assert_text("0.333333", 1.0 / 3);
    assert_text("12345.7", 12345.678);
    assert_text("123457", 123456.7);
    assert_text("1000000", 999999.7);
    assert_text("0.000123457", 0.000123456789);
    assert_text("0.001", 0.00099999999);
    assert_text("10", 9.9999999);
    assert_text("1.23457e-05", 0.0000123456789);
    assert_text("1e+20", 1e20);
    assert_text("-1.79769e+308", -1.7976931348623157e308);
    assert_text("4.94066e-324", 4.9406564584124654e-324);
}

/* Read back, no number is off by more than half of its sixth digit. */
static void numbers_are_as_near_as_by_printf(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 200000; i++) {
        char text[PL_DECIMAL];
        double value = (2 * pl_rng_uniform(1, i) - 1) *
                       pow(10, 24 * pl_rng_uniform(2, i) - 12);
        assert_true(pl_decimal_text(value, text) < PL_DECIMAL);
        double error = fabs(strtod(text, NULL) - value);
        if (!(error <= 5.0001e-6 * fabs(value)))
            fail_msg("%.17g became %s", value, text);
    }
}

UNIT_TESTS(cmocka_unit_test(whole_numbers_are_written_in_full),
           cmocka_unit_test(other_numbers_have_six_digits),
           cmocka_unit_test(numbers_are_as_near_as_by_printf))
