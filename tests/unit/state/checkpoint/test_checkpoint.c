#include "state/checkpoint/checkpoint.h"

#include "support/checkpoint.h"

#include <errno.h>
#include <stdlib.h>

#define STEP_1 "step-0000000001"
#define STEP_2 "step-0000000002"
#define SHARD  "shard-00000-of-00001.safetensors"

static warnings seen;

static int set_up(void **state)
{
    seen = (warnings) { 0 };
    pl_log_set(warnings_sink, &seen, PL_LOG_INFO);
    return test_folder_make(state);
}

static int tear_down(void **state)
{
    pl_log_set(NULL, NULL, PL_LOG_INFO);
    return test_folder_remove(state);
}

#define CHECKPOINT_TEST(test)                                                  \
    cmocka_unit_test_setup_teardown(test, set_up, tear_down)

static void assert_same_file(const char *a, const char *b)
{
    pl_map x;
    pl_map y;
    assert_ok(pl_map_init(&x, a));
    assert_ok(pl_map_init(&y, b));
    assert_int_equal(x.bytes, y.bytes);
    assert_memory_equal(x.data, y.data, x.bytes);
    pl_map_close(&x);
    pl_map_close(&y);
}

static void checkpoint_written_is_the_golden_one(void **state)
{
    const char *golden = PL_GOLDEN "/checkpoint";
    assert_ok(sample_write(*state, 42));
    assert_same_file(test_path(golden, "step-0000000042/manifest.json"),
                     test_path(*state, "step-0000000042/manifest.json"));
    assert_same_file(test_path(golden, "step-0000000042/" SHARD),
                     test_path(*state, "step-0000000042/" SHARD));
    assert_int_equal(42, sample_found(golden));
    assert_int_equal(0, seen.count);
}

static void checkpoint_newest_is_found(void **state)
{
    assert_int_equal(-1, sample_found(*state));
    assert_int_equal(-1, sample_found(test_path(*state, "none")));
    const int64_t steps[] = { 9, 100, 0, 9999999999 };
    const int64_t found[] = { 9, 100, 100, 9999999999 };
    for (size_t i = 0; i < 4; i++) {
        assert_ok(sample_write(*state, steps[i]));
        assert_int_equal(found[i], sample_found(*state));
    }
    assert_int_equal(0, seen.count);
}

static void checkpoint_other_names_are_ignored(void **state)
{
    const char *names[] = {
        "step-1", "step-00000000030", "step-0000000003x", ".step-0000000003",
        "best",   "step--000000003",  "step-+000000003"
    };
    assert_ok(sample_write(*state, 1));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_ok(pl_file_make_folder(test_path(*state, names[i])));
    assert_int_equal(1, sample_found(*state));
    assert_int_equal(0, seen.count);
}

/* Change a file of checkpoint 2 in every way `change` knows: each time it is
 * skipped with a warning, and checkpoint 1 is found. */
static void for_each_damage(const char *folder, const char *name,
                            size_t (*change)(char *bytes, size_t count,
                                             size_t nth))
{
    pl_map map;
    const char *path = test_path(folder, name);
    assert_ok(sample_write(folder, 1));
    assert_ok(sample_write(folder, 2));
    assert_ok(pl_map_init(&map, path));
    char *copy = malloc(map.bytes);
    assert_non_null(copy);
    for (size_t i = 0; i < map.bytes; i++) {
        memcpy(copy, map.data, map.bytes);
        size_t count = change(copy, map.bytes, i);
        assert_ok(pl_file_replace(path, copy, count));
        seen.count = 0;
        assert_int_equal(1, sample_found(folder));
        assert_int_equal(1, seen.count);
        assert_non_null(strstr(seen.last, STEP_2));
    }
    assert_ok(pl_file_replace(path, map.data, map.bytes));
    assert_int_equal(2, sample_found(folder));
    free(copy);
    pl_map_close(&map);
}

static size_t cut(char *bytes, size_t count, size_t nth)
{
    (void)bytes;
    (void)count;
    return nth;
}

static size_t flip(char *bytes, size_t count, size_t nth)
{
    bytes[nth] = (char)(bytes[nth] ^ (1 << nth % 8));
    return count;
}

static void checkpoint_with_a_cut_shard_is_skipped(void **state)
{
    for_each_damage(*state, STEP_2 "/" SHARD, cut);
}

static void checkpoint_with_a_cut_manifest_is_skipped(void **state)
{
    for_each_damage(*state, STEP_2 "/manifest.json", cut);
}

static void checkpoint_with_a_changed_shard_is_skipped(void **state)
{
    for_each_damage(*state, STEP_2 "/" SHARD, flip);
}

static void checkpoint_with_a_changed_manifest_is_skipped(void **state)
{
    for_each_damage(*state, STEP_2 "/manifest.json", flip);
}

static void checkpoint_not_finished_is_skipped(void **state)
{
    assert_ok(sample_write(*state, 1));
    assert_ok(sample_write(*state, 2));
    assert_ok(pl_file_remove_all(test_path(*state, STEP_2 "/" SHARD)));
    assert_int_equal(1, sample_found(*state));
    assert_non_null(strstr(seen.last, SHARD ": No such file"));
    assert_ok(pl_file_remove_all(test_path(*state, STEP_2 "/manifest.json")));
    assert_int_equal(1, sample_found(*state));
    assert_non_null(strstr(seen.last, "it was not finished"));
}

static void checkpoint_under_a_wrong_name_is_skipped(void **state)
{
    assert_ok(sample_write(*state, 1));
    assert_ok(sample_write(*state, 2));
    assert_ok(pl_file_rename(test_path(*state, STEP_2),
                             test_path(*state, "step-0000000003")));
    assert_int_equal(1, sample_found(*state));
    assert_non_null(strstr(seen.last, "its manifest is of step 2"));
}

/* Whatever call fails, the checkpoint before or the new one is found whole,
 * and a second try gets through. */
static void survive_failed_writes(const char *folder, int64_t before,
                                  int64_t step, int error)
{
    bool failed = true;
    for (long nth = 0; failed; nth++) {
        assert_ok(pl_file_remove_all(folder));
        assert_ok(sample_write(folder, before));
        long live = pl_mem_live();
        pl_file_fail_at(nth, error);
        pl_status status = sample_write(folder, step);
        failed = pl_file_fail_off();
        assert_int_equal(live, pl_mem_live());
        assert_true(status == PL_OK || (failed && status == PL_IO));
        int64_t found = sample_found(folder);
        assert_true(found == step || (status != PL_OK && found == before));
        assert_ok(sample_write(folder, step));
        assert_int_equal(step, sample_found(folder));
        assert_true(nth < 200);
    }
}

static void checkpoint_before_survives_each_failed_call(void **state)
{
    const char *folder = test_path(*state, "checkpoints");
    survive_failed_writes(folder, 1, 2, ENOSPC);
    survive_failed_writes(folder, 1, 2, EIO);
}

static void checkpoint_of_the_same_step_survives_each_failed_call(void **state)
{
    const char *folder = test_path(*state, "checkpoints");
    survive_failed_writes(folder, 2, 2, ENOSPC);
    survive_failed_writes(folder, 2, 2, EIO);
}

/* A crash leaves temporary files too; a later begin or prune removes them. */
static void checkpoint_leftovers_of_a_crash_do_no_harm(void **state)
{
    char *folder;
    assert_ok(sample_write(*state, 1));
    assert_ok(pl_checkpoint_begin(&folder, *state, 2));
    assert_ok(
        pl_file_replace(test_path(folder, ".manifest.json.7.tmp"), "{", 1));
    assert_ok(pl_file_replace(test_path(folder, SHARD), "half", 4));
    pl_mem_free(folder);
    assert_int_equal(1, sample_found(*state));
    assert_ok(sample_write(*state, 2));
    assert_int_equal(2, sample_found(*state));
    char **names;
    size_t count;
    assert_ok(pl_file_list(&names, &count, test_path(*state, STEP_2)));
    assert_int_equal(2, count);
    assert_string_equal("manifest.json", names[0]);
    assert_string_equal(SHARD, names[1]);
    pl_mem_free(names);
}

static void checkpoint_moved_away_counts_until_replaced(void **state)
{
    char *folder;
    assert_ok(sample_write(*state, 1));
    assert_ok(sample_write(*state, 2));
    assert_ok(pl_checkpoint_begin(&folder, *state, 2));
    pl_mem_free(folder);
    assert_true(pl_file_exists(test_path(*state, STEP_2 ".old")));
    assert_int_equal(2, sample_found(*state));
    assert_ok(pl_checkpoint_begin(&folder, *state, 2)); /* a second try */
    pl_mem_free(folder);
    assert_int_equal(2, sample_found(*state));
    assert_ok(sample_write(*state, 2));
    assert_ok(pl_checkpoint_prune(*state, 2, 5, -1));
    assert_false(pl_file_exists(test_path(*state, STEP_2 ".old")));
    assert_int_equal(2, sample_found(*state));
}

static void checkpoint_finding_survives_each_failed_call(void **state)
{
    assert_ok(sample_write(*state, 1));
    assert_ok(sample_write(*state, 2));
    bool failed = true;
    for (long nth = 0; failed; nth++) {
        pl_checkpoint *found = NULL;
        pl_file_fail_at(nth, EIO);
        pl_status status = pl_checkpoint_find(&found, *state);
        failed = pl_file_fail_off();
        if (status == PL_OK)
            assert_int_equal(failed ? 1 : 2,
                             pl_checkpoint_manifest(found)->step);
        else
            assert_true(failed && status == PL_IO); /* the listing */
        pl_checkpoint_free(found);
    }
}

static pl_status find_and_load(const char *folder)
{
    pl_checkpoint *found;
    sample s;
    PL_TRY(pl_checkpoint_find(&found, folder));
    s.tensors[0] =
        (pl_checkpoint_tensor) { "weight", PL_SHAPE(2, 3), s.weight, 0, 0 };
    s.tensors[1] = (pl_checkpoint_tensor) { "bias", PL_SHAPE(3), s.bias, 0, 0 };
    pl_status status = pl_checkpoint_load(found, s.tensors, SAMPLE_TENSORS);
    pl_checkpoint_free(found);
    return status;
}

/* For lack of memory no checkpoint is skipped, and no older one chosen. */
static void checkpoint_survives_failed_allocations(void **state)
{
    sample s;
    sample_init(&s, 2);
    assert_ok(sample_write(*state, 1));
    assert_survives_failed_allocations(
        write_checkpoint(*state, &s.manifest, s.tensors, SAMPLE_TENSORS),
        (void)0);
    assert_survives_failed_allocations(find_and_load(*state), (void)0);
    assert_int_equal(0, seen.count);
    assert_ok(sample_write(*state, 3));
    assert_survives_failed_allocations(pl_checkpoint_prune(*state, 3, 1, -1),
                                       (void)0);
    assert_int_equal(3, sample_found(*state));
    sample_close(&s);
}

static void checkpoint_that_does_not_fit_is_not_loaded(void **state)
{
    pl_checkpoint *found;
    sample s;
    sample_init(&s, 5);
    pl_checkpoint_tensor three[] = { s.tensors[0],
                                     s.tensors[1],
                                     { "more", PL_SHAPE(1), s.bias, 0, 0 } };
    assert_ok(sample_write(*state, 1));
    assert_ok(pl_checkpoint_find(&found, *state));
    assert_fails(PL_SHAPE, "tensor more is missing",
                 pl_checkpoint_load(found, three, 3));
    assert_fails(PL_SHAPE, "tensor bias is not one of the model's",
                 pl_checkpoint_load(found, three, 1));
    three[1].shape = PL_SHAPE(1, 3);
    assert_fails(PL_SHAPE,
                 "tensor bias is float32 [3], the model needs float32 [1, 3]",
                 pl_checkpoint_load(found, three, 2));
    for (int i = 0; i < 6; i++) /* nothing was touched */
        assert_true(s.weight[i] == (float)(5 + i));
    pl_checkpoint_free(found);
    sample_close(&s);
}

static void checkpoint_of_several_writers_is_one(void **state)
{
    sample s;
    char *folder;
    pl_manifest_shard shards[2];
    sample_init(&s, 7);
    assert_ok(pl_checkpoint_begin(&folder, *state, 7));
    assert_ok(pl_checkpoint_write_shard(
        folder, &(pl_checkpoint_part) { 1, 2, &s.tensors[0], 1, NULL, NULL },
        &shards[1]));
    assert_int_equal(-1, sample_found(*state));
    assert_ok(pl_checkpoint_write_shard(
        folder, &(pl_checkpoint_part) { 0, 2, &s.tensors[1], 1, NULL, NULL },
        &shards[0]));
    assert_int_equal(-1, sample_found(*state));
    s.manifest.shards = shards;
    s.manifest.shard_count = 2;
    assert_ok(pl_checkpoint_commit(folder, &s.manifest));
    assert_int_equal(7, sample_found(*state));

    /* A checkpoint with the same tensor twice is refused. */
    assert_ok(pl_checkpoint_write_shard(
        folder, &(pl_checkpoint_part) { 0, 2, s.tensors, 2, NULL, NULL },
        &shards[0]));
    assert_ok(pl_checkpoint_commit(folder, &s.manifest));
    assert_fails(PL_FORMAT, "tensor weight is in two shards",
                 find_and_load(*state));
    pl_mem_free(folder);
    sample_close(&s);
}

static void checkpoint_of_a_newer_program_is_left_alone(void **state)
{
    /* Version 3, with a checksum that is right: see tests/fuzz/corpus. */
    assert_ok(sample_write(*state, 41));
    assert_ok(pl_file_make_folder(test_path(*state, "step-0000000042")));
    pl_map newer;
    assert_ok(
        pl_map_init(&newer, PL_GOLDEN "/../fuzz/corpus/json/manifest_newer"));
    assert_ok(
        pl_file_replace(test_path(*state, "step-0000000042/manifest.json"),
                        newer.data, newer.bytes));
    pl_map_close(&newer);
    /* To fall back to step 41 would discard the work of the newer program. */
    pl_checkpoint *found = NULL;
    assert_fails(PL_UNSUPPORTED, "version 3, this program knows up to 2",
                 pl_checkpoint_find(&found, *state));
    assert_ok(sample_write(*state, 43));
    assert_ok(pl_checkpoint_prune(*state, 43, 1, -1));
    assert_false(pl_file_exists(test_path(*state, "step-0000000041")));
    assert_true(pl_file_exists(test_path(*state, "step-0000000042")));
}

static void checkpoint_pruning_keeps_the_last(void **state)
{
    const char *stay[] = { "step-0000000005", "step-0000000006",
                           "step-0000000009", "step-0000000010", "mine" };
    const char *go[] = { "step-0000000001", "step-0000000002",
                         "step-0000000003", "step-0000000004",
                         ".step-0000000001.gone" };
    for (int64_t step = 1; step <= 6; step++)
        assert_ok(sample_write(*state, step));
    assert_ok(sample_write(*state, 10));
    assert_ok(pl_file_remove_all(test_path(*state, "step-0000000004/" SHARD)));
    assert_ok(pl_file_make_folder(test_path(*state, "step-0000000009")));
    assert_ok(pl_file_make_folder(test_path(*state, ".step-0000000001.gone")));
    assert_ok(pl_file_make_folder(test_path(*state, "mine")));
    assert_ok(pl_checkpoint_prune(*state, 6, 2, -1));
    for (size_t i = 0; i < sizeof stay / sizeof *stay; i++)
        assert_true(pl_file_exists(test_path(*state, stay[i])));
    for (size_t i = 0; i < sizeof go / sizeof *go; i++)
        assert_false(pl_file_exists(test_path(*state, go[i])));
}

static void checkpoint_pruning_spares_one(void **state)
{
    for (int64_t step = 1; step <= 6; step++)
        assert_ok(sample_write(*state, step));
    assert_ok(pl_checkpoint_prune(*state, 6, 2, 2));
    assert_true(pl_file_exists(test_path(*state, "step-0000000002")));
    assert_false(pl_file_exists(test_path(*state, "step-0000000001")));
    assert_false(pl_file_exists(test_path(*state, "step-0000000004")));
    assert_true(pl_file_exists(test_path(*state, "step-0000000005")));
    /* Another one is spared now. */
    assert_ok(pl_checkpoint_prune(*state, 6, 1, 5));
    assert_false(pl_file_exists(test_path(*state, "step-0000000002")));
    assert_true(pl_file_exists(test_path(*state, "step-0000000005")));
    assert_int_equal(6, sample_found(*state));
}

static void checkpoint_pruning_survives_each_failed_call(void **state)
{
    const char *folder = test_path(*state, "checkpoints");
    bool failed = true;
    for (long nth = 0; failed; nth++) {
        for (int64_t step = 1; step <= 3; step++)
            assert_ok(sample_write(folder, step));
        pl_file_fail_at(nth, EIO);
        pl_status status = pl_checkpoint_prune(folder, 3, 1, -1);
        failed = pl_file_fail_off();
        assert_true(status == PL_OK || (failed && status == PL_IO));
        assert_int_equal(3, sample_found(folder));
        assert_int_equal(0, seen.count); /* nothing half removed */
        assert_ok(pl_file_remove_all(folder));
    }
}

static void checkpoint_of_a_step_without_a_name_is_refused(void **state)
{
    char *folder = NULL;
    assert_ok(pl_checkpoint_begin(&folder, *state, PL_MANIFEST_STEP_MAX));
    pl_mem_free(folder);
    assert_fails(
        PL_UNSUPPORTED, "step 10000000000",
        pl_checkpoint_begin(&folder, *state, PL_MANIFEST_STEP_MAX + 1));
    assert_fails(PL_UNSUPPORTED, "step -1",
                 pl_checkpoint_begin(&folder, *state, -1));
}

UNIT_TESTS(
    CHECKPOINT_TEST(checkpoint_written_is_the_golden_one),
    CHECKPOINT_TEST(checkpoint_newest_is_found),
    CHECKPOINT_TEST(checkpoint_of_a_step_without_a_name_is_refused),
    CHECKPOINT_TEST(checkpoint_other_names_are_ignored),
    CHECKPOINT_TEST(checkpoint_with_a_cut_shard_is_skipped),
    CHECKPOINT_TEST(checkpoint_with_a_cut_manifest_is_skipped),
    CHECKPOINT_TEST(checkpoint_with_a_changed_shard_is_skipped),
    CHECKPOINT_TEST(checkpoint_with_a_changed_manifest_is_skipped),
    CHECKPOINT_TEST(checkpoint_not_finished_is_skipped),
    CHECKPOINT_TEST(checkpoint_under_a_wrong_name_is_skipped),
    CHECKPOINT_TEST(checkpoint_before_survives_each_failed_call),
    CHECKPOINT_TEST(checkpoint_of_the_same_step_survives_each_failed_call),
    CHECKPOINT_TEST(checkpoint_leftovers_of_a_crash_do_no_harm),
    CHECKPOINT_TEST(checkpoint_moved_away_counts_until_replaced),
    CHECKPOINT_TEST(checkpoint_finding_survives_each_failed_call),
    CHECKPOINT_TEST(checkpoint_survives_failed_allocations),
    CHECKPOINT_TEST(checkpoint_that_does_not_fit_is_not_loaded),
    CHECKPOINT_TEST(checkpoint_of_several_writers_is_one),
    CHECKPOINT_TEST(checkpoint_of_a_newer_program_is_left_alone),
    CHECKPOINT_TEST(checkpoint_pruning_spares_one),
    CHECKPOINT_TEST(checkpoint_pruning_keeps_the_last),
    CHECKPOINT_TEST(checkpoint_pruning_survives_each_failed_call))
