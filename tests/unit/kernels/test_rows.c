/* Kernels that work on rows: softmax and its gradient, accuracy, biases and
 * sums. */
#include "support/kernels.h"

#define MOST_ROWS    100
#define MOST_CLASSES 64
#define MOST         (MOST_ROWS * MOST_CLASSES)

typedef struct fixture {
    guard logits, probs, loss, diff;
    int32_t labels[2 * MOST_ROWS];
    uint8_t byte_labels[2 * MOST_ROWS];
    uint32_t index[MOST_ROWS];
    float probs_expected[MOST], loss_expected[MOST_ROWS];
    float diff_loss[MOST_ROWS], diff_expected[MOST];
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL)
        return -1;
    f->logits = guard_make(MOST);
    f->probs = guard_make(MOST);
    f->loss = guard_make(MOST);
    f->diff = guard_make(MOST);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    guard_drop(&f->logits);
    guard_drop(&f->probs);
    guard_drop(&f->loss);
    guard_drop(&f->diff);
    free(f);
    return 0;
}

/* Labels below `classes`, as one of the ways a data set keeps them. */
static pl_view make_labels(fixture *f, int64_t rows, int64_t classes)
{
    bool bytes = draw_int(0, 1) == 1, indexed = draw_int(0, 1) == 1;
    for (int64_t r = 0; r < 2 * rows; r++) {
        f->labels[r] = (int32_t)draw_int(0, classes - 1);
        f->byte_labels[r] = (uint8_t)draw_int(0, classes - 1);
    }
    for (int64_t r = 0; r < rows; r++)
        f->index[r] = (uint32_t)draw_int(0, 2 * rows - 1);
    return (pl_view) {
        .data = bytes ? (const void *)f->byte_labels : f->labels,
        .index = indexed ? f->index : NULL,
        .stride = 1,
        .dtype = bytes ? PL_UINT8 : PL_INT32,
        .scale = 1.0f,
    };
}

static void assert_all_near(const pl_kernels *table, const char *what,
                            const float *got, const float *expected,
                            int64_t count, double absolute, double relative)
{
    for (int64_t i = 0; i < count; i++) {
        double exact = (double)expected[i];
        if (!is_near((double)got[i], exact, absolute + relative * fabs(exact)))
            fail_msg("%s %s: element %lld is %.9g, not %.9g", table->name, what,
                     (long long)i, (double)got[i], exact);
    }
}

/* Logits of this size: a difference of two of them loses that much. */
static void check_softmax(fixture *f, int64_t rows, int64_t classes, float size)
{
    const pl_kernels *reference = reference_table();
    int64_t count = rows * classes;
    float *logits = guard_floats(&f->logits, count);
    draw_all(logits, count, -size, size);
    draw_all(f->diff_loss, rows, 0, 1);
    pl_view labels = make_labels(f, rows, classes);
    reference->softmax_xent(rows, classes, logits, &labels, f->probs_expected,
                            f->loss_expected);
    reference->softmax_xent_grad(rows, classes, f->probs_expected, &labels,
                                 f->diff_loss, f->diff_expected);
    FOR_EACH_TABLE(table)
    {
        float *probs = guard_floats(&f->probs, count);
        float *loss = guard_floats(&f->loss, rows);
        float *diff = guard_floats(&f->diff, count);
        table->softmax_xent(rows, classes, logits, &labels, probs, loss);
        table->softmax_xent_grad(rows, classes, probs, &labels, f->diff_loss,
                                 diff);
        assert_all_near(table, "probability", probs, f->probs_expected, count,
                        1e-30, 2e-6 + 1e-7 * (double)size);
        assert_all_near(table, "loss", loss, f->loss_expected, rows, 1e-6,
                        1e-6);
        assert_all_near(table, "gradient", diff, f->diff_expected, count,
                        2e-6 + 1e-7 * (double)size, 0);
        guard_check(&f->probs);
        guard_check(&f->loss);
        guard_check(&f->diff);
    }
}

static const int64_t row_counts[] = { 1, 2, 3, 7, 15, 16, 17, 31, 33, 100 };

static void softmax_matches_the_reference(void **state)
{
    for (size_t i = 0; i < sizeof row_counts / sizeof *row_counts; i++)
        for (int64_t classes = 1; classes <= 40; classes++)
            check_softmax(*state, row_counts[i], classes, 4);
}

static void softmax_handles_huge_and_tiny_logits(void **state)
{
    const float sizes[] = { 1e-30f, 1e-6f, 50, 80, 1000, 1e10f, 1e38f };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int64_t classes = 2; classes <= 40; classes += 19) {
            fixture *f = *state;
            const int64_t rows = 17;
            float *logits = guard_floats(&f->logits, rows * classes);
            draw_all(logits, rows * classes, -sizes[i], sizes[i]);
            pl_view labels = make_labels(f, rows, classes);
            FOR_EACH_TABLE(table)
            {
                float *probs = guard_floats(&f->probs, rows * classes);
                float *loss = guard_floats(&f->loss, rows);
                table->softmax_xent(rows, classes, logits, &labels, probs,
                                    loss);
                for (int64_t r = 0; r < rows; r++) {
                    double sum = 0;
                    for (int64_t c = 0; c < classes; c++)
                        sum += (double)probs[r * classes + c];
                    assert_true(is_near(sum, 1, 1e-5));
                    assert_true(isfinite(loss[r]) && loss[r] > -1e-6f);
                }
            }
        }
}

/* Wherever it stands, also where the label does not point. */
static void softmax_of_a_logit_that_is_not_finite_has_no_finite_loss(
    void **state)
{
    fixture *f = *state;
    const float bad[] = { NAN, -NAN, INFINITY };
    for (int64_t classes = 1; classes <= 40; classes++)
        for (int64_t at = 0; at < classes; at++)
            for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
                float *logits = guard_floats(&f->logits, 2 * classes);
                draw_all(logits, 2 * classes, -2, 2);
                logits[at] = bad[b];
                pl_view labels = make_labels(f, 2, classes);
                FOR_EACH_TABLE(table)
                {
                    float *probs = guard_floats(&f->probs, 2 * classes);
                    float *loss = guard_floats(&f->loss, 2);
                    table->softmax_xent(2, classes, logits, &labels, probs,
                                        loss);
                    if (isfinite(loss[0]))
                        fail_msg("%s: %g among %lld logits gives loss %g",
                                 table->name, (double)bad[b],
                                 (long long)classes, (double)loss[0]);
                    assert_true(isfinite(loss[1])); /* the row beside it */
                }
            }
}

/* -infinity is an answer that is ruled out. */
static void softmax_takes_minus_infinity_as_impossible(void **state)
{
    (void)state;
    const float logits[] = { 0, -INFINITY, 0 };
    const int32_t right = 0, wrong = 1;
    pl_view label = { .data = &right, .stride = 1, .dtype = PL_INT32 };
    FOR_EACH_TABLE(table)
    {
        float probs[3], loss;
        label.data = &right;
        table->softmax_xent(1, 3, logits, &label, probs, &loss);
        assert_true(is_near((double)loss, log(2), 1e-6) && probs[1] == 0);
        label.data = &wrong;
        table->softmax_xent(1, 3, logits, &label, probs, &loss);
        assert_true(loss == INFINITY);
    }
}

#define SWEEP 100000

/* The exponential, seen through the probabilities of logits 0 and x. */
static void exponential_is_exact_to_four_units(void **state)
{
    (void)state;
    const uint8_t zero = 0;
    pl_view label = { .data = &zero, .stride = 0, .dtype = PL_UINT8 };
    FOR_EACH_TABLE(table)
    {
        double worst = 0;
        for (int i = 0; i < SWEEP; i++) {
            const float x = -86.5f * (float)i / SWEEP;
            const float logits[] = { 0, x };
            float probs[2], loss;
            table->softmax_xent(1, 2, logits, &label, probs, &loss);
            double e = exp((double)x);
            worst = fmax(worst, ulps(probs[1], e / (1 + e)));
        }
        print_message("%s exp: %.2f ulp\n", table->name, worst);
        assert_true(worst <= 4);
    }
}

/* The logarithm, seen through the loss of equal logits (log of their number)
 * and of logits 0 and x (log of 1 + exp x). */
static void logarithm_is_exact_to_two_units(void **state)
{
    (void)state;
    enum {
        CLASSES = 3000
    };
    static float logits[CLASSES], probs[CLASSES];
    const uint8_t zero = 0;
    pl_view label = { .data = &zero, .stride = 0, .dtype = PL_UINT8 };
    FOR_EACH_TABLE(table)
    {
        double worst = 0;
        float loss;
        for (int64_t classes = 2; classes <= CLASSES; classes++) {
            table->softmax_xent(1, classes, logits, &label, probs, &loss);
            worst = fmax(worst, ulps(loss, log((double)classes)));
        }
        print_message("%s log: %.2f ulp\n", table->name, worst);
        assert_true(worst <= 2);
        for (int i = 0; i < SWEEP; i++) {
            const float pair[] = { 0, -20.0f * (float)i / SWEEP };
            table->softmax_xent(1, 2, pair, &label, probs, &loss);
            assert_true(is_near((double)loss, log1p(exp((double)pair[1])),
                                2 * (double)FLT_EPSILON));
        }
    }
}

static void accuracy_matches_the_reference(void **state)
{
    fixture *f = *state;
    for (int64_t classes = 1; classes <= 40; classes++) {
        const int64_t rows = 33;
        float *logits = guard_floats(&f->logits, rows * classes);
        for (int64_t i = 0; i < rows * classes; i++)
            logits[i] =
                (float)draw_int(0, 5); /* equal ones: the first counts */
        pl_view labels = make_labels(f, rows, classes);
        reference_table()->accuracy(rows, classes, logits, &labels,
                                    f->loss_expected);
        FOR_EACH_TABLE(table)
        {
            float *hit = guard_floats(&f->loss, rows);
            table->accuracy(rows, classes, logits, &labels, hit);
            assert_memory_equal(f->loss_expected, hit, sizeof(float[33]));
            guard_check(&f->loss);
        }
    }
}

static void bias_and_sums_over_rows_match_the_reference(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < sizeof row_counts / sizeof *row_counts; i++)
        for (int64_t row = 1; row <= 40; row++) {
            const int64_t rows = row_counts[i], count = rows * row;
            float *src = guard_floats(&f->logits, count);
            float *bias = guard_floats(&f->probs, row);
            draw_all(src, count, -1, 1);
            draw_all(bias, row, -1, 1);
            reference_table()->bias(rows, row, src, bias, f->probs_expected);
            reference_table()->sum_rows(rows, row, src, f->loss_expected);
            FOR_EACH_TABLE(table)
            {
                float *dst = guard_floats(&f->diff, count);
                table->bias(rows, row, src, bias, dst);
                assert_memory_equal(f->probs_expected, dst,
                                    (size_t)count * sizeof *dst);
                guard_check(&f->diff);
                memcpy(dst, src, (size_t)count * sizeof *dst);
                table->bias(rows, row, dst, bias, dst);
                assert_memory_equal(f->probs_expected, dst,
                                    (size_t)count * sizeof *dst);
                float *sums = guard_floats(&f->loss, row);
                table->sum_rows(rows, row, src, sums);
                assert_all_near(table, "sum_rows", sums, f->loss_expected, row,
                                1e-6 * (double)rows, 0);
                guard_check(&f->loss);
            }
        }
}

static void sums_match_the_reference(void **state)
{
    fixture *f = *state;
    for (int64_t n = 1; n <= MOST; n = n < 70 ? n + 1 : n + 333) {
        float *src = guard_floats(&f->logits, n);
        draw_all(src, n, -1, 1);
        double sum = reference_table()->sum(n, src);
        double squares = reference_table()->sum_squares(n, src);
        FOR_EACH_TABLE(table)
        {
            double limit = 1e-7 * (double)n + 1e-7;
            assert_true(is_near(table->sum(n, src), sum, limit));
            assert_true(is_near(table->sum_squares(n, src), squares, limit));
        }
    }
}

/* Single precision alone would stop at 2^24. */
static void sum_of_many_numbers_loses_none(void **state)
{
    (void)state;
    const int64_t n = 20 * 1000 * 1000;
    float *ones = pl_mem_alloc((size_t)n, sizeof *ones);
    assert_non_null(ones);
    for (int64_t i = 0; i < n; i++)
        ones[i] = 1;
    FOR_EACH_TABLE(table)
    {
        assert_true(table->sum(n, ones) == (double)n);
        assert_true(table->sum_squares(n, ones) == (double)n);
    }
    pl_mem_free(ones);
}

static void table_names_are_found(void **state)
{
    (void)state;
    assert_null(pl_kernels_find("abacus"));
    assert_non_null(pl_kernels_find(pl_kernels_best()->name));
    FOR_EACH_TABLE(table)
    {
        assert_ptr_equal(table, *each_);
        print_message("%s: %d lanes\n", table->name, table->lanes);
    }
}

#define WITH_FIXTURE(test)                                                     \
    cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(
    WITH_FIXTURE(softmax_matches_the_reference),
    WITH_FIXTURE(softmax_handles_huge_and_tiny_logits),
    WITH_FIXTURE(softmax_of_a_logit_that_is_not_finite_has_no_finite_loss),
    cmocka_unit_test(softmax_takes_minus_infinity_as_impossible),
    cmocka_unit_test(exponential_is_exact_to_four_units),
    cmocka_unit_test(logarithm_is_exact_to_two_units),
    WITH_FIXTURE(accuracy_matches_the_reference),
    WITH_FIXTURE(bias_and_sums_over_rows_match_the_reference),
    WITH_FIXTURE(sums_match_the_reference),
    cmocka_unit_test(sum_of_many_numbers_loses_none),
    cmocka_unit_test(table_names_are_found))
