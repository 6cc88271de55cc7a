#include "sync/ps/save/store.h"

#include "support/folder.h"

#include <unistd.h>

#define FLOATS 10

typedef struct rig {
    float params[FLOATS];
    pl_params *shape;
    pl_optim *optim;
    pl_ps_store *store;
    char plan[512];
    char *folder;
    pl_place place;
} rig;

static pl_status open_store(rig *r)
{
    return pl_ps_store_new(&r->store,
                           &(pl_partition_opts) {
                               .of = 1,
                               .count = FLOATS,
                               .planes = pl_optim_planes(r->optim, r->params),
                               .place = r->place,
                           });
}

static void make_plan(rig *r, const char *checkpoints, int64_t step)
{
    snprintf(r->plan, sizeof r->plan,
             "{\"checkpoints\": \"%s\", \"folder\": \"step-%010lld\", "
             "\"step\": %lld, \"keep\": 1, \"model\": \"m\", \"settings\": "
             "{}, \"state\": {}, \"tensors\": [{\"name\": \"w\", \"shape\": "
             "[10], \"first\": 0}]}",
             checkpoints, (long long)step, (long long)step);
}

/* Its checkpoints are where the place says. */
static void open_rig_at(rig *r, const char *checkpoints, pl_place place)
{
    *r = (rig) { .place = place };
    assert_ok(pl_params_new(&r->shape));
    assert_ok(pl_params_add(r->shape, "w", PL_SHAPE(FLOATS)));
    assert_ok(pl_params_seal(r->shape));
    assert_ok(pl_optim_new(&r->optim, &(pl_optim_opts) { .name = "momentum" },
                           r->shape, pl_kernels_best()));
    assert_ok(pl_checkpoint_begin(&r->folder, checkpoints, 7));
    make_plan(r, checkpoints, 7);
    assert_ok(open_store(r));
}

static void open_rig(rig *r, const char *checkpoints)
{
    open_rig_at(r, checkpoints, (pl_place) { 0 });
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

static void ps_store_reports_failures(void **state)
{
    rig r;
    pl_ps_stored stored;
    open_rig(&r, *state);
    assert_true(pl_ps_store_save(r.store, "{", 1));
    stored = wait_for(&r);
    assert_int_equal(PL_SAVED_FAILED, stored.outcome);
    assert_non_null(strstr(stored.why, "save request"));
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

/* A cancelled save is not reported; the next one begins when it is over, and
 * finds the memory as it is then. */
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

/* <state>/<name>, with parents. */
static const char *make_folder(void **state, const char *name)
{
    const char *path = test_path(*state, name);
    assert_ok(pl_file_make_folder(path));
    return path;
}

/* Write and complete a checkpoint. */
static pl_ps_stored store_all(rig *r)
{
    save(r);
    pl_ps_stored part = wait_for(r);
    if (part.outcome != PL_SAVED_GOOD)
        return part;
    assert_true(pl_ps_store_commit(
        r->store,
        &(pl_ps_part) { true, part.outcome, part.bytes, part.crc32c }));
    return wait_for(r);
}

static void begin(const char *checkpoints, int64_t step)
{
    char *folder;
    assert_ok(pl_checkpoint_begin(&folder, checkpoints, step));
    pl_mem_free(folder);
}

static bool is_complete(const char *checkpoints, int step)
{
    char name[64];
    snprintf(name, sizeof name, "step-%010d/manifest.json", step);
    return pl_file_exists(test_path(checkpoints, name));
}

static void assert_refused(pl_ps_stored stored, const char *part)
{
    assert_int_equal(PL_SAVED_FAILED, stored.outcome);
    if (strstr(stored.why, part) == NULL)
        fail_msg("\"%s\" is not in: %s", part, stored.why);
}

/* Whatever the chief names, a server with a run folder stays in it. */
static void ps_store_uses_no_other_run_folder(void **state)
{
    rig r;
    const char *own = make_folder(state, "own/checkpoints");
    const char *other = make_folder(state, "other/checkpoints");
    begin(own, 7);
    open_rig_at(&r, other, (pl_place) { .run = test_path(*state, "own") });
    fill(&r, 1);
    assert_int_equal(PL_SAVED_GOOD, store_all(&r).outcome);
    assert_true(is_complete(own, 7) && !is_complete(other, 7));
    close_rig(&r);
}

static void ps_store_follows_only_a_link_of_its_own_user(void **state)
{
    rig r;
    const char *out = make_folder(state, "out/checkpoints");
    const char *own = make_folder(state, "own/checkpoints");
    const char *run = make_folder(state, "linked");
    begin(out, 7);
    assert_int_equal(0, symlink(test_path(out, "step-0000000007"),
                                test_path(own, "step-0000000007")));
    assert_int_equal(0, symlink(out, test_path(run, "checkpoints")));
    open_rig_at(&r, out, (pl_place) { .run = test_path(*state, "own") });
    assert_refused(store_all(&r), "step-0000000007 is not a folder");
    assert_true(pl_ps_store_load(r.store, r.plan, strlen(r.plan)));
    assert_refused(wait_for(&r), "step-0000000007 is not a folder");
    close_rig(&r);
    /* Root alone can make a link that belongs to another user. */
    if (geteuid() == 0) {
        assert_int_equal(0, lchown(test_path(run, "checkpoints"), 65534, 0));
        open_rig_at(&r, out, (pl_place) { .run = run });
        assert_refused(store_all(&r), "which is not in the run folder");
        assert_false(is_complete(out, 7));
        close_rig(&r);
        assert_int_equal(0, lchown(test_path(run, "checkpoints"), 0, 0));
    }
    open_rig_at(&r, out, (pl_place) { .run = run });
    fill(&r, 1);
    assert_int_equal(PL_SAVED_GOOD, store_all(&r).outcome);
    assert_true(is_complete(out, 7));
    close_rig(&r);
}

/* Without one, it uses one below where it was started, and removes only what
 * it wrote. */
static void ps_store_learns_one_run_folder(void **state)
{
    rig r;
    const char *good = make_folder(state, "runs/a/checkpoints");
    pl_place place = { .within = test_path(*state, "runs") };
    begin(good, 3);
    open_rig_at(&r, good, place);
    fill(&r, 1);
    make_plan(&r, good, 3);
    assert_int_equal(PL_SAVED_GOOD, store_all(&r).outcome);
    pl_ps_store_free(r.store); /* another process continues */
    assert_ok(open_store(&r));
    for (int64_t step = 7; step <= 9; step++) {
        if (step > 7)
            begin(good, step);
        make_plan(&r, good, step);
        assert_int_equal(PL_SAVED_GOOD, store_all(&r).outcome);
    }
    assert_true(is_complete(good, 3) && is_complete(good, 9));
    assert_false(pl_file_exists(test_path(good, "step-0000000007")));
    assert_false(pl_file_exists(test_path(good, "step-0000000008")));
    make_plan(&r, good, 9); /* it is complete */
    assert_refused(store_all(&r), "it is not replaced");
    /* Another folder, also one it might have learned, is refused from now on.
     */
    static const char *const wrong[][2] = {
        { "runs/b/checkpoints", "and nowhere else" },
        { "elsewhere/a/checkpoints", "without --run" },
        { "runs/a/other", "without --run" },
        { "runs2/a/checkpoints", "without --run" },
        { "runs/checkpoints", "without --run" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *there = make_folder(state, wrong[i][0]);
        begin(there, 7);
        make_plan(&r, there, 7);
        assert_refused(store_all(&r), wrong[i][1]);
        assert_false(is_complete(there, 7));
    }
    close_rig(&r);
}

#define STORE_TEST(test)                                                       \
    cmocka_unit_test_setup_teardown(test, test_folder_make, test_folder_remove)

UNIT_TESTS(STORE_TEST(ps_store_new_survives_each_failed_allocation),
           STORE_TEST(ps_store_saves_completes_and_loads),
           STORE_TEST(ps_store_reports_failures),
           STORE_TEST(ps_store_cancelled_save_makes_way),
           STORE_TEST(ps_store_uses_no_other_run_folder),
           STORE_TEST(ps_store_follows_only_a_link_of_its_own_user),
           STORE_TEST(ps_store_learns_one_run_folder),
           STORE_TEST(ps_store_may_be_freed_while_it_writes))
