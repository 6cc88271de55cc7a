#include "base/text/duration.h"

#include "support/unit.h"

#include <math.h>

static void hours_are_shown_from_one_hour(void **state)
{
    char text[PL_DURATION];
    (void)state;
    assert_string_equal("0:00", pl_duration_text(0.4, text));
    assert_string_equal("0:01", pl_duration_text(0.5, text));
    assert_string_equal("4:05", pl_duration_text(245, text));
    assert_string_equal("59:59", pl_duration_text(3599.4, text));
    assert_string_equal("1:00:00", pl_duration_text(3599.5, text));
    assert_string_equal("26:00:09", pl_duration_text(26 * 3600 + 9, text));
}

static void invalid_spans_are_handled(void **state)
{
    char text[PL_DURATION];
    (void)state;
    assert_string_equal("0:00", pl_duration_text(-7, text));
    assert_string_equal("0:00", pl_duration_text(NAN, text));
    assert_string_equal("277777:46:40", pl_duration_text(INFINITY, text));
}

UNIT_TESTS(cmocka_unit_test(hours_are_shown_from_one_hour),
           cmocka_unit_test(invalid_spans_are_handled))
