#include "state/snapshot.h"

#include "support/checkpoint.h"
#include "support/train.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>

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

static void snapshot_is_restored_unchanged(void **state)
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
    char **names;
    size_t count;
    rig_init(&r, &opts);
    for (at.step = 16; at.step <= 20; at.step++)
        assert_ok(pl_snapshot_save(r.snapshot, &at, at.step % 2 == 0));
    rig_close(&r);
    rig_init(&r, &opts);
    assert_ok(pl_snapshot_load(r.snapshot, &got));
    assert_int_equal(20, got.step);
    rig_close(&r);
    assert_ok(pl_file_list(&names, &count, folder));
    assert_int_equal(3, count);
    assert_string_equal("step-0000000018", names[0]);
    assert_string_equal("step-0000000020", names[2]);
    pl_mem_free(names);
}

/* Updates that are made while it is written change nothing. */
static void snapshot_is_of_one_moment(void **state)
{
    const char *folder = test_path(*state, "checkpoints");
    rig_opts opts = options(folder);
    rig r, expected, loaded;
    pl_progress got;
    rig_init(&r, &opts);
    rig_init(&expected, &opts);
    rig_init(&loaded, &opts);
    float *block = pl_params_block(r.network->params);
    int64_t floats = pl_params_block_count(r.network->params);
    for (int round = 0; round < 5; round++) {
        fill(&r);
        assert_ok(pl_snapshot_save(r.snapshot, &progress, false));
        for (int64_t i = 0; i + 16 <= floats; i += 16)
            pl_optim_update(r.optim, i, 16, block + i, block);
        /* What is waiting is over with one in the foreground. */
        pl_progress later = { .step = progress.step - 1 };
        assert_ok(pl_snapshot_save(r.snapshot, &later, true));
        assert_ok(pl_snapshot_load(loaded.snapshot, &got));
        assert_int_equal(progress.step, got.step);
        fill(&expected);
        assert_same_state(&expected, &loaded);
    }
    rig_close(&r);
    rig_close(&expected);
    rig_close(&loaded);
}

/* A gate in the log: the writer says "written" while it is still at it, and
 * is held there until the test opens. */
struct gate {
    pl_mutex lock;
    pl_cond changed;
    bool reached;
    bool open;
};

static void wait_until(struct gate *gate, const bool *flag)
{
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), 60000);
    while (!*flag)
        if (pl_cond_wait_until(&gate->changed, &gate->lock, deadline) != PL_OK)
            abort();
}

static void gate_sink(void *context, pl_log_level level, const char *line)
{
    struct gate *gate = context;
    if (level != PL_LOG_DEBUG || strstr(line, "written to") == NULL)
        return;
    pl_mutex_lock(&gate->lock);
    gate->reached = true;
    pl_cond_broadcast(&gate->changed);
    wait_until(gate, &gate->open);
    pl_mutex_unlock(&gate->lock);
}

static void snapshot_refuses_a_save_while_one_is_written(void **state)
{
    const char *folder = test_path(*state, "checkpoints");
    rig_opts opts = options(folder);
    struct gate gate = { .open = false };
    pl_mutex_init(&gate.lock);
    pl_cond_init(&gate.changed);
    pl_log_set(gate_sink, &gate, PL_LOG_DEBUG);
    rig r;
    pl_progress got, later = { .step = 13 };
    rig_init(&r, &opts);
    assert_ok(pl_snapshot_save(r.snapshot, &progress, false));
    pl_mutex_lock(&gate.lock);
    wait_until(&gate, &gate.reached);
    pl_mutex_unlock(&gate.lock);

    assert_fails(PL_AGAIN, "still being written",
                 pl_snapshot_save(r.snapshot, &later, false));
    pl_mutex_lock(&gate.lock);
    gate.open = true;
    pl_cond_broadcast(&gate.changed);
    pl_mutex_unlock(&gate.lock);
    pl_status status;
    while ((status = pl_snapshot_save(r.snapshot, &later, false)) == PL_AGAIN)
        sched_yield();
    assert_ok(status);
    rig_close(&r);
    rig_init(&r, &opts);
    assert_ok(pl_snapshot_load(r.snapshot, &got));
    assert_int_equal(13, got.step);
    rig_close(&r);
    pl_log_set(NULL, NULL, PL_LOG_INFO);
    pl_cond_close(&gate.changed);
    pl_mutex_close(&gate.lock);
}

/* A file where the folder should be makes every write fail. */
static void snapshot_recovers_from_a_failure(void **state)
{
    const char *folder = test_path(*state, "checkpoints");
    rig_opts opts = options(folder);
    rig r;
    pl_progress got;
    rig_init(&r, &opts);
    assert_ok(pl_file_replace(folder, "", 0));
    assert_fails(PL_IO, "checkpoint of step 12",
                 pl_snapshot_save(r.snapshot, &progress, false));
    assert_fails(PL_IO, "checkpoint of step 12",
                 pl_snapshot_save(r.snapshot, &progress, true));
    assert_ok(pl_file_remove_all(folder));
    assert_ok(pl_snapshot_save(r.snapshot, &progress, false));
    assert_ok(pl_snapshot_save(r.snapshot, &progress, true));
    assert_ok(pl_snapshot_load(r.snapshot, &got));
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

/* A failure in the background is reported by the next save, once; one in the
 * foreground is reported at once, and that of the background is a warning. */
static void snapshot_of_non_finite_values_is_refused(void **state)
{
    const char *folder = test_path(*state, "checkpoints");
    rig_opts opts = options(folder);
    const float bad[] = { NAN, INFINITY, -INFINITY };
    rig r;
    pl_progress got;
    warnings seen = { 0 };
    pl_log_set(warnings_sink, &seen, PL_LOG_INFO);
    rig_init(&r, &opts);
    float *bias = pl_params_data(r.network->params, 3);
    for (int i = 0; i < 3; i++) {
        bias[2] = bad[i];
        assert_fails(PL_NUMERIC, "output/bias is not finite",
                     pl_snapshot_save(r.snapshot, &progress, true));
        assert_ok(pl_snapshot_save(r.snapshot, &progress, false));
        pl_status status;
        while ((status = pl_snapshot_save(r.snapshot, &progress, false)) ==
               PL_AGAIN)
            sched_yield();
        assert_fails(PL_NUMERIC, "checkpoint of step 12", status);
        assert_int_equal(i, seen.count);
        assert_fails(PL_NUMERIC, "output/bias is not finite",
                     pl_snapshot_save(r.snapshot, &progress, true));
        assert_int_equal(i + 1, seen.count);
    }
    assert_int_equal(PL_NOTFOUND, pl_snapshot_load(r.snapshot, &got));
    assert_false(pl_file_exists(test_path(folder, "step-0000000012")));
    rig_close(&r);
    pl_log_set(NULL, NULL, PL_LOG_INFO);
}

static pl_status save_once(const pl_snapshot_opts *opts)
{
    pl_snapshot *snapshot;
    PL_TRY(pl_snapshot_new(&snapshot, opts));
    pl_status status = pl_snapshot_save(snapshot, &progress, true);
    pl_snapshot_free(snapshot);
    return status;
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
    assert_survives_failed_allocations(save_once(&snapshot), (void)0);
    pl_progress got;
    assert_ok(pl_snapshot_load(r.snapshot, &got));
    rig_close(&r);
}

UNIT_TESTS(TEST_IN_FOLDER(snapshot_is_restored_unchanged),
           TEST_IN_FOLDER(snapshot_keeps_the_newest),
           TEST_IN_FOLDER(snapshot_is_of_one_moment),
           TEST_IN_FOLDER(snapshot_refuses_a_save_while_one_is_written),
           TEST_IN_FOLDER(snapshot_recovers_from_a_failure),
           TEST_IN_FOLDER(snapshot_names_the_setting_that_changed),
           TEST_IN_FOLDER(snapshot_of_another_model_is_refused),
           TEST_IN_FOLDER(snapshot_of_non_finite_values_is_refused),
           TEST_IN_FOLDER(snapshot_survives_failed_allocations))
