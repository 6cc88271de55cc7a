#include "train/losses.h"

#include "support/unit.h"

#include <math.h>

static pl_losses made(int64_t epoch_steps)
{
    pl_losses losses = { 0 };
    pl_losses_init(&losses, epoch_steps);
    return losses;
}

static void a_point_is_the_mean_since_the_one_before(void **state)
{
    (void)state;
    pl_losses losses = made(0);
    assert_true(isnan(pl_losses_point(&losses).loss));
    pl_losses_add(&losses, 4, 10);
    assert_true(pl_losses_point(&losses).loss == 4);
    pl_losses_add(&losses, 1, 10);
    pl_losses_add(&losses, 2, 10);
    pl_losses_add(&losses, 6, 10);
    pl_mean_loss point = pl_losses_point(&losses);
    assert_true(point.loss == 3);
    assert_int_equal(30, point.examples);
    assert_true(isnan(pl_losses_point(&losses).loss));
}

static void a_batch_weighs_as_much_as_it_has_examples(void **state)
{
    (void)state;
    pl_losses losses = made(0);
    pl_losses_add(&losses, 1, 30);
    pl_losses_add(&losses, 5, 10);
    assert_true(pl_losses_mean(&losses).loss == 2);
    assert_int_equal(40, pl_losses_mean(&losses).examples);
    assert_true(pl_losses_point(&losses).loss == 2);
}

/* The mean of the numbers from `first` on up to `last`. */
static double mean_of(int first, int last)
{
    return 0.5 * (first + last);
}

static void the_training_loss_covers_the_last_epoch(void **state)
{
    (void)state;
    pl_losses losses = made(7);
    assert_true(isnan(pl_losses_mean(&losses).loss));
    for (int step = 1; step <= 100; step++) {
        pl_losses_add(&losses, step, 3);
        int first = step > 7 ? step - 6 : 1;
        pl_mean_loss mean = pl_losses_mean(&losses);
        assert_true(mean.loss == mean_of(first, step));
        assert_int_equal(3 * (step - first + 1), mean.examples);
        if (step % 5 == 0) /* points change nothing of it */
            pl_losses_point(&losses);
    }
}

static void the_loss_of_a_long_epoch_covers_its_last_thousand_steps(
    void **state)
{
    (void)state;
    const int64_t epochs[] = { 0, 1000, 1001, 60000 };
    for (size_t i = 0; i < sizeof epochs / sizeof *epochs; i++) {
        pl_losses losses = made(epochs[i]);
        for (int step = 1; step <= 2500; step++)
            pl_losses_add(&losses, step, 1);
        assert_true(pl_losses_mean(&losses).loss == mean_of(1501, 2500));
        assert_int_equal(1000, pl_losses_mean(&losses).examples);
    }
}

static void the_mean_of_fewer_steps_covers_the_last_ones(void **state)
{
    (void)state;
    pl_losses losses = made(50);
    assert_true(isnan(pl_losses_last(&losses, 20).loss));
    for (int step = 1; step <= 70; step++)
        pl_losses_add(&losses, step, 1);
    assert_true(pl_losses_last(&losses, 20).loss == mean_of(51, 70));
    assert_true(pl_losses_last(&losses, 60).loss == mean_of(21, 70));
}

static void the_mean_restarts_after_a_rollback(void **state)
{
    (void)state;
    pl_losses losses = made(0);
    pl_losses_add(&losses, 9, 1);
    pl_losses_init(&losses, 0);
    assert_true(isnan(pl_losses_mean(&losses).loss));
    pl_losses_add(&losses, 2, 1);
    assert_true(pl_losses_mean(&losses).loss == 2);
    assert_true(pl_losses_point(&losses).loss == 2);
}

UNIT_TESTS(
    cmocka_unit_test(a_point_is_the_mean_since_the_one_before),
    cmocka_unit_test(a_batch_weighs_as_much_as_it_has_examples),
    cmocka_unit_test(the_training_loss_covers_the_last_epoch),
    cmocka_unit_test(the_loss_of_a_long_epoch_covers_its_last_thousand_steps),
    cmocka_unit_test(the_mean_of_fewer_steps_covers_the_last_ones),
    cmocka_unit_test(the_mean_restarts_after_a_rollback))
