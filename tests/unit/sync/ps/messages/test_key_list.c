#include "sync/ps/messages/key_list.h"

#include "base/rng.h"
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#define MOST 1000

/* `count` keys that rise by 1 to `gap`, from `first` on. */
static void make_keys(int64_t count, uint64_t first, uint32_t gap,
                      uint64_t *keys)
{
    uint64_t next = first;
    for (int64_t i = 0; i < count; i++) {
        keys[i] = next + pl_rng_below((uint64_t)count, (uint64_t)i, gap);
        next = keys[i] + 1;
    }
}

static void key_list_round_trips(void **state)
{
    (void)state;
    static const uint32_t gaps[] = { 1, 2, 31, 13000, 1u << 31 };
    uint64_t keys[MOST], read[MOST];
    uint8_t *bytes = malloc(pl_key_list_room(MOST));
    assert_non_null(bytes);
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++)
        for (int64_t count = 0; count <= MOST; count += count < 70 ? 1 : 93) {
            uint64_t first = g * 1000;
            size_t used;
            make_keys(count, first, gaps[g], keys);
            size_t wrote = pl_key_list_write(count, keys, first, bytes);
            assert_true(wrote <= pl_key_list_room(count));
            /* Of exactly its size, so that a read beyond it is seen. */
            uint8_t *exact = malloc(wrote > 0 ? wrote : 1);
            assert_non_null(exact);
            memcpy(exact, bytes, wrote);
            uint64_t limit = count > 0 ? keys[count - 1] - first + 1 : 0;
            assert_ok(
                pl_key_list_read(count, exact, wrote, limit, read, &used));
            assert_int_equal(wrote, used);
            for (int64_t i = 0; i < count; i++)
                assert_true(read[i] == keys[i] - first);
            if (count > 0)
                assert_int_equal(PL_FORMAT,
                                 pl_key_list_read(count, exact, wrote,
                                                  limit - 1, read, &used));
            free(exact);
        }
    free(bytes);
}

static void key_list_of_a_batch_takes_two_bytes_a_key(void **state)
{
    (void)state;
    uint64_t keys[MOST];
    uint8_t *bytes = malloc(pl_key_list_room(MOST));
    assert_non_null(bytes);
    make_keys(MOST, 0, 2 * 13500, keys); /* 2500 of 33,762,578 */
    size_t wrote = pl_key_list_write(MOST, keys, 0, bytes);
    assert_in_range(wrote, MOST, 2 * MOST);
    free(bytes);
}

static void key_list_cut_short_is_refused(void **state)
{
    (void)state;
    uint64_t keys[100], read[100];
    uint8_t bytes[1024];
    size_t used;
    make_keys(100, 0, 500, keys);
    size_t wrote = pl_key_list_write(100, keys, 0, bytes);
    for (size_t cut = 0; cut < wrote; cut++)
        assert_int_equal(
            PL_FORMAT, pl_key_list_read(100, bytes, cut, 100000, read, &used));
    /* What lies behind is not its own. */
    assert_ok(pl_key_list_read(100, bytes, wrote + 9, 100000, read, &used));
    assert_int_equal(wrote, used);
}

static void key_list_with_too_wide_a_block_is_refused(void **state)
{
    (void)state;
    uint8_t bytes[512] = { 49 };
    uint64_t read[32];
    size_t used;
    assert_int_equal(PL_FORMAT,
                     pl_key_list_read(32, bytes, sizeof bytes, PL_KEY_LIST_MOST,
                                      read, &used));
    bytes[0] = 48;
    assert_ok(pl_key_list_read(32, bytes, sizeof bytes, PL_KEY_LIST_MOST, read,
                               &used));
    assert_true(read[31] == 31);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(key_list_round_trips),
        cmocka_unit_test(key_list_of_a_batch_takes_two_bytes_a_key),
        cmocka_unit_test(key_list_cut_short_is_refused),
        cmocka_unit_test(key_list_with_too_wide_a_block_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
