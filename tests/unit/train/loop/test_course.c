#include "train/loop/course.h"

#include "support/unit.h"

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
                       .loose = true,
                       .end_step = INT64_MAX,
                       .end_own = 2 * PER_EPOCH,
                       .per_epoch = PER_EPOCH,
                       .eval_every = { PL_EVERY_NEVER, 0 },
                       .save_every = { PL_EVERY_NEVER, 0 },
                       .record_every = { PL_EVERY_NEVER, 0 },
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

/* Keyed parameters: a commit tells of the gradient before, so the last one of
 * an epoch is counted before it is known that it was dropped. */
static void course_goes_back_to_what_the_share_counts(void **state)
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

UNIT_TESTS(cmocka_unit_test(course_asks_for_a_share_where_an_epoch_ends),
           cmocka_unit_test(course_goes_back_to_what_the_share_counts))
