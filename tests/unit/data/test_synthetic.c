#include "support/unit.h"

#include "data/synthetic.h"

static void synthetic_has_the_requested_shape(void **state)
{
    (void)state;
    pl_dataset *set;
    assert_ok(pl_synthetic_open(&set, PL_SPLIT_TRAIN,
                                &(pl_source_opts) { .shape = PL_SHAPE(3, 5, 5),
                                                    .classes = 1000,
                                                    .examples = 77 }));
    assert_int_equal(77, set->count);
    assert_int_equal(1000, set->classes);
    assert_true(pl_shape_equal(PL_SHAPE(3, 5, 5), set->shape));
    assert_int_equal(75, set->features.stride);
    bool large = false;
    for (int64_t i = 0; i < set->count; i++) {
        int64_t label = pl_view_label(&set->labels, i);
        assert_in_range(label, 0, 999);
        large = large || label > 255;
    }
    assert_true(large);
    pl_dataset_free(set);
    assert_int_equal(0, pl_mem_live());
}

static int64_t count_by_default(pl_shape shape, pl_split split)
{
    pl_dataset *set;
    assert_ok(
        pl_synthetic_open(&set, split, &(pl_source_opts) { .shape = shape }));
    int64_t count = set->count;
    pl_dataset_free(set);
    return count;
}

static void synthetic_default_fits_64_mb_but_has_256_examples(void **state)
{
    (void)state;
    assert_int_equal(10000, count_by_default(PL_SHAPE(28, 28), PL_SPLIT_TRAIN));
    assert_int_equal(1000, count_by_default(PL_SHAPE(28, 28), PL_SPLIT_TEST));
    assert_int_equal((64 << 20) / (3 * 227 * 227),
                     count_by_default(PL_SHAPE(3, 227, 227), PL_SPLIT_TRAIN));
    assert_int_equal(256, count_by_default(PL_SHAPE(1 << 19), PL_SPLIT_TRAIN));
    assert_int_equal(256, count_by_default(PL_SHAPE(1 << 19), PL_SPLIT_TEST));
}

static void synthetic_depends_on_seed_and_split_only(void **state)
{
    (void)state;
    pl_source_opts opts = { .shape = PL_SHAPE(9), .examples = 50, .seed = 3 };
    pl_dataset *a, *b, *test, *other;
    assert_ok(pl_synthetic_open(&a, PL_SPLIT_TRAIN, &opts));
    assert_ok(pl_synthetic_open(&b, PL_SPLIT_TRAIN, &opts));
    assert_ok(pl_synthetic_open(&test, PL_SPLIT_TEST, &opts));
    opts.seed = 4;
    assert_ok(pl_synthetic_open(&other, PL_SPLIT_TRAIN, &opts));
    assert_int_equal(50, test->count);
    assert_memory_equal(a->features.data, b->features.data, 450);
    assert_memory_equal(a->labels.data, b->labels.data, 200);
    assert_memory_not_equal(a->features.data, test->features.data, 450);
    assert_memory_not_equal(a->features.data, other->features.data, 450);
    pl_dataset_free(a);
    pl_dataset_free(b);
    pl_dataset_free(test);
    pl_dataset_free(other);
}

/* The mean image of each class in training, [10, 784]. */
static void class_means(const pl_dataset *set, double means[10][784])
{
    int64_t counts[10] = { 0 };
    memset(means, 0, sizeof(double[10][784]));
    for (int64_t i = 0; i < set->count; i++) {
        int64_t label = pl_view_label(&set->labels, i);
        const uint8_t *row = pl_view_row_u8(&set->features, i);
        counts[label]++;
        for (int j = 0; j < 784; j++)
            means[label][j] += row[j];
    }
    for (int c = 0; c < 10; c++)
        for (int j = 0; j < 784; j++)
            means[c][j] /= (double)counts[c];
}

static int nearest(double means[10][784], const uint8_t *row)
{
    int best = 0;
    double least = 1e30;
    for (int c = 0; c < 10; c++) {
        double sum = 0;
        for (int j = 0; j < 784; j++)
            sum += (row[j] - means[c][j]) * (row[j] - means[c][j]);
        best = sum < least ? c : best;
        least = sum < least ? sum : least;
    }
    return best;
}

static void synthetic_can_be_learnt(void **state)
{
    (void)state;
    static double means[10][784];
    pl_source_opts opts = { .shape = PL_SHAPE(28, 28), .examples = 2000 };
    pl_dataset *train, *test;
    assert_ok(pl_synthetic_open(&train, PL_SPLIT_TRAIN, &opts));
    assert_ok(pl_synthetic_open(&test, PL_SPLIT_TEST, &opts));
    class_means(train, means);
    int right = 0;
    for (int64_t i = 0; i < test->count; i++)
        right += nearest(means, pl_view_row_u8(&test->features, i)) ==
                 pl_view_label(&test->labels, i);
    assert_true(right > 200); /* of 256 */
    pl_dataset_free(train);
    pl_dataset_free(test);
}

static void synthetic_refuses_invalid_options(void **state)
{
    (void)state;
    pl_dataset *set = NULL;
    assert_fails(PL_USAGE, "shape of an example is not known",
                 pl_synthetic_open(&set, PL_SPLIT_TRAIN,
                                   &(pl_source_opts) { .examples = 5 }));
    assert_fails(
        PL_SHAPE, "not positive",
        pl_synthetic_open(&set, PL_SPLIT_TRAIN,
                          &(pl_source_opts) { .shape = PL_SHAPE(3, 0) }));
    assert_fails(PL_USAGE, "-2 classes",
                 pl_synthetic_open(&set, PL_SPLIT_TRAIN,
                                   &(pl_source_opts) { .shape = PL_SHAPE(3),
                                                       .classes = -2 }));
    assert_fails(
        PL_USAGE, "do not fit",
        pl_synthetic_open(&set, PL_SPLIT_TRAIN,
                          &(pl_source_opts) { .shape = PL_SHAPE(3),
                                              .examples = INT64_MAX / 2 }));
    /* Four petabytes. */
    assert_fails(
        PL_USAGE, "4000000000 examples of 1000000 bytes do not fit into",
        pl_synthetic_open(&set, PL_SPLIT_TRAIN,
                          &(pl_source_opts) { .shape = PL_SHAPE(1000, 1000),
                                              .examples = 4000000000 }));
    assert_null(set);
}

static void synthetic_open_survives_each_failed_allocation(void **state)
{
    (void)state;
    pl_dataset *set;
    pl_source_opts opts = { .shape = PL_SHAPE(9), .examples = 50 };
    assert_survives_failed_allocations(
        pl_synthetic_open(&set, PL_SPLIT_TRAIN, &opts), pl_dataset_free(set));
}

UNIT_TESTS(cmocka_unit_test(synthetic_has_the_requested_shape),
           cmocka_unit_test(synthetic_default_fits_64_mb_but_has_256_examples),
           cmocka_unit_test(synthetic_depends_on_seed_and_split_only),
           cmocka_unit_test(synthetic_can_be_learnt),
           cmocka_unit_test(synthetic_refuses_invalid_options),
           cmocka_unit_test(synthetic_open_survives_each_failed_allocation))
