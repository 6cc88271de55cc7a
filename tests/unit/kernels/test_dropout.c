#include "support/kernels.h"

#define MOST 2000

/* Wherever a range begins and ends, on every table. */
static void dropout_keeps_what_the_reference_keeps(void **state)
{
    (void)state;
    static float src[MOST], expected[MOST];
    draw_all(src, MOST, -2, 2);
    guard g = guard_make(MOST);
    for (int round = 0; round < 400; round++) {
        int64_t n = draw_int(1, round < 200 ? 100 : MOST);
        pl_mask mask = {
            .key = (uint64_t)draw_int(0, 1 << 30),
            .first = draw_int(0, round % 2 == 0 ? 100 : 1 << 30) * 37,
            .least = (uint32_t)draw_int(0, 65535),
            .scale = 1.25f,
        };
        reference_table()->dropout(n, &mask, src, expected);
        FOR_EACH_TABLE(table)
        {
            float *dst = guard_floats(&g, n);
            table->dropout(n, &mask, src, dst);
            assert_memory_equal(expected, dst, (size_t)n * sizeof *dst);
            guard_check(&g);
            dst = guard_copy(&g, src, n); /* in place */
            table->dropout(n, &mask, dst, dst);
            assert_memory_equal(expected, dst, (size_t)n * sizeof *dst);
        }
    }
    guard_drop(&g);
}

/* However a mask is cut, the pieces are those of the whole. */
static void dropout_of_parts_is_that_of_the_whole(void **state)
{
    (void)state;
    static float src[MOST], whole[MOST], parts[MOST];
    draw_all(src, MOST, -2, 2);
    pl_mask mask = { .key = 7, .first = 11, .least = 20000, .scale = 2 };
    FOR_EACH_TABLE(table)
    {
        table->dropout(MOST, &mask, src, whole);
        for (int64_t at = 0, n; at < MOST; at += n) {
            pl_mask part = mask;
            part.first += at;
            n = draw_int(1, 70);
            n = n < MOST - at ? n : MOST - at;
            table->dropout(n, &part, src + at, parts + at);
        }
        assert_memory_equal(whole, parts, sizeof whole);
    }
}

UNIT_TESTS(cmocka_unit_test(dropout_keeps_what_the_reference_keeps),
           cmocka_unit_test(dropout_of_parts_is_that_of_the_whole))
