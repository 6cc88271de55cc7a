#include "train/recorder.h"

#include "support/train.h"
#include "train/loop/loop.h"

#include <math.h>

#define TAGS 7

/* The curves of a training, by name: the last step and value of each. */
typedef struct curves {
    int64_t step[TAGS];
    double value[TAGS];
    int count[TAGS];
} curves;

static const char *const names[TAGS] = {
    "loss",           "accuracy",      "learning_rate", "gradient_norm",
    "examples_per_s", "waiting_share", "test_loss",
};

static curves take_curves(const rig *r)
{
    curves found = { 0 };
    pl_scalar scalar;
    while (pl_metrics_take(r->metrics, &scalar))
        for (int i = 0; i < TAGS; i++)
            if (strcmp(pl_metrics_tag_name(r->metrics, scalar.tag), names[i]) ==
                0) {
                assert_true(scalar.step >= found.step[i]);
                found.step[i] = scalar.step;
                found.value[i] = scalar.value;
                found.count[i]++;
            }
    return found;
}

static pl_loop_opts loop_opts(const rig *r)
{
    pl_loop_opts opts = rig_loop(r);
    opts.order.batch = 32;
    opts.steps = 20;
    return opts;
}

/* All of it takes less than the 50 ms from one point to the next. */
static void every_curve_ends_at_the_last_step(void **state)
{
    (void)state;
    for (int every = 0; every <= 5; every += 5) {
        rig r;
        pl_loop_result result;
        rig_init(&r, &(rig_opts) { .threads = 1 });
        pl_loop_opts opts = loop_opts(&r);
        if (every > 0)
            opts.eval_every = (pl_every) { PL_EVERY_STEPS, every };
        assert_ok(pl_loop_run(&opts, &result));
        curves found = take_curves(&r);
        for (int i = 0; i < TAGS; i++)
            assert_int_equal(20, found.step[i]);
        rig_close(&r);
    }
}

static void curves_end_where_a_test_ends_the_training(void **state)
{
    (void)state;
    rig r;
    pl_loop_result result;
    rig_init(&r, &(rig_opts) { .threads = 1 });
    pl_loop_opts opts = loop_opts(&r);
    opts.eval_every = (pl_every) { PL_EVERY_STEPS, 7 };
    opts.has_stop_loss = true;
    opts.stop_loss = 1e9;
    assert_ok(pl_loop_run(&opts, &result));
    assert_int_equal(PL_STOPPED_STOP_LOSS, result.stopped_by);
    curves found = take_curves(&r);
    for (int i = 0; i < TAGS; i++)
        assert_int_equal(7, found.step[i]);
    rig_close(&r);
}

/* The point of the accuracy at the end of a training. */
static double last_accuracy(int64_t steps, bool tests)
{
    rig r;
    pl_loop_result result;
    rig_init(&r, &(rig_opts) { .threads = 1 });
    pl_loop_opts opts = loop_opts(&r);
    opts.steps = steps;
    if (!tests)
        opts.test = NULL;
    opts.eval_every = (pl_every) { PL_EVERY_STEPS, 1 };
    assert_ok(pl_loop_run(&opts, &result));
    curves found = take_curves(&r);
    assert_int_equal(steps, found.step[1]);
    rig_close(&r);
    return found.value[1];
}

/* A test uses the memory of the training's results, so what is recorded of
 * the last batch must be taken before. */
static void a_test_changes_no_point_of_the_accuracy(void **state)
{
    (void)state;
    for (int64_t steps = 1; steps <= 12; steps++)
        assert_true(last_accuracy(steps, false) == last_accuracy(steps, true));
}

/* What the step that failed left is no point of the last good one. */
static void curves_of_a_loss_that_blew_up_end_at_the_last_good_step(
    void **state)
{
    (void)state;
    rig r;
    pl_loop_result result;
    rig_init(&r, &(rig_opts) { .lr = 3e38 });
    pl_loop_opts opts = loop_opts(&r);
    assert_int_equal(PL_NUMERIC, pl_loop_run(&opts, &result));
    curves found = take_curves(&r);
    assert_int_equal(result.progress.step, found.step[0]);
    assert_int_equal(result.progress.step, found.step[2]);
    assert_true(isfinite(found.value[0]));
    assert_true(isfinite(found.value[3]));
    rig_close(&r);
}

/* Shares of float32 add up to no exact fraction; the score is one. */
static void an_accuracy_is_a_number_of_answers(void **state)
{
    (void)state;
    for (int64_t steps = 1; steps < 8; steps++) {
        rig r;
        pl_loop_result result;
        rig_init(&r, &(rig_opts) { .threads = 2, .examples = 3000 });
        pl_loop_opts opts = loop_opts(&r);
        opts.steps = steps;
        opts.eval_batch = 77;
        assert_ok(pl_loop_run(&opts, &result));
        double all = (double)r.test->count;
        double right = round(result.test.accuracy * all);
        assert_true(right > 0);
        assert_true(result.test.accuracy == right / all);
        rig_close(&r);
    }
}

UNIT_TESTS(
    cmocka_unit_test(every_curve_ends_at_the_last_step),
    cmocka_unit_test(curves_end_where_a_test_ends_the_training),
    cmocka_unit_test(a_test_changes_no_point_of_the_accuracy),
    cmocka_unit_test(curves_of_a_loss_that_blew_up_end_at_the_last_good_step),
    cmocka_unit_test(an_accuracy_is_a_number_of_answers))
