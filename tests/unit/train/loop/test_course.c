/* What a worker does at which moment, from joining to leaving.
 *
 * Invariants and the tests that check them (C1 and C2: the simulator):
 *   course C3  course_of_a_follower_leaves_the_job_to_the_chief
 *   course C4  course_asks_for_a_share_where_an_epoch_ends,
 *              course_returns_to_the_count_of_the_share
 *   course C5  course_saves_the_best_at_once
 *   course C6  course_does_nothing_else_in_the_middle_of_a_round */
#include "train/loop/course.h"

#include "support/unit.h"

#include <math.h>

#define PER_EPOCH 3

/* A follower in async that has joined. */
static void start(pl_course *c)
{
    pl_course_init(c,
                   &(pl_course_opts) {
                       .worker = 1,
                       .follower = true,
                       .own_pace = true,
                       .shares = true,
                       .end_step = INT64_MAX,
                       .end_own = 2 * PER_EPOCH,
                       .per_epoch = PER_EPOCH,
                       .eval_every = { PL_EVERY_NEVER, 0 },
                       .save_every = { PL_EVERY_NEVER, 0 },
                       .histograms_every = { PL_EVERY_NEVER, 0 },
                   },
                   0);
    assert_int_equal(PL_ACT_JOIN, pl_course_next(c, false, 0));
    pl_course_joined(c, &(pl_standing) { 0 });
}

static void make_step(pl_course *c)
{
    assert_int_equal(PL_ACT_STEP, pl_course_next(c, false, 0));
    pl_course_stepped(c, &(pl_commit) { .step = c->step + 1 });
}

/* C6 */
static void course_does_nothing_else_in_the_middle_of_a_round(void **state)
{
    (void)state;
    pl_course c;
    pl_course_init(&c,
                   &(pl_course_opts) {
                       .end_step = 100,
                       .end_own = INT64_MAX,
                       .eval_every = { PL_EVERY_NEVER, 0 },
                       .save_every = { PL_EVERY_STEPS, 2 },
                       .histograms_every = { PL_EVERY_NEVER, 0 },
                   },
                   0);
    assert_int_equal(PL_ACT_JOIN, pl_course_next(&c, false, 0));
    pl_course_joined(&c, &(pl_standing) { 0 });
    for (int64_t step = 1; step <= 3; step++) {
        assert_int_equal(PL_ACT_STEP, pl_course_next(&c, step > 1, 0));
        pl_course_stepped(&c,
                          &(pl_commit) { .step = step, .midway = step < 3 });
    }
    /* The checkpoint of step 2, then the interrupt. */
    assert_int_equal(PL_ACT_PAUSE, pl_course_next(&c, true, 0));
    assert_int_equal(PL_ACT_SAVE, pl_course_next(&c, true, 0));
    assert_int_equal(PL_ACT_SUM_UP, pl_course_next(&c, true, 0));
    assert_int_equal(PL_STOPPED_INTERRUPT, c.stopped_by);
}

static void course_of_a_follower_leaves_the_job_to_the_chief(void **state)
{
    (void)state;
    pl_course c;
    pl_act act;
    pl_course_init(&c,
                   &(pl_course_opts) {
                       .worker = 1,
                       .follower = true,
                       .tests = true,
                       .by_steps = true,
                       .end_step = 3,
                       .end_own = INT64_MAX,
                       .eval_every = { PL_EVERY_STEPS, 1 },
                       .save_every = { PL_EVERY_STEPS, 1 },
                       .histograms_every = { PL_EVERY_STEPS, 1 },
                       .targets = { .keep_best = true },
                       .kept_loss = INFINITY,
                   },
                   0);
    while ((act = pl_course_next(&c, false, 0)) != PL_ACT_END) {
        assert_int_not_equal(PL_ACT_PAUSE, act);
        assert_int_not_equal(PL_ACT_SAVE, act);
        assert_int_not_equal(PL_ACT_SAVE_BEST, act);
        assert_int_not_equal(PL_ACT_SETTLE, act);
        assert_int_not_equal(PL_ACT_SAVE_LAST, act);
        if (act == PL_ACT_JOIN)
            pl_course_joined(&c, &(pl_standing) { 0 });
        else if (act == PL_ACT_STEP)
            pl_course_stepped(&c, &(pl_commit) { .step = c.step + 1 });
        else if (act == PL_ACT_TEST || act == PL_ACT_TEST_LAST)
            pl_course_tested(&c, 1.0 / (double)(c.step + 1), 0.5);
    }
    assert_int_equal(3, c.step);
}

/* C4 */
static void course_asks_for_a_share_where_an_epoch_ends(void **state)
{
    (void)state;
    pl_course c;
    start(&c);
    for (int i = 0; i < PER_EPOCH; i++)
        make_step(&c);
    assert_int_equal(PL_ACT_SHARE, pl_course_next(&c, false, 0));
    pl_course_shared(&c, &(pl_share) { .worker = 1, .own = PER_EPOCH });
    make_step(&c);
    assert_int_equal(PER_EPOCH + 1, c.own);
}

/* Keyed parameters: a commit has the outcome of the gradient before, so the
 * last one of an epoch is counted before it is known that it was dropped. */
static void course_returns_to_the_count_of_the_share(void **state)
{
    (void)state;
    pl_course c;
    start(&c);
    for (int i = 0; i < PER_EPOCH; i++)
        make_step(&c);
    assert_int_equal(PL_ACT_SHARE, pl_course_next(&c, false, 0));
    pl_course_shared(&c, &(pl_share) { .worker = 1, .own = PER_EPOCH - 1 });
    assert_int_equal(PER_EPOCH - 1, c.own);
    make_step(&c);
    /* The end of the epoch is reached once more. */
    assert_int_equal(PL_ACT_SHARE, pl_course_next(&c, false, 0));
    pl_course_shared(&c, &(pl_share) { .worker = 1, .own = PER_EPOCH });
    for (int i = 0; i < PER_EPOCH; i++)
        make_step(&c);
    assert_int_equal(PL_ACT_SHARE, pl_course_next(&c, false, 0));
    pl_course_shared(&c, &(pl_share) { .worker = 1, .own = 2 * PER_EPOCH });
    assert_int_equal(PL_ACT_SUM_UP, pl_course_next(&c, false, 0));
}

/* A chief that tests after every step, with these targets. */
static void start_chief(pl_course *c, pl_targets targets, double kept_loss)
{
    pl_course_init(c,
                   &(pl_course_opts) {
                       .tests = true,
                       .by_steps = true,
                       .end_step = 100,
                       .end_own = INT64_MAX,
                       .eval_every = { PL_EVERY_STEPS, 1 },
                       .save_every = { PL_EVERY_STEPS, 1 },
                       .histograms_every = { PL_EVERY_NEVER, 0 },
                       .targets = targets,
                       .kept_loss = kept_loss,
                   },
                   0);
    assert_int_equal(PL_ACT_JOIN, pl_course_next(c, false, 0));
    pl_course_joined(c, &(pl_standing) { 0 });
}

static void make_test(pl_course *c, double loss, double accuracy)
{
    make_step(c);
    assert_int_equal(PL_ACT_PAUSE, pl_course_next(c, false, 0));
    assert_int_equal(PL_ACT_TEST, pl_course_next(c, false, 0));
    pl_course_tested(c, loss, accuracy);
}

static void make_save(pl_course *c)
{
    assert_int_equal(PL_ACT_PAUSE, pl_course_next(c, false, 0));
    assert_int_equal(PL_ACT_SAVE, pl_course_next(c, false, 0));
}

static void assert_stops(pl_course *c, pl_stopped_by why)
{
    assert_int_equal(PL_ACT_SUM_UP, pl_course_next(c, false, 0));
    assert_int_equal(PL_ACT_STOP, pl_course_next(c, false, 0));
    assert_int_equal(why, c->stopped_by);
}

static void course_stops_at_an_accuracy(void **state)
{
    (void)state;
    pl_course c;
    start_chief(&c, (pl_targets) { .stop_loss = 0.1, .stop_accuracy = 0.9 },
                INFINITY);
    make_test(&c, 1, 0.8999);
    make_save(&c);
    assert_int_equal(-1, c.target_step);
    make_test(&c, 2, 0.9);
    assert_int_equal(2, c.target_step);
    assert_stops(&c, PL_STOPPED_STOP_ACCURACY);
    assert_string_equal("stop_accuracy", pl_stopped_text(c.stopped_by));
}

static void course_stops_when_patience_ends(void **state)
{
    (void)state;
    const double losses[] = { 3, 2, 2, NAN, 1.5, 1.6, 1.5 };
    pl_course c;
    start_chief(&c, (pl_targets) { .patience = 3 }, INFINITY);
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        make_test(&c, losses[i], 0.5);
        make_save(&c);
    }
    make_test(&c, 7, 0.5);
    assert_int_equal(-1, c.target_step);
    assert_stops(&c, PL_STOPPED_PATIENCE);
    assert_string_equal("patience", pl_stopped_text(c.stopped_by));
}

/* What the tests before a resumed run had found still counts. */
static void course_counts_patience_across_runs(void **state)
{
    (void)state;
    pl_course c, before;
    start_chief(&before, (pl_targets) { .patience = 3 }, INFINITY);
    make_test(&before, 2, 0.5);
    make_save(&before);
    make_test(&before, 2.5, 0.5);
    make_save(&before);
    pl_course_opts opts = before.opts;
    opts.best_loss = before.best_loss;
    opts.worse = before.worse;
    pl_course_init(&c, &opts, before.step);
    assert_int_equal(PL_ACT_JOIN, pl_course_next(&c, false, 0));
    pl_course_joined(&c, &(pl_standing) { .step = before.step });
    make_test(&c, 2.2, 0.5);
    make_save(&c);
    make_test(&c, 2.1, 0.5);
    assert_stops(&c, PL_STOPPED_PATIENCE);
}

/* C5; and a save that is due anyway is not made twice. */
static void course_saves_the_best_at_once(void **state)
{
    (void)state;
    pl_course c;
    start_chief(&c, (pl_targets) { .keep_best = true }, 2.5);
    make_test(&c, 2.6, 0.5); /* one of before is better */
    make_save(&c);
    make_test(&c, 2.4, 0.5);
    assert_int_equal(PL_ACT_SAVE_BEST, pl_course_next(&c, false, 0));
    pl_course_kept(&c);
    make_test(&c, 2.4, 0.5);
    make_save(&c);
    make_test(&c, 2.3, 0.5);
    assert_int_equal(PL_ACT_SAVE_BEST, pl_course_next(&c, false, 0));
    /* It failed: the next one is compared with what is kept. */
    make_test(&c, 2.35, 0.5);
    assert_int_equal(PL_ACT_SAVE_BEST, pl_course_next(&c, false, 0));
    pl_course_kept(&c);
    assert_true(c.kept_loss == 2.35);
}

static void course_keeps_the_best_of_its_last_step(void **state)
{
    (void)state;
    pl_course c;
    start_chief(&c, (pl_targets) { .keep_best = true, .stop_loss = 1 },
                INFINITY);
    make_test(&c, 0.5, 0.5);
    assert_stops(&c, PL_STOPPED_STOP_LOSS);
    assert_int_equal(PL_ACT_SETTLE, pl_course_next(&c, false, 0));
    assert_int_equal(PL_ACT_SAVE_LAST, pl_course_next(&c, false, 0));
    assert_true(c.best_due);
}

UNIT_TESTS(cmocka_unit_test(course_does_nothing_else_in_the_middle_of_a_round),
           cmocka_unit_test(course_of_a_follower_leaves_the_job_to_the_chief),
           cmocka_unit_test(course_stops_at_an_accuracy),
           cmocka_unit_test(course_stops_when_patience_ends),
           cmocka_unit_test(course_counts_patience_across_runs),
           cmocka_unit_test(course_saves_the_best_at_once),
           cmocka_unit_test(course_keeps_the_best_of_its_last_step),
           cmocka_unit_test(course_asks_for_a_share_where_an_epoch_ends),
           cmocka_unit_test(course_returns_to_the_count_of_the_share))
