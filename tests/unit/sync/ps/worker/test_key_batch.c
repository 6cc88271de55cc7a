#include "sync/ps/worker/key_batch.h"

#include "base/mem.h"
#include "support/unit.h"
#include "sync/ps/messages/pieces.h"

#define BLOCK 1000

static void key_batch_gives_each_server_its_run(void **state)
{
    (void)state;
    for (int32_t servers = 1; servers <= 5; servers++) {
        pl_key_batch batch;
        assert_ok(pl_key_batch_init(&batch, servers));
        assert_ok(pl_key_batch_resize(&batch, 100));
        for (uint64_t i = 0; i < 100; i++)
            batch.keys[i] = i < 50 ? i : 900 + i; /* none in the middle */
        assert_ok(pl_key_batch_cut(&batch, BLOCK));
        int64_t all = 0;
        for (int32_t j = 0; j < servers; j++) {
            int64_t first, count;
            pl_pieces_shard(BLOCK, servers, j, &first, &count);
            for (int64_t k = batch.cut[j]; k < batch.cut[j + 1]; k++)
                assert_in_range(batch.keys[k], first, first + count - 1);
            all += pl_key_batch_of(&batch, j);
        }
        assert_int_equal(100, all);
        pl_key_batch_close(&batch);
    }
}

static void key_batch_refuses_batches_that_fit_no_message(void **state)
{
    (void)state;
    int64_t count = PL_KEY_BATCH_MOST + 1;
    pl_key_batch batch;
    assert_ok(pl_key_batch_init(&batch, 1));
    assert_ok(pl_key_batch_resize(&batch, count));
    for (int64_t i = 0; i < count; i++)
        batch.keys[i] = (uint64_t)i;
    assert_fails(PL_USAGE, "1048577 distinct features at ps 0",
                 pl_key_batch_cut(&batch, 2 * count));
    pl_key_batch_close(&batch);
}

static void key_batch_survives_each_failed_allocation(void **state)
{
    (void)state;
    bool failed = true;
    for (long nth = 0; failed; nth++) {
        pl_key_batch batch = { .count = 0 };
        pl_mem_fail_at(nth);
        pl_status status = pl_key_batch_init(&batch, 3);
        if (status == PL_OK)
            status = pl_key_batch_resize(&batch, 10);
        failed = pl_mem_fail_off();
        assert_int_equal(failed ? PL_NOMEM : PL_OK, status);
        pl_key_batch_close(&batch);
    }
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(cmocka_unit_test(key_batch_gives_each_server_its_run),
           cmocka_unit_test(key_batch_refuses_batches_that_fit_no_message),
           cmocka_unit_test(key_batch_survives_each_failed_allocation))
