#include "base/record/histogram.h"
#include "support/unit.h"

#include <float.h>
#include <math.h>

/* The bucket that one number goes to. */
static int bucket_of(float value)
{
    pl_histogram one = { 0 };
    pl_histogram_add(&one, &value, 1);
    for (int b = 0; b < PL_HISTOGRAM_BUCKETS; b++)
        if (one.buckets[b] != 0)
            return b;
    return -1;
}

static void histogram_limits_rise(void **state)
{
    (void)state;
    for (int b = 1; b < PL_HISTOGRAM_BUCKETS; b++)
        assert_true(pl_histogram_limit(b) > pl_histogram_limit(b - 1));
    assert_true(pl_histogram_limit(PL_HISTOGRAM_SIDE) == ldexp(1, -40));
    assert_true(pl_histogram_limit(PL_HISTOGRAM_BUCKETS - 1) == ldexp(1, 40));
}

static void histogram_puts_numbers_between_their_limits(void **state)
{
    (void)state;
    for (int exponent = -39; exponent < 40; exponent++)
        for (int part = 0; part < 7; part++) {
            double size = ldexp(1 + part / 7.0, exponent);
            int plus = bucket_of((float)size), minus = bucket_of(-(float)size);
            assert_true((double)(float)size < pl_histogram_limit(plus));
            assert_true((double)(float)size >= pl_histogram_limit(plus - 1));
            assert_true(-(double)(float)size <= pl_histogram_limit(minus));
            assert_int_equal(PL_HISTOGRAM_BUCKETS - 1, plus + minus);
        }
}

static void histogram_keeps_the_extremes(void **state)
{
    (void)state;
    assert_int_equal(PL_HISTOGRAM_SIDE, bucket_of(0));
    assert_int_equal(PL_HISTOGRAM_SIDE, bucket_of(FLT_MIN));
    assert_int_equal(PL_HISTOGRAM_BUCKETS - 1, bucket_of(FLT_MAX));
    assert_int_equal(0, bucket_of(-FLT_MAX));
    assert_int_equal(-1, bucket_of(NAN));
    assert_int_equal(-1, bucket_of(INFINITY));
}

static void histogram_sums_up(void **state)
{
    (void)state;
    pl_histogram h = { 0 };
    const float values[] = { -3, 1, NAN, 4 };
    pl_histogram_add(&h, values, 4);
    assert_int_equal(3, h.count);
    assert_true(h.least == -3 && h.most == 4);
    assert_true(h.sum == 2 && h.sum_squares == 26);
}

static void histogram_knows_the_median_to_a_bucket(void **state)
{
    (void)state;
    pl_histogram h = { 0 };
    assert_true(isnan(pl_histogram_quantile(&h, 0.5)));
    for (int i = 1; i <= 1001; i++)
        pl_histogram_add(&h, &(float) { (float)i * 1e-3f }, 1);
    double median = pl_histogram_quantile(&h, 0.5);
    assert_true(median > 0.5 / 1.2 && median < 0.5 * 1.2);
    double most = pl_histogram_quantile(&h, 1);
    assert_true(most > 1 / 1.2 && most < 1.2);
}

UNIT_TESTS(cmocka_unit_test(histogram_limits_rise),
           cmocka_unit_test(histogram_puts_numbers_between_their_limits),
           cmocka_unit_test(histogram_keeps_the_extremes),
           cmocka_unit_test(histogram_sums_up),
           cmocka_unit_test(histogram_knows_the_median_to_a_bucket))
