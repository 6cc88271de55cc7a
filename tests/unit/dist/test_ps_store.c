#include "dist/ps_store.h"

#include "support/folder.h"

#define FLOATS 10

typedef struct rig {
    float params[FLOATS];
    pl_params *shape;
    pl_optim *optim;
    pl_ps_store *store;
    char plan[512];
    char *folder;
} rig;

static pl_status open_store(rig *r)
{
    return pl_ps_store_new(&r->store, &(pl_part_opts) {
                                          .of = 1,
                                          .count = FLOATS,
                                          .params = r->params,
                                          .optim = r->optim,
                                      });
}

static void open_rig(rig *r, const char *checkpoints)
{
    *r = (rig) { .store = NULL };
    assert_ok(pl_params_new(&r->shape));
    assert_ok(pl_params_add(r->shape, "w", PL_SHAPE(FLOATS)));
    assert_ok(pl_params_seal(r->shape));
    assert_ok(pl_optim_new(&r->optim, &(pl_optim_opts) { .name = "momentum" },
                           r->shape, pl_kernels_best()));
    assert_ok(pl_checkpoint_begin(&r->folder, checkpoints, 7));
    snprintf(r->plan, sizeof r->plan,
             "{\"checkpoints\": \"%s\", \"folder\": \"step-0000000007\", "
             "\"step\": 7, \"keep\": 1, \"model\": \"m\", \"settings\": {}, "
             "\"state\": {}, \"tensors\": [{\"name\": \"w\", \"shape\": [10], "
             "\"first\": 0}]}",
             checkpoints);
    assert_ok(open_store(r));
}

static void close_rig(rig *r)
{
    pl_ps_store_free(r->store);
    pl_optim_free(r->optim);
    pl_params_free(r->shape);
    pl_mem_free(r->folder);
    assert_int_equal(0, pl_mem_live());
}

/* Parameter i is `value` + i, its velocity the negative. */
static void fill(rig *r, float value)
{
    float *velocity = pl_params_block(r->optim->slots[0]);
    assert_true(pl_ps_store_touch(r->store, 0, FLOATS));
    for (int i = 0; i < FLOATS; i++) {
        r->params[i] = value + (float)i;
        velocity[i] = -r->params[i];
    }
}

static void assert_filled(const rig *r, float value)
{
    const float *velocity = pl_params_block(r->optim->slots[0]);
    for (int i = 0; i < FLOATS; i++) {
        assert_true(r->params[i] == value + (float)i);
        assert_true(velocity[i] == -r->params[i]);
    }
}

/* Look until something has ended. */
static pl_ps_stored wait_for(rig *r)
{
    pl_ps_stored stored;
    pl_deadline end = pl_deadline_in_ms(pl_clock_real(), 60000);
    while (!pl_ps_store_poll(r->store, &stored))
        if (pl_deadline_passed(end))
            fail_msg("nothing ended in 60 s");
    assert_false(pl_ps_store_busy(r->store));
    return stored;
}

static void save(rig *r)
{
    assert_true(pl_ps_store_save(r->store, r->plan, strlen(r->plan)));
}

static void ps_store_new_survives_each_failed_allocation(void **state)
{
    rig r;
    open_rig(&r, *state);
    pl_ps_store_free(r.store);
    assert_survives_failed_allocations(open_store(&r),
                                       pl_ps_store_free(r.store));
    r.store = NULL;
    close_rig(&r);
}

static void ps_store_saves_completes_and_loads(void **state)
{
    rig r;
    open_rig(&r, *state);
    fill(&r, 1);
    save(&r);
    fill(&r, 100); /* while it is written */
    pl_ps_stored part = wait_for(&r);
    assert_int_equal(PL_SAVED_GOOD, part.outcome);
    assert_true(part.bytes > 2 * FLOATS * (int64_t)sizeof(float));
    assert_true(
        pl_ps_store_commit(r.store, &(pl_ps_part) { true, part.outcome,
                                                    part.bytes, part.crc32c }));
    assert_int_equal(PL_SAVED_GOOD, wait_for(&r).outcome);
    assert_true(pl_ps_store_load(r.store, r.plan, strlen(r.plan)));
    assert_int_equal(PL_SAVED_GOOD, wait_for(&r).outcome);
    assert_filled(&r, 1);
    close_rig(&r);
}

static void ps_store_says_what_went_wrong(void **state)
{
    rig r;
    pl_ps_stored stored;
    open_rig(&r, *state);
    assert_true(pl_ps_store_save(r.store, "{", 1));
    stored = wait_for(&r);
    assert_int_equal(PL_SAVED_FAILED, stored.outcome);
    assert_non_null(strstr(stored.why, "plan"));
    r.params[3] = 1.0f / 0.0f;
    save(&r);
    stored = wait_for(&r);
    assert_int_equal(PL_SAVED_NUMERIC, stored.outcome);
    assert_non_null(strstr(stored.why, "w is not finite"));
    assert_true(pl_ps_store_load(r.store, r.plan, strlen(r.plan)));
    stored = wait_for(&r);
    assert_int_equal(PL_SAVED_FAILED, stored.outcome);
    assert_non_null(strstr(stored.why, "it was not finished"));
    close_rig(&r);
}

/* What was cancelled is not heard of; the next thing begins when it is over,
 * and finds the memory as it is then. */
static void ps_store_cancelled_save_makes_way(void **state)
{
    rig r;
    open_rig(&r, *state);
    pl_deadline end = pl_deadline_in_ms(pl_clock_real(), 60000);
    for (int round = 0; round < 20; round++) {
        fill(&r, (float)round);
        save(&r);
        assert_false(pl_ps_store_save(r.store, r.plan, strlen(r.plan)));
        pl_ps_store_cancel(r.store);
        fill(&r, (float)(100 + round));
        while (!pl_ps_store_save(r.store, r.plan, strlen(r.plan)))
            assert_false(pl_deadline_passed(end));
        pl_ps_stored part = wait_for(&r);
        assert_int_equal(PL_SAVED_GOOD, part.outcome);
        assert_true(pl_ps_store_commit(
            r.store,
            &(pl_ps_part) { true, part.outcome, part.bytes, part.crc32c }));
        assert_int_equal(PL_SAVED_GOOD, wait_for(&r).outcome);
        fill(&r, 0);
        assert_true(pl_ps_store_load(r.store, r.plan, strlen(r.plan)));
        assert_int_equal(PL_SAVED_GOOD, wait_for(&r).outcome);
        assert_filled(&r, (float)(100 + round));
    }
    close_rig(&r);
}

static void ps_store_may_be_freed_while_it_writes(void **state)
{
    rig r;
    open_rig(&r, *state);
    save(&r);
    close_rig(&r);
}

#define STORE_TEST(test)                                                       \
    cmocka_unit_test_setup_teardown(test, test_folder_make, test_folder_remove)

UNIT_TESTS(STORE_TEST(ps_store_new_survives_each_failed_allocation),
           STORE_TEST(ps_store_saves_completes_and_loads),
           STORE_TEST(ps_store_says_what_went_wrong),
           STORE_TEST(ps_store_cancelled_save_makes_way),
           STORE_TEST(ps_store_may_be_freed_while_it_writes))
