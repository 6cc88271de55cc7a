#include "data/synthetic_sparse.h"

#include "support/unit.h"

#define NON_ZEROS PL_CLICK_NON_ZEROS

static pl_dataset *open_set(pl_split split, const pl_source_opts *opts)
{
    pl_dataset *set;
    assert_ok(pl_synthetic_sparse_open(&set, split, opts));
    return set;
}

static size_t id_bytes(const pl_dataset *set)
{
    return (size_t)set->count * NON_ZEROS * sizeof *set->ids;
}

static void clicks_have_the_requested_shape(void **state)
{
    (void)state;
    pl_source_opts opts = { .examples = 3000, .features = 5000 };
    pl_dataset *train = open_set(PL_SPLIT_TRAIN, &opts);
    pl_dataset *test = open_set(PL_SPLIT_TEST, &opts);
    assert_int_equal(3000, train->count);
    assert_int_equal(300, test->count);
    assert_true(train->sparse);
    assert_int_equal(5000, train->feature_count);
    assert_int_equal(2, train->classes);
    assert_null(train->values);
    int64_t ones = 0;
    for (int64_t i = 0; i < train->count; i++) {
        assert_int_equal(i * NON_ZEROS, train->row_start[i]);
        ones += pl_view_label(&train->labels, i);
        for (int64_t j = i * NON_ZEROS; j < (i + 1) * NON_ZEROS; j++)
            assert_true(train->ids[j] < 5000);
    }
    assert_in_range(ones, 450, 1500); /* 15 to 50 % */
    pl_dataset_free(train);
    pl_dataset_free(test);
}

/* Half of what is asked for is among the first 5 % of ids. */
static void clicks_are_numbered_by_frequency(void **state)
{
    (void)state;
    pl_source_opts opts = { .examples = 2000, .features = 100000 };
    pl_dataset *set = open_set(PL_SPLIT_TRAIN, &opts);
    int64_t first = 0, last = 0;
    for (int64_t j = 0; j < set->count * NON_ZEROS; j++) {
        first += set->ids[j] < 5000;
        last += set->ids[j] >= 95000;
    }
    assert_true(first > set->count * NON_ZEROS / 2);
    assert_in_range(last, 1, set->count * NON_ZEROS / 50);
    pl_dataset_free(set);
}

static void clicks_depend_on_seed_and_split_only(void **state)
{
    (void)state;
    pl_source_opts opts = { .examples = 5000, .features = 5000, .seed = 3 };
    opts.threads = 1;
    pl_dataset *one = open_set(PL_SPLIT_TRAIN, &opts);
    opts.threads = 3;
    pl_dataset *three = open_set(PL_SPLIT_TRAIN, &opts);
    opts.seed = 4;
    pl_dataset *other = open_set(PL_SPLIT_TRAIN, &opts);
    opts.examples = 50000;
    opts.seed = 3;
    pl_dataset *test = open_set(PL_SPLIT_TEST, &opts);
    assert_int_equal(5000, test->count);
    assert_memory_equal(one->ids, three->ids, id_bytes(one));
    assert_memory_equal(one->labels.data, three->labels.data,
                        5000 * sizeof(int32_t));
    assert_memory_not_equal(one->ids, other->ids, id_bytes(one));
    assert_memory_not_equal(one->ids, test->ids, id_bytes(one));
    pl_dataset_free(one);
    pl_dataset_free(three);
    pl_dataset_free(other);
    pl_dataset_free(test);
}

static void clicks_come_shuffled_in_place(void **state)
{
    (void)state;
    pl_source_opts opts = { .examples = 300, .features = 5000 };
    pl_dataset *set = open_set(PL_SPLIT_TRAIN, &opts);
    pl_reader *reader;
    pl_batch batch;
    int seen[300] = { 0 };
    assert_ok(pl_reader_new(&reader, set, &(pl_reader_opts) { .batch = 100 }));
    for (int b = 0; b < 3; b++) {
        assert_ok(pl_reader_next(reader, &batch));
        assert_ptr_equal(set->ids, batch.ids);
        assert_ptr_equal(set->row_start, batch.row_start);
        for (int64_t r = 0; r < batch.rows; r++) {
            /* Runs of 16 stay together, and so do the 12 at the end. */
            if (batch.row_index[r] % 16 != 0 && r > 0)
                assert_int_equal(batch.row_index[r - 1] + 1,
                                 batch.row_index[r]);
            seen[batch.row_index[r]]++;
            assert_int_equal(pl_view_label(&set->labels, batch.row_index[r]),
                             pl_view_label(&batch.labels, r));
        }
    }
    for (int i = 0; i < 300; i++)
        assert_int_equal(1, seen[i]);
    pl_reader_free(reader);
    assert_ok(pl_reader_new(
        &reader, set, &(pl_reader_opts) { .batch = 200, .one_pass = true }));
    assert_ok(pl_reader_next(reader, &batch));
    assert_null(batch.row_index);
    assert_ok(pl_reader_next(reader, &batch));
    assert_int_equal(100, batch.rows);
    assert_int_equal(200 * NON_ZEROS, batch.row_start[0]);
    pl_reader_free(reader);
    pl_dataset_free(set);
}

static void clicks_refuse_invalid_options(void **state)
{
    (void)state;
    pl_dataset *set = NULL;
    assert_fails(
        PL_USAGE, "255 features, expected 256 to 2^32",
        pl_synthetic_sparse_open(&set, PL_SPLIT_TRAIN,
                                 &(pl_source_opts) { .features = 255 }));
    assert_fails(
        PL_USAGE, "4000000000 examples take",
        pl_synthetic_sparse_open(&set, PL_SPLIT_TRAIN,
                                 &(pl_source_opts) { .examples = 4000000000 }));
    assert_null(set);
}

static void clicks_survive_each_failed_allocation(void **state)
{
    (void)state;
    pl_dataset *set;
    pl_source_opts opts = { .examples = 50, .features = 300, .threads = 2 };
    assert_survives_failed_allocations(
        pl_synthetic_sparse_open(&set, PL_SPLIT_TRAIN, &opts),
        pl_dataset_free(set));
}

UNIT_TESTS(cmocka_unit_test(clicks_have_the_requested_shape),
           cmocka_unit_test(clicks_are_numbered_by_frequency),
           cmocka_unit_test(clicks_depend_on_seed_and_split_only),
           cmocka_unit_test(clicks_come_shuffled_in_place),
           cmocka_unit_test(clicks_refuse_invalid_options),
           cmocka_unit_test(clicks_survive_each_failed_allocation))
