#include "train/recorder.h"

#include "base/clock.h"
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
    opts.targets.stop_loss = 1e9;
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

static curves record_every(pl_every every)
{
    rig r;
    pl_loop_result result;
    rig_init(&r, &(rig_opts) { .threads = 1 });
    pl_loop_opts opts = loop_opts(&r);
    opts.record_every = every;
    assert_ok(pl_loop_run(&opts, &result));
    curves found = take_curves(&r);
    rig_close(&r);
    return found;
}

/* 512 examples are 16 steps of 32; the last step is a point in any case. */
static void curves_have_the_requested_points(void **state)
{
    (void)state;
    const struct {
        pl_every every;
        int points;
    } cases[] = {
        { { PL_EVERY_STEPS, 1 }, 20 },     { { PL_EVERY_STEPS, 5 }, 4 },
        { { PL_EVERY_STEPS, 7 }, 3 },      { { PL_EVERY_EXAMPLES, 64 }, 10 },
        { { PL_EVERY_EPOCHS, 1 }, 2 },     { { PL_EVERY_SECONDS, 1000 }, 1 },
        { { .unit = PL_EVERY_NEVER }, 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        curves found = record_every(cases[i].every);
        assert_int_equal(cases[i].points, found.count[0]);
        assert_int_equal(cases[i].points, found.count[1]);
        assert_int_equal(20, found.step[0]);
    }
}

/* The points of a run add up to its training loss. */
static void points_are_means_of_the_steps_between(void **state)
{
    (void)state;
    rig r;
    pl_loop_result result;
    pl_scalar scalar;
    rig_init(&r, &(rig_opts) { .threads = 1 });
    pl_loop_opts opts = loop_opts(&r);
    opts.record_every = (pl_every) { PL_EVERY_STEPS, 1 };
    opts.test = NULL;
    assert_ok(pl_loop_run(&opts, &result));
    double sum = 0;
    while (pl_metrics_take(r.metrics, &scalar))
        if (strcmp(pl_metrics_tag_name(r.metrics, scalar.tag), "loss") == 0 &&
            scalar.step > 4) /* the last epoch: 16 steps of 20 */
            sum += scalar.value;
    assert_true(fabs(sum / 16 - result.train_loss.loss) < 1e-12);
    assert_int_equal(512, result.train_loss.examples);
    rig_close(&r);
}

/* A job of an hour, ten steps a second: few points, each the mean since the
 * one before; what is shown stays current; the last step is a point. */
static void curves_of_a_long_job_thin_out(void **state)
{
    (void)state;
    rig r;
    pl_recorder recorder;
    rig_init(&r, &(rig_opts) { .threads = 1 });
    assert_ok(
        pl_recorder_init(&recorder, &(pl_recorder_opts) {
                                        .metrics = r.metrics,
                                        .schedule = &r.schedule,
                                        .kernels = pl_kernels_best(),
                                        .params = r.network->params,
                                        .sync = r.sync,
                                        .every = { .unit = PL_EVERY_AUTO },
                                    }));
    uint64_t tenth = (uint64_t)(1e8 / pl_ticks_ns());
    pl_recorder_step step = { .now = tenth, .loss_examples = 10 };
    int loss, rate;
    double sum = 0;
    int since = 0;
    assert_ok(pl_metrics_tag(r.metrics, PL_METRICS_TRAIN_LOSS, &loss));
    assert_ok(pl_metrics_tag(r.metrics, "examples_per_s", &rate));
    curves all = { 0 };
    for (int i = 1; i <= 36000; i++) {
        step.step = i;
        step.loss = 1 + i % 7;
        step.own_examples += i % 2 == 0 ? 20 : 0; /* in the mean 100 a second */
        step.now += tenth;
        pl_recorder_put(&recorder, &step);
        assert_true(pl_metrics_get(r.metrics, loss) ==
                    pl_losses_mean(&recorder.losses).loss);
        curves found = take_curves(&r);
        sum += step.loss;
        since++;
        if (found.count[0] > 0) {
            assert_true(found.value[0] == 10 * sum / (10 * since));
            sum = 0;
            since = 0;
        }
        all.count[0] += found.count[0];
        if (i > 35000 && found.count[4] > 0)
            assert_true(fabs(found.value[4] - 100) < 10);
    }
    assert_in_range(all.count[0], 5000, 9200);
    assert_true(recorder.recorded.steps < recorder.steps);
    pl_recorder_flush(&recorder, false);
    assert_int_equal(36000, take_curves(&r).step[0]);
    rig_close(&r);
}

UNIT_TESTS(
    cmocka_unit_test(curves_have_the_requested_points),
    cmocka_unit_test(points_are_means_of_the_steps_between),
    cmocka_unit_test(curves_of_a_long_job_thin_out),
    cmocka_unit_test(every_curve_ends_at_the_last_step),
    cmocka_unit_test(curves_end_where_a_test_ends_the_training),
    cmocka_unit_test(a_test_changes_no_point_of_the_accuracy),
    cmocka_unit_test(curves_of_a_loss_that_blew_up_end_at_the_last_good_step),
    cmocka_unit_test(an_accuracy_is_a_number_of_answers))
