#include "state/snapshot.h"

#include "support/folder.h"
#include "support/train.h"

#include <math.h>

#define SETTINGS "{\"batch\":\"32\",\"seed\":\"7\"}"

static const pl_progress progress = {
    .step = 12,
    .examples = 345,
    .seconds = 6.25,
    .position = { .bytes = { 0, 1, 0xab, 0xff }, .used = 4 },
};

static rig_opts options(const char *folder)
{
    return (rig_opts) { .folder = folder,
                        .settings = SETTINGS,
                        .optim = { .name = "adam" } };
}

/* Every parameter and slot has a number of its own. */
static void fill(const rig *r)
{
    const pl_params *sets[] = { r->network->params, r->optim->slots[0],
                                r->optim->slots[1] };
    float next = 0.5f;
    for (int s = 0; s < 3; s++)
        for (int p = 0; p < pl_params_count(sets[s]); p++)
            for (int64_t i = 0; i < pl_params_get(sets[s], p)->count; i++)
                pl_params_data(sets[s], p)[i] = next += 1;
}

static void save_one(const char *folder)
{
    rig r;
    rig_opts opts = options(folder);
    rig_init(&r, &opts);
    fill(&r);
    assert_ok(pl_snapshot_save(r.snapshot, &progress, true));
    rig_close(&r);
}

static void snapshot_comes_back_as_it_was(void **state)
{
    const char *folder = test_path(*state, "checkpoints");
    rig_opts opts = options(folder);
    rig saved, loaded;
    rig_init(&saved, &opts);
    rig_init(&loaded, &opts);
    fill(&saved);
    pl_progress got = { 0 };
    assert_fails(PL_NOTFOUND, "", pl_snapshot_load(loaded.snapshot, &got));
    assert_ok(pl_snapshot_save(saved.snapshot, &progress, true));
    assert_ok(pl_snapshot_load(loaded.snapshot, &got));
    assert_same_state(&saved, &loaded);
    assert_int_equal(progress.step, got.step);
    assert_int_equal(progress.examples, got.examples);
    assert_true(got.seconds == progress.seconds);
    assert_int_equal(progress.position.used, got.position.used);
    assert_memory_equal(progress.position.bytes, got.position.bytes, 4);
    rig_close(&saved);
    rig_close(&loaded);
    assert_int_equal(0, pl_mem_live());
}

/* In the background, until the free; the newest counts. */
static void snapshot_keeps_the_newest(void **state)
{
    const char *folder = test_path(*state, "checkpoints");
    rig_opts opts = options(folder);
    rig r;
    pl_progress at = progress, got;
    rig_init(&r, &opts);
    assert_ok(pl_snapshot_save(r.snapshot, &at, false));
    at.step = 20;
    assert_ok(pl_snapshot_save(r.snapshot, &at, true));
    rig_close(&r);
    rig_init(&r, &opts);
    assert_ok(pl_snapshot_load(r.snapshot, &got));
    assert_int_equal(20, got.step);
    rig_close(&r);
}

static void assert_refused(rig_opts opts, pl_status status, const char *part)
{
    rig r, untouched;
    pl_progress got;
    rig_init(&r, &opts);
    rig_init(&untouched, &opts);
    assert_fails(status, part, pl_snapshot_load(r.snapshot, &got));
    assert_same_state(&untouched, &r);
    rig_close(&r);
    rig_close(&untouched);
}

static void snapshot_names_the_setting_that_changed(void **state)
{
    const char *folder = test_path(*state, "checkpoints");
    save_one(folder);
    rig_opts other = options(folder);
    other.settings = "{\"batch\":\"64\",\"seed\":\"7\"}";
    assert_refused(other, PL_USAGE, "batch is \"64\", but ");
    assert_refused(other, PL_USAGE, "was trained with \"32\"");
    other.settings = "{\"batch\":\"32\",\"seed\":\"7\",\"clip\":\"1\"}";
}

static void snapshot_of_another_model_is_refused(void **state)
{
    const char *folder = test_path(*state, "checkpoints");
    save_one(folder);
    rig_opts other = options(folder);
    other.model = &pl_model_softmax;
    assert_refused(other, PL_USAGE,
                   "is a checkpoint of model two_layers, not of softmax");
    other = options(folder);
    other.side = 4; /* the same model of other data */
    assert_refused(other, PL_SHAPE, "hidden/weights");
    other = options(folder);
    other.optim.name = "sgd"; /* what the slots are for is unknown */
    assert_refused(other, PL_SHAPE, "optimizer.");
}

static void snapshot_of_what_is_not_finite_is_refused(void **state)
{
    const char *folder = test_path(*state, "checkpoints");
    rig_opts opts = options(folder);
    const float bad[] = { NAN, INFINITY, -INFINITY };
    rig r;
    pl_progress got;
    rig_init(&r, &opts);
    float *bias = pl_params_data(r.network->params, 3);
    for (int i = 0; i < 3; i++) {
        bias[2] = bad[i];
        assert_fails(PL_NUMERIC, "output/bias is not finite",
                     pl_snapshot_save(r.snapshot, &progress, i % 2 == 0));
    }
    assert_int_equal(PL_NOTFOUND, pl_snapshot_load(r.snapshot, &got));
    rig_close(&r);
}

static void snapshot_survives_failed_allocations(void **state)
{
    const char *folder = test_path(*state, "checkpoints");
    rig_opts opts = options(folder);
    rig r;
    rig_init(&r, &opts);
    pl_snapshot_opts snapshot = {
        .folder = folder,
        .model = "two_layers",
        .settings = r.settings,
        .params = r.network->params,
        .planes = rig_planes(&r),
        .kernels = r.optim->kernels->name,
    };
    pl_snapshot *made = NULL;
    assert_survives_failed_allocations(pl_snapshot_new(&made, &snapshot),
                                       pl_snapshot_free(made));
    rig_close(&r);
}

UNIT_TESTS(TEST_IN_FOLDER(snapshot_comes_back_as_it_was),
           TEST_IN_FOLDER(snapshot_keeps_the_newest),
           TEST_IN_FOLDER(snapshot_names_the_setting_that_changed),
           TEST_IN_FOLDER(snapshot_of_another_model_is_refused),
           TEST_IN_FOLDER(snapshot_of_what_is_not_finite_is_refused),
           TEST_IN_FOLDER(snapshot_survives_failed_allocations))
