#include "nn/init.h"

#include "support/unit.h"

#include <math.h>

#define OUT   200
#define IN    300
#define COUNT (OUT * IN)

static float data[COUNT];

typedef struct moments {
    double least, most, mean, deviation;
} moments;

/* Fill a matrix [OUT, IN] by `spec` and measure it. */
static moments measure(const char *spec)
{
    assert_ok(pl_init_fill(spec, PL_SHAPE(OUT, IN), 7, "w", data));
    moments m = { INFINITY, -INFINITY, 0, 0 };
    double squares = 0;
    for (int i = 0; i < COUNT; i++) {
        double x = (double)data[i];
        m.least = fmin(m.least, x);
        m.most = fmax(m.most, x);
        m.mean += x / COUNT;
        squares += x * x / COUNT;
    }
    m.deviation = sqrt(squares - m.mean * m.mean);
    return m;
}

static void assert_near(double got, double expected, double limit)
{
    if (!(fabs(got - expected) <= limit))
        fail_msg("%g is not %g", got, expected);
}

/* Even in -amount .. amount, and reaching almost to the ends. */
static void assert_uniform(const char *spec, double amount)
{
    moments m = measure(spec);
    assert_true(m.least >= -amount && m.most <= amount);
    assert_near(m.least, -amount, 1e-3 * amount);
    assert_near(m.most, amount, 1e-3 * amount);
    assert_near(m.mean, 0, 0.01 * amount);
    assert_near(m.deviation, amount / sqrt(3), 0.01 * amount);
}

static void assert_normal(const char *spec, double deviation)
{
    moments m = measure(spec);
    assert_near(m.mean, 0, 0.02 * deviation);
    assert_near(m.deviation, deviation, 0.02 * deviation);
    assert_true(m.most > 3.5 * deviation && m.most < 7 * deviation);
    int within = 0;
    for (int i = 0; i < COUNT; i++)
        within += fabs((double)data[i]) < deviation;
    assert_near((double)within / COUNT, 0.6827, 0.01);
}

static void init_fills_with_constants(void **state)
{
    (void)state;
    moments zeros = measure("zeros"), ones = measure("ones");
    assert_true(zeros.least == 0 && zeros.most == 0);
    assert_true(ones.least == 1 && ones.most == 1);
    moments flat = measure("uniform:0");
    assert_true(flat.least == 0 && flat.most == 0);
}

static void init_draws_from_its_distribution(void **state)
{
    (void)state;
    assert_uniform("uniform:0.25", 0.25);
    assert_uniform("uniform:3e2", 300);
    assert_normal("normal:0.01", 0.01);
    assert_normal("normal:2", 2);
}

/* Glorot and Bengio 2010, eq. 16; He et al. 2015, eq. 10. */
static void init_knows_the_fans_of_a_shape(void **state)
{
    (void)state;
    assert_uniform("glorot", sqrt(6.0 / (IN + OUT)));
    assert_normal("he", sqrt(2.0 / IN));

    /* [out, in, height, width]: each weight counts for all places. */
    const int64_t out = 20, in = 30, places = 9;
    assert_ok(pl_init_fill("glorot", PL_SHAPE(out, in, 3, 3), 7, "w", data));
    double most = 0, limit = sqrt(6.0 / (double)((in + out) * places));
    for (int i = 0; i < 20 * 30 * 9; i++)
        most = fmax(most, fabs((double)data[i]));
    assert_true(most <= limit);
    assert_near(most, limit, 0.01 * limit);
}

static void init_refuses_unknown_specs(void **state)
{
    (void)state;
    const struct {
        const char *spec, *part;
    } bad[] = {
        { "", "init \"\" is unknown" },
        { "zero", "expected zeros, ones, uniform:A" },
        { "Zeros", "is unknown" },
        { "uniform", "is unknown" },
        { "uniform:", "expected a number" },
        { "uniform:x", "expected a number" },
        { "uniform:1x", "expected a number" },
        { "uniform:-1", "not negative" },
        { "uniform:nan", "expected a number" },
        { "normal:inf", "expected a number" },
        { "normal:1 2", "expected a number" },
        { "glorot:1", "is unknown" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        float untouched = 5;
        assert_fails(PL_USAGE, bad[i].part, pl_init_check(bad[i].spec));
        assert_fails(
            PL_USAGE, bad[i].part,
            pl_init_fill(bad[i].spec, PL_SHAPE(1), 1, "w", &untouched));
        assert_true(untouched == 5);
    }
    const char *const good[] = { "zeros",    "ones",   "uniform:1",
                                 "normal:0", "glorot", "he" };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_ok(pl_init_check(good[i]));
}

/* An element is a function of (seed, name, i): a longer parameter begins like
 * a shorter one, and another name or seed is another sequence. */
static void init_depends_on_seed_name_and_place_only(void **state)
{
    (void)state;
    float a[40], b[40], c[40];
    const char *const specs[] = { "uniform:1", "normal:1" };
    for (size_t s = 0; s < 2; s++) {
        assert_ok(pl_init_fill(specs[s], PL_SHAPE(40), 1, "w", a));
        assert_ok(pl_init_fill(specs[s], PL_SHAPE(2, 5), 1, "w", b));
        assert_memory_equal(a, b, sizeof(float[10]));
        assert_ok(pl_init_fill(specs[s], PL_SHAPE(40), 2, "w", b));
        assert_ok(pl_init_fill(specs[s], PL_SHAPE(40), 1, "v", c));
        for (int i = 0; i < 40; i++)
            assert_true(a[i] != b[i] && a[i] != c[i] && b[i] != c[i]);
    }
}

UNIT_TESTS(cmocka_unit_test(init_fills_with_constants),
           cmocka_unit_test(init_draws_from_its_distribution),
           cmocka_unit_test(init_knows_the_fans_of_a_shape),
           cmocka_unit_test(init_refuses_unknown_specs),
           cmocka_unit_test(init_depends_on_seed_name_and_place_only))
