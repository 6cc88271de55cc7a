#include "base/rng.h"

#include "support/unit.h"

#include <math.h>

#define DRAWS 200000

/* These values are a promise: a changed one makes every recorded run, data
 * order and initial weight a different one. */
static void rng_golden_values_stay(void **state)
{
    (void)state;
    assert_true(pl_rng_key(1, 2) == 0xf893a2eefb32555eu);
    assert_true(pl_rng_key_text(1, "shuffle") == 0x3ef466afd43d3f17u);
    assert_true(pl_rng_u64(42, 0) == 0x36cdb0593534a37bu);
    assert_true(pl_rng_u64(42, 1000000007) == 0xd5896929170f6fe3u);
    assert_int_equal(2, pl_rng_below(42, 0, 10));
    assert_int_equal(44244, pl_rng_below(42, 5, 60000));
    assert_true(pl_rng_uniform(42, 0) == 0.21407606294561043);
    assert_true(fabs(pl_rng_normal(42, 0) - -0.080645797602982891) < 1e-14);
    assert_true(fabs(pl_rng_normal(42, 1) - -0.4454463065247401) < 1e-14);
}

static void rng_golden_permutations_stay(void **state)
{
    (void)state;
    static const uint32_t ten[] = { 1, 5, 4, 2, 0, 7, 9, 6, 8, 3 };
    static const uint32_t first[] = { 9995, 39825, 3444, 35129, 27605 };
    static const uint32_t last[] = { 1971910394u, 1445068616u };
    uint32_t out[10];
    pl_rng_permute(42, 10, 0, 10, out);
    assert_memory_equal(ten, out, sizeof ten);
    pl_rng_permute(42, 60000, 0, 5, out);
    assert_memory_equal(first, out, sizeof first);
    pl_rng_permute(42, (uint64_t)1 << 32, 0xfffffffeu, 2, out);
    assert_memory_equal(last, out, sizeof last);
}

static void rng_keys_differ_by_seed_and_purpose(void **state)
{
    (void)state;
    uint64_t keys[400];
    size_t count = 0;
    for (uint64_t seed = 0; seed < 20; seed++)
        for (uint64_t purpose = 0; purpose < 20; purpose++)
            keys[count++] = pl_rng_key(seed, purpose);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(keys[i] != keys[j]);
    assert_true(pl_rng_key_text(1, "init") != pl_rng_key_text(1, "shuffle"));
    assert_true(pl_rng_key_text(1, "init") != pl_rng_key_text(2, "init"));
}

static void rng_below_covers_its_range_evenly(void **state)
{
    (void)state;
    int counts[7] = { 0 };
    for (uint64_t i = 0; i < 70000; i++) {
        uint32_t value = pl_rng_below(5, i, 7);
        assert_in_range(value, 0, 6);
        counts[value]++;
    }
    for (int i = 0; i < 7; i++) /* 10000 expected; deviation 93 */
        assert_in_range(counts[i], 10000 - 500, 10000 + 500);
    assert_int_equal(0, pl_rng_below(5, 1, 1));
}

static void rng_uniform_has_the_moments_of_its_law(void **state)
{
    (void)state;
    double sum = 0, squares = 0, products = 0, last = 0.5;
    for (uint64_t i = 0; i < DRAWS; i++) {
        double u = pl_rng_uniform(11, i);
        assert_true(u >= 0 && u < 1);
        sum += u;
        squares += (u - 0.5) * (u - 0.5);
        products += (u - 0.5) * (last - 0.5);
        last = u;
    }
    /* Limits of about five standard errors. */
    assert_true(fabs(sum / DRAWS - 0.5) < 0.0033);
    assert_true(fabs(squares / DRAWS - 1.0 / 12) < 0.0009);
    assert_true(fabs(products / DRAWS) < 0.001);
}

static void rng_normal_has_the_moments_of_its_law(void **state)
{
    (void)state;
    double moments[5] = { 0 };
    for (uint64_t i = 0; i < DRAWS; i++) {
        double x = pl_rng_normal(pl_rng_key(3, 4), i), power = 1;
        assert_true(isfinite(x));
        for (int m = 0; m < 5; m++, power *= x)
            moments[m] += power / DRAWS;
    }
    assert_true(fabs(moments[1]) < 0.012);
    assert_true(fabs(moments[2] - 1) < 0.016);
    assert_true(fabs(moments[3]) < 0.045);
    assert_true(fabs(moments[4] - 3) < 0.12);
}

static void rng_permute_hits_every_number_once(void **state)
{
    (void)state;
    static const uint32_t sizes[] = { 1,    2,     3,     4,     5,    15,  16,
                                      17,   63,    64,    65,    255,  256, 257,
                                      1000, 60000, 65535, 65536, 65537 };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        uint32_t n = sizes[s];
        uint32_t *out = pl_mem_alloc(n, sizeof *out);
        bool *hit = pl_mem_alloc(n, sizeof *hit);
        pl_rng_permute(pl_rng_key(n, 1), n, 0, n, out);
        for (uint32_t i = 0; i < n; i++) {
            assert_true(out[i] < n);
            assert_false(hit[out[i]]);
            hit[out[i]] = true;
        }
        pl_mem_free(out);
        pl_mem_free(hit);
    }
}

static void rng_permute_in_slices_is_the_same_as_at_once(void **state)
{
    (void)state;
    static const uint32_t sizes[] = { 1, 2, 5, 17, 1000, 60000 };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        uint32_t n = sizes[s];
        uint32_t *whole = pl_mem_alloc(n, sizeof *whole);
        uint32_t *parts = pl_mem_alloc(n, sizeof *parts);
        pl_rng_permute(9, n, 0, n, whole);
        for (uint32_t first = 0, count = 0; first < n;
             first += count, count = count * 2 + 1) {
            uint32_t take = count < n - first ? count : n - first;
            pl_rng_permute(9, n, first, take, parts + first);
        }
        assert_memory_equal(whole, parts, n * sizeof *whole);
        pl_rng_permute(9, n, n, 0, NULL); /* nothing, behind the last */
        pl_mem_free(whole);
        pl_mem_free(parts);
    }
}

static void rng_permute_depends_on_the_key(void **state)
{
    (void)state;
    uint32_t a[1000], b[1000];
    int same = 0;
    pl_rng_permute(pl_rng_key(1, 0), 1000, 0, 1000, a);
    pl_rng_permute(pl_rng_key(1, 1), 1000, 0, 1000, b);
    for (int i = 0; i < 1000; i++)
        same += a[i] == b[i];
    assert_true(same < 20); /* one expected */
}

/* Over many keys each position takes each value equally often: also for the
 * small n, where a network of few bits would show its structure. */
static void rng_permute_favours_no_position(void **state)
{
    (void)state;
    enum {
        KEYS = 20000,
        MOST = 20
    };
    static const uint32_t sizes[] = { 2, 3, 5, 6, 10, 17, 20 };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        uint32_t n = sizes[s], out[MOST];
        double counts[MOST][MOST] = { { 0 } };
        for (uint64_t k = 0; k < KEYS; k++) {
            pl_rng_permute(pl_rng_key(7, k), n, 0, n, out);
            for (uint32_t i = 0; i < n; i++)
                counts[i][out[i]]++;
        }
        double expected = (double)KEYS / n;
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++)
                assert_true(fabs(counts[i][j] - expected) < 5 * sqrt(expected));
    }
}

UNIT_TESTS(cmocka_unit_test(rng_golden_values_stay),
           cmocka_unit_test(rng_golden_permutations_stay),
           cmocka_unit_test(rng_keys_differ_by_seed_and_purpose),
           cmocka_unit_test(rng_below_covers_its_range_evenly),
           cmocka_unit_test(rng_uniform_has_the_moments_of_its_law),
           cmocka_unit_test(rng_normal_has_the_moments_of_its_law),
           cmocka_unit_test(rng_permute_hits_every_number_once),
           cmocka_unit_test(rng_permute_in_slices_is_the_same_as_at_once),
           cmocka_unit_test(rng_permute_depends_on_the_key),
           cmocka_unit_test(rng_permute_favours_no_position))
