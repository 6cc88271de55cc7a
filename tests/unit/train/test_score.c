#include "train/score.h"

#include "support/kernels.h"

#include <math.h>

#define MOST 700

/* Over all pairs of a yes and a no. */
static double slow_area(int64_t rows, const float *probs, const int32_t *labels)
{
    double right = 0, pairs = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < rows; j++)
            if (labels[i] == 1 && labels[j] == 0) {
                pairs++;
                right += probs[i] > probs[j]    ? 1
                         : probs[i] == probs[j] ? 0.5
                                                : 0;
            }
    return right / pairs;
}

static pl_score score_of(int64_t rows, const float *probs,
                         const int32_t *labels)
{
    pl_tally *tally;
    pl_score score = { 0 };
    assert_ok(pl_tally_new(&tally));
    for (int64_t first = 0; first < rows; first += 100) {
        pl_view view = { .data = labels + first,
                         .stride = 1,
                         .dtype = PL_INT32 };
        int64_t count = rows - first < 100 ? rows - first : 100;
        assert_ok(pl_tally_add(tally, count, probs + first, &view));
    }
    pl_tally_score(tally, &score);
    pl_tally_free(tally);
    assert_true(score.binary);
    return score;
}

static void score_auc_is_the_share_of_pairs_in_order(void **state)
{
    (void)state;
    for (int round = 0; round < 8; round++) {
        float probs[MOST];
        int32_t labels[MOST];
        int64_t rows = draw_int(2, MOST);
        for (int64_t i = 0; i < rows; i++) {
            /* Odd rounds have many ties. */
            probs[i] =
                round % 2 == 0 ? draw(0, 1) : (float)draw_int(0, 9) / 10.0f;
            labels[i] = i < 2 ? (int32_t)i : draw(0, 1) < probs[i];
        }
        assert_true(is_near(score_of(rows, probs, labels).auc,
                            slow_area(rows, probs, labels), 1e-12));
    }
}

static void score_counts_answers(void **state)
{
    (void)state;
    const float probs[] = { 0.9f, 0.5f, 0.4f, 0.1f, 0.8f };
    const int32_t labels[] = { 1, 0, 1, 0, 1 };
    pl_score score = score_of(5, probs, labels);
    assert_true(is_near(score.accuracy, 3.0 / 5, 1e-12));
    assert_true(is_near(score.precision, 2.0 / 3, 1e-12));
    assert_true(is_near(score.recall, 2.0 / 3, 1e-12));
    assert_true(is_near(score.calibration, 2.7 / 3, 1e-6));
}

static void score_of_one_class_avoids_division_by_zero(void **state)
{
    (void)state;
    const float probs[] = { 0.25f, 0.25f };
    pl_score none = score_of(2, probs, (const int32_t[]) { 0, 0 });
    assert_true(none.auc == 0.5 && none.precision == 0 && none.recall == 0 &&
                none.calibration == 0 && none.accuracy == 1);
    pl_score all = score_of(2, probs, (const int32_t[]) { 1, 1 });
    assert_true(all.auc == 0.5 && all.recall == 0 && all.calibration == 0.25);
}

static pl_status make_and_add(pl_tally **tally)
{
    const float probs[] = { 0.25f, 0.75f };
    const int32_t labels[] = { 0, 1 };
    pl_view view = { .data = labels, .stride = 1, .dtype = PL_INT32 };
    PL_TRY(pl_tally_new(tally));
    pl_status status = pl_tally_add(*tally, 2, probs, &view);
    if (status != PL_OK)
        pl_tally_free(*tally);
    return status;
}

static void tally_survives_each_failed_allocation(void **state)
{
    (void)state;
    pl_tally *tally;
    assert_survives_failed_allocations(make_and_add(&tally),
                                       pl_tally_free(tally));
}

/* Numbers far from 0, in two parts, through an index. */
static void errors_are_those_of_the_definition(void **state)
{
    (void)state;
    const float labels[] = { 1000001, 5, 1000002, 5, 1000003, 5, 1000006, 5 };
    const float predicted[] = {
        1000001, 5, 1000004, 6, 1000003, 4, 1000005, 5
    };
    const uint32_t order[] = { 0, 1, 2, 3 };
    pl_errors *errors;
    pl_score score = { .loss = 7 };
    assert_ok(pl_errors_new(&errors, 2));
    for (int first = 0; first < 4; first += 2) {
        pl_view view = { .data = labels,
                         .index = order + first,
                         .stride = 2,
                         .dtype = PL_FLOAT32 };
        pl_errors_add(errors, 2, predicted + 2 * first, &view);
    }
    pl_errors_score(errors, &score);
    pl_errors_free(errors);
    /* Squares 5 of 14, and 2 of none: that number never changes. */
    assert_true(score.numeric && isnan(score.accuracy) && score.loss == 7);
    assert_true(fabs(score.rmse - (sqrt(1.25) + sqrt(0.5)) / 2) < 1e-12);
    assert_true(fabs(score.mae - (0.75 + 0.5) / 2) < 1e-12);
    assert_true(fabs(score.r2 - (1 - 5.0 / 14) / 2) < 1e-9);
}

static void errors_survive_each_failed_allocation(void **state)
{
    (void)state;
    pl_errors *errors;
    assert_survives_failed_allocations(pl_errors_new(&errors, 3),
                                       pl_errors_free(errors));
}

UNIT_TESTS(cmocka_unit_test(errors_are_those_of_the_definition),
           cmocka_unit_test(errors_survive_each_failed_allocation),
           cmocka_unit_test(score_auc_is_the_share_of_pairs_in_order),
           cmocka_unit_test(score_counts_answers),
           cmocka_unit_test(score_of_one_class_avoids_division_by_zero),
           cmocka_unit_test(tally_survives_each_failed_allocation))
