#include "train/compute/sparse_sum.h"

#include "base/mem.h"
#include "base/rng.h"
#include "support/unit.h"

#define IDS 200

/* The same by a table of all ids. */
static void sum_of_three_is_that_of_a_full_table(void **state)
{
    (void)state;
    pl_sparse_sum sum = { .room = 0 };
    for (uint64_t round = 0; round < 20; round++) {
        float full[IDS] = { 0 };
        bool has[IDS] = { false };
        pl_sparse_sum_clear(&sum);
        for (uint64_t term = 0; term < 3; term++) {
            uint64_t ids[IDS];
            float values[IDS];
            pl_keys keys = { ids, 0 };
            for (uint64_t id = 0; id < IDS; id++) {
                uint64_t key = round * 3 + term;
                /* The last rounds have terms without any key. */
                if (pl_rng_below(key, id, 20) >= 19 - round)
                    continue;
                ids[keys.count] = id;
                values[keys.count] = (float)pl_rng_normal(key, IDS + id);
                full[id] = has[id] ? full[id] + values[keys.count]
                                   : values[keys.count];
                has[id] = true;
                keys.count++;
            }
            assert_ok(pl_sparse_sum_put(&sum, &keys, values));
        }
        pl_sparse_sum_scale(&sum, 1.0f / 3);
        int64_t k = 0;
        for (uint64_t id = 0; id < IDS; id++) {
            if (!has[id])
                continue;
            assert_true(k < sum.keys.count && sum.keys.ids[k] == id);
            float expected = full[id] * (1.0f / 3);
            assert_memory_equal(&expected, &sum.values[k], sizeof expected);
            k++;
        }
        assert_int_equal(k, sum.keys.count);
    }
    pl_sparse_sum_close(&sum);
}

static void sum_survives_each_failed_allocation(void **state)
{
    (void)state;
    static const uint64_t ids[] = { 1, 5, 9 };
    static const float values[] = { 1, 2, 3 };
    pl_keys keys = { ids, 3 };
    bool failed = true;
    for (long nth = 0; failed; nth++) {
        pl_sparse_sum sum = { .room = 0 };
        pl_mem_fail_at(nth);
        pl_status status = pl_sparse_sum_put(&sum, &keys, values);
        failed = pl_mem_fail_off();
        assert_int_equal(failed ? PL_NOMEM : PL_OK, status);
        pl_sparse_sum_close(&sum);
    }
    assert_int_equal(0, pl_mem_live());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sum_of_three_is_that_of_a_full_table),
        cmocka_unit_test(sum_survives_each_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
