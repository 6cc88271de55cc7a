#include "support/folder.h"
#include "support/unit.h"

#include "data/source.h"

static void source_opens_each_built_in_by_name(void **state)
{
    (void)state;
    pl_dataset *set;
    pl_source_opts opts = { .shape = PL_SHAPE(4), .examples = 20 };
    assert_ok(pl_source_open(&set, "synthetic", PL_SPLIT_TRAIN, &opts));
    assert_string_equal("synthetic", set->ops->kind);
    pl_dataset_free(set);
    assert_ok(pl_source_open(&set, "digits", PL_SPLIT_TEST, NULL));
    assert_string_equal("digits", set->name);
    pl_dataset_free(set);
}

static void source_hands_the_folder_on(void **state)
{
    pl_dataset *set;
    char source[128];
    snprintf(source, sizeof source, "mnist:%s", (const char *)*state);
    assert_fails(PL_NOTFOUND, source,
                 pl_source_open(&set, source, PL_SPLIT_TRAIN, NULL));
    snprintf(source, sizeof source, "idx:%s", (const char *)*state);
    assert_fails(PL_NOTFOUND, source,
                 pl_source_open(&set, source, PL_SPLIT_TRAIN, NULL));
}

/* The label of every example of a set, in file order. */
static int64_t read_labels(pl_dataset *set, int64_t *labels)
{
    pl_reader *reader;
    pl_batch batch;
    int64_t count = 0;
    assert_ok(pl_reader_new(
        &reader, set, &(pl_reader_opts) { .batch = 7, .one_pass = true }));
    while (pl_reader_next(reader, &batch) == PL_OK && batch.rows > 0)
        for (int64_t r = 0; r < batch.rows; r++)
            labels[count++] = pl_view_label(&batch.labels, r);
    pl_reader_free(reader);
    return count;
}

static void source_holds_out_the_last_examples(void **state)
{
    (void)state;
    const char *const sources[] = { "synthetic", "synthetic-sparse" };
    for (int i = 0; i < 2; i++) {
        pl_dataset *whole, *train, *test;
        int64_t all[100], parts[100];
        pl_source_opts opts = { .shape = PL_SHAPE(4),
                                .examples = 100,
                                .features = 1000 };
        assert_ok(pl_source_open(&whole, sources[i], PL_SPLIT_TRAIN, &opts));
        opts.holdout = 0.25;
        assert_ok(pl_source_open(&train, sources[i], PL_SPLIT_TRAIN, &opts));
        assert_ok(pl_source_open(&test, sources[i], PL_SPLIT_TEST, &opts));
        assert_int_equal(75, train->count);
        assert_int_equal(25, test->count);
        assert_int_equal(100, read_labels(whole, all));
        assert_int_equal(75, read_labels(train, parts));
        assert_int_equal(25, read_labels(test, parts + 75));
        assert_memory_equal(all, parts, sizeof all);
        pl_dataset_free(whole);
        pl_dataset_free(train);
        pl_dataset_free(test);
    }
    pl_dataset *set = NULL;
    pl_source_opts few = { .shape = PL_SHAPE(4),
                           .examples = 5,
                           .holdout = 0.1 };
    assert_fails(PL_USAGE, "--holdout 0.1: that would be 0 of the 5 examples",
                 pl_source_open(&set, "synthetic", PL_SPLIT_TRAIN, &few));
    assert_null(set);
}

/* The validation part of the usual MNIST loader are the first examples. */
static void source_trains_on_the_last_examples_only(void **state)
{
    (void)state;
    const char *const sources[] = { "synthetic", "synthetic-sparse" };
    for (int i = 0; i < 2; i++) {
        pl_dataset *whole, *train, *test;
        int64_t all[100], part[100];
        pl_source_opts opts = { .shape = PL_SHAPE(4),
                                .examples = 100,
                                .features = 1000 };
        assert_ok(pl_source_open(&whole, sources[i], PL_SPLIT_TRAIN, &opts));
        assert_ok(pl_source_open(&test, sources[i], PL_SPLIT_TEST, &opts));
        int64_t tests = test->count;
        pl_dataset_free(test);
        opts.train_examples = 60;
        assert_ok(pl_source_open(&train, sources[i], PL_SPLIT_TRAIN, &opts));
        assert_ok(pl_source_open(&test, sources[i], PL_SPLIT_TEST, &opts));
        assert_int_equal(tests, test->count);
        read_labels(whole, all);
        assert_int_equal(60, read_labels(train, part));
        assert_memory_equal(all + 40, part, 60 * sizeof *part);
        pl_dataset_free(train);
        opts.holdout = 0.25;
        assert_ok(pl_source_open(&train, sources[i], PL_SPLIT_TRAIN, &opts));
        assert_int_equal(60, read_labels(train, part));
        assert_memory_equal(all + 15, part, 60 * sizeof *part);
        pl_dataset_free(whole);
        pl_dataset_free(train);
        pl_dataset_free(test);
        pl_dataset *set = NULL;
        opts.train_examples = 76;
        assert_fails(PL_USAGE, "has 75 examples to train on",
                     pl_source_open(&set, sources[i], PL_SPLIT_TRAIN, &opts));
        assert_null(set);
    }
}

static void source_suggests_the_nearest_name(void **state)
{
    (void)state;
    pl_dataset *set;
    assert_fails(PL_USAGE, "unknown data source 'minst'; did you mean 'mnist'",
                 pl_source_open(&set, "minst:data", PL_SPLIT_TRAIN, NULL));
    assert_fails(PL_USAGE, "did you mean 'digits'",
                 pl_source_open(&set, "digit", PL_SPLIT_TRAIN, NULL));
    assert_fails(PL_USAGE, "expected digits | mnist:DIR | idx:DIR | npy:FILE",
                 pl_source_open(&set, "/data/x", PL_SPLIT_TRAIN, NULL));
    assert_fails(PL_USAGE, "unknown data source ''",
                 pl_source_open(&set, "", PL_SPLIT_TRAIN, NULL));
}

static void source_refuses_a_missing_or_needless_folder(void **state)
{
    (void)state;
    pl_dataset *set;
    assert_fails(PL_USAGE, "'mnist' does not name a folder, expected mnist:DIR",
                 pl_source_open(&set, "mnist", PL_SPLIT_TRAIN, NULL));
    assert_fails(PL_USAGE, "expected idx:DIR",
                 pl_source_open(&set, "idx:", PL_SPLIT_TRAIN, NULL));
    assert_fails(PL_USAGE, "'digits' with nothing after it",
                 pl_source_open(&set, "digits:here", PL_SPLIT_TRAIN, NULL));
}

static void source_open_survives_each_failed_allocation(void **state)
{
    (void)state;
    pl_dataset *set;
    pl_source_opts opts = { .shape = PL_SHAPE(4), .examples = 20 };
    assert_survives_failed_allocations(
        pl_source_open(&set, "synthetic", PL_SPLIT_TRAIN, &opts),
        pl_dataset_free(set));
}

UNIT_TESTS(cmocka_unit_test(source_opens_each_built_in_by_name),
           TEST_IN_FOLDER(source_hands_the_folder_on),
           cmocka_unit_test(source_holds_out_the_last_examples),
           cmocka_unit_test(source_trains_on_the_last_examples_only),
           cmocka_unit_test(source_suggests_the_nearest_name),
           cmocka_unit_test(source_refuses_a_missing_or_needless_folder),
           cmocka_unit_test(source_open_survives_each_failed_allocation))
