#include "support/folder.h"

#include "base/file/spill.h"

#include <errno.h>

static pl_status write_and_map(const char *folder, pl_map *map)
{
    pl_spill spill;
    PL_TRY(pl_spill_init(&spill, folder));
    pl_status status = pl_spill_put(&spill, "hello ", 6);
    if (status == PL_OK)
        status = pl_spill_put(&spill, "you", 3);
    if (status == PL_OK)
        status = pl_spill_map(&spill, map);
    pl_spill_close(&spill);
    return status;
}

static void spill_round_trips(void **state)
{
    const char *folders[] = { NULL, test_path(*state, "made") };
    for (int i = 0; i < 2; i++) {
        pl_map map;
        assert_ok(write_and_map(folders[i], &map));
        assert_int_equal(9, map.bytes);
        assert_memory_equal("hello you", map.data, 9);
        pl_map_close(&map);
    }
    char **names;
    size_t count;
    assert_ok(pl_file_list(&names, &count, folders[1]));
    assert_int_equal(0, count);
    pl_mem_free(names);
}

static void spill_may_stay_empty(void **state)
{
    (void)state;
    pl_spill spill;
    pl_map map;
    assert_ok(pl_spill_init(&spill, NULL));
    assert_ok(pl_spill_map(&spill, &map));
    assert_int_equal(0, map.bytes);
    pl_spill_close(&spill);
}

static void spill_reports_each_failed_call(void **state)
{
    bool failed = true;
    for (long nth = 0; failed; nth++) {
        pl_map map;
        pl_file_fail_at(nth, ENOSPC);
        pl_status status = write_and_map(*state, &map);
        failed = pl_file_fail_off();
        assert_int_equal(failed ? PL_IO : PL_OK, status);
        if (status == PL_OK)
            pl_map_close(&map);
    }
}

UNIT_TESTS(TEST_IN_FOLDER(spill_round_trips),
           cmocka_unit_test(spill_may_stay_empty),
           TEST_IN_FOLDER(spill_reports_each_failed_call))
