#include "sync/allreduce/buckets.h"

#include "support/unit.h"

static void buckets_cover_the_block_from_its_end(void **state)
{
    (void)state;
    pl_buckets b;
    pl_bucket got;
    pl_buckets_init(&b, 1000, 300 * 4, 16, 256);
    assert_int_equal(304, b.size); /* whole grains */
    assert_int_equal(4, b.count);
    pl_buckets_begin(&b);
    int64_t end = 1000;
    for (int32_t i = 0; i < b.count; i++) {
        assert_true(pl_buckets_take(&b, 0, &got));
        assert_int_equal(0, got.first % 16);
        assert_int_equal(end, got.first + got.count);
        assert_int_equal(i == b.count - 1, got.last);
        end = got.first;
    }
    assert_int_equal(0, end);
    assert_false(pl_buckets_take(&b, 0, &got));
}

static void buckets_are_given_out_when_they_are_complete(void **state)
{
    (void)state;
    pl_buckets b;
    pl_bucket got;
    pl_buckets_init(&b, 256, 128 * 4, 16, 256);
    for (int step = 0; step < 2; step++) {
        pl_buckets_begin(&b);
        assert_false(pl_buckets_take(&b, 129, &got));
        assert_true(pl_buckets_take(&b, 128, &got));
        assert_int_equal(128, got.first);
        assert_false(pl_buckets_take(&b, 1, &got));
        assert_true(pl_buckets_take(&b, 0, &got));
        assert_int_equal(0, got.first);
    }
}

static void buckets_are_never_more_than_allowed(void **state)
{
    (void)state;
    pl_buckets b;
    pl_buckets_init(&b, 61000000, 1024, 4096, 256);
    assert_true(b.count <= 256);
    assert_int_equal(0, b.size % 4096);
    pl_buckets_init(&b, 10, 1 << 20, 262144, 256);
    assert_int_equal(1, b.count);
}

static void buckets_are_sized_by_the_cost_of_a_sum(void **state)
{
    (void)state;
    /* 100 us and 1 ns a byte: 900 us of bytes make the 100 a tenth. */
    pl_bucket_probe probe = {
        .small_bytes = 100000,
        .large_bytes = 4100000,
        .small_s = 100e-6 + 100e-6,
        .large_s = 100e-6 + 4100e-6,
    };
    int64_t size = pl_buckets_choose(&probe);
    assert_true(size > 890000 && size < 910000);
    probe.small_s = probe.large_s; /* nonsense of a busy machine */
    assert_int_equal(PL_BUCKET_LEAST, pl_buckets_choose(&probe));
    probe.small_s = 0.9, probe.large_s = 1;
    assert_int_equal(PL_BUCKET_MOST, pl_buckets_choose(&probe));
    probe.small_s = 0, probe.large_s = 1;
    assert_int_equal(PL_BUCKET_LEAST, pl_buckets_choose(&probe));
}

UNIT_TESTS(cmocka_unit_test(buckets_cover_the_block_from_its_end),
           cmocka_unit_test(buckets_are_given_out_when_they_are_complete),
           cmocka_unit_test(buckets_are_never_more_than_allowed),
           cmocka_unit_test(buckets_are_sized_by_the_cost_of_a_sum))
