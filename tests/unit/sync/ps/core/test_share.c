/* The share of a lost worker is read by the others.
 *
 * Invariants and the tests that check them:
 *   share H1  ps_share_passes_to_the_next_reader,
 *             ps_share_chief_waits_until_all_shares_are_read
 *   share H2  ps_share_of_a_lost_worker_goes_to_one_other,
 *             ps_share_is_taken_back_by_a_returned_worker */
#include "support/ps.h"

#define OTHERS 3u /* workers 0 and 1, as a mask: all but the last */

static const pl_ps_core_opts three = {
    .workers = 3,
    .mode = PL_PS_ASYNC,
    .on_loss = PL_ON_LOSS_CONTINUE,
};

static void ask(ps_rig *rig, int32_t worker, unsigned flags, int64_t count)
{
    pl_frame frame = ps_request(rig, worker, PL_FRAME_SHARE);
    frame.flags = (uint8_t)flags;
    frame.value[0] = count;
    frame.value[1] = worker;
    ps_say(rig, rig->peer[worker], frame, NULL);
}

static void expect_share(ps_rig *rig, int32_t worker, int32_t share,
                         int64_t count)
{
    const ps_sent *sent = ps_expect(rig, rig->peer[worker], PL_FRAME_ACK);
    assert_int_equal(PL_ACK_DONE, sent->frame.flags);
    assert_int_equal(rig->sequence[worker], sent->frame.sequence);
    assert_int_equal(count, sent->frame.value[0]);
    assert_int_equal(share, sent->frame.value[1]);
}

/* A gradient that is used: it makes `step`. */
static const ps_sent *make(ps_rig *rig, int32_t worker, int64_t step)
{
    ps_push(rig, worker, step - 1, -1.0f);
    return ps_answer(rig, worker, 0, step);
}

/* One of a share that another worker reads by now: it leaves `step` as it is.
 */
static void make_in_vain(ps_rig *rig, int32_t worker, int64_t step)
{
    ps_push(rig, worker, step, -1.0f);
    ps_answer(rig, worker, PL_ANSWER_DROPPED, step);
}

/* Worker 2 is silent until it is lost. */
static void lose_last(ps_rig *rig)
{
    ps_pass(rig, 6000, OTHERS);
    assert_int_equal(1, rig->lost[2]);
}

/* Worker 2 makes two gradients of its share and then stays silent. */
static ps_rig *start_and_lose(void)
{
    ps_rig *rig = ps_start(three, 0);
    make(rig, 2, 1);
    make(rig, 2, 2);
    lose_last(rig);
    return rig;
}

/* And worker 1 makes the third. */
static ps_rig *start_and_hand_over(void)
{
    ps_rig *rig = start_and_lose();
    ask(rig, 1, 0, 5);
    expect_share(rig, 1, 2, 2);
    make(rig, 1, 3);
    return rig;
}

static void assert_counts(const ps_rig *rig, int64_t first, int64_t second,
                          int64_t third)
{
    assert_int_equal(first, ps_look(rig, 0).applied_of_worker);
    assert_int_equal(second, ps_look(rig, 1).applied_of_worker);
    assert_int_equal(third, ps_look(rig, 2).applied_of_worker);
}

static void ps_share_of_a_lost_worker_goes_to_one_other(void **state)
{
    (void)state;
    ps_rig *rig = start_and_lose();
    ask(rig, 1, 0, 2); /* as far as that one is */
    expect_share(rig, 1, 1, 0);
    ask(rig, 1, 0, 5);
    expect_share(rig, 1, 2, 2);
    ps_probe(rig, 1, PL_FRAME_SHARE, 0); /* the answer was lost */
    expect_share(rig, 1, 2, 2);
    ask(rig, 0, 0, 5); /* no other share is left */
    expect_share(rig, 0, 0, 0);
    const ps_sent *answer = make(rig, 1, 3);
    assert_int_equal(1, answer->frame.value[0]); /* made by it */
    assert_int_equal(0, answer->frame.value[1]); /* of its own */
    assert_counts(rig, 0, 0, 3);
    ask(rig, 1, 0, 3); /* done with it */
    expect_share(rig, 1, 1, 0);
    make(rig, 1, 4);
    assert_counts(rig, 0, 1, 3);
    ps_close(rig);
}

static void ps_share_of_a_present_or_awaited_worker_is_kept(void **state)
{
    (void)state;
    ps_rig *rig = ps_start(three, 0);
    ask(rig, 1, 0, 5);
    expect_share(rig, 1, 1, 0);
    ps_close(rig);
    pl_ps_core_opts waits = three;
    waits.on_loss = PL_ON_LOSS_WAIT;
    rig = ps_start(waits, 0);
    lose_last(rig);
    ask(rig, 1, 0, 5);
    expect_share(rig, 1, 1, 0);
    ps_close(rig);
}

static void ps_share_chief_waits_until_all_shares_are_read(void **state)
{
    (void)state;
    ps_rig *rig = ps_start(three, 0);
    ask(rig, 0, PL_SHARE_WAIT, 5);
    ps_quiet(rig);
    lose_last(rig);
    expect_share(rig, 0, 2, 0);
    for (int64_t step = 1; step <= 5; step++)
        make(rig, 0, step);
    ask(rig, 0, PL_SHARE_WAIT, 5);
    ps_quiet(rig);
    ps_say_text(rig, rig->peer[1], ps_request(rig, 1, PL_FRAME_BYE), "{}");
    expect_share(rig, 0, 0, 0);
    assert_counts(rig, 0, 0, 5);
    ps_close(rig);
}

/* The chief waits for a share to be left when the worker whose share it has
 * read is back: that one is done soon, but not the others. */
static void ps_share_chief_waits_when_a_worker_returns(void **state)
{
    (void)state;
    ps_rig *rig = ps_start(three, 0);
    lose_last(rig);
    ask(rig, 0, 0, 1);
    expect_share(rig, 0, 2, 0);
    make(rig, 0, 1);
    ask(rig, 0, PL_SHARE_WAIT, 1);
    ps_quiet(rig);
    ps_join(rig, 2, 1);
    ps_quiet(rig);
    ps_say_text(rig, rig->peer[2], ps_request(rig, 2, PL_FRAME_BYE), "{}");
    ps_quiet(rig);
    ps_pass(rig, 6000, 1u); /* worker 1 is lost */
    expect_share(rig, 0, 1, 0);
    ps_close(rig);
}

/* It was frozen, not dead: a gradient that it made is not used twice. */
static void ps_share_is_taken_back_by_a_returned_worker(void **state)
{
    (void)state;
    ps_rig *rig = start_and_hand_over();
    make_in_vain(rig, 2, 3); /* the other has made it */
    assert_counts(rig, 0, 0, 3);
    ask(rig, 2, 0, 3);
    expect_share(rig, 2, 2, 3);
    make_in_vain(rig, 1, 3);
    ask(rig, 1, 0, 5);
    expect_share(rig, 1, 1, 0);
    make(rig, 2, 4);
    assert_counts(rig, 0, 0, 4);
    ps_close(rig);
}

static void ps_share_is_taken_back_by_a_new_process(void **state)
{
    (void)state;
    ps_rig *rig = start_and_hand_over();
    ps_join(rig, 2, 1);
    assert_int_equal(3, rig->sent[rig->taken - 1].frame.value[0]);
    make_in_vain(rig, 1, 3);
    make(rig, 2, 4);
    assert_counts(rig, 0, 0, 4);
    ps_close(rig);
}

/* The reader of a lost share is lost, too: its reader is the next one. */
static void ps_share_passes_to_the_next_reader(void **state)
{
    (void)state;
    ps_rig *rig = start_and_hand_over();
    ps_pass(rig, 6000, 1u);
    ask(rig, 0, 0, 5);
    expect_share(rig, 0, 1, 0); /* the first of two that are left */
    ask(rig, 0, 0, 5);
    expect_share(rig, 0, 2, 3);
    ask(rig, 0, 0, 5);
    expect_share(rig, 0, 1, 0);
    ps_close(rig);
}

/* ssp: a worker that reads a lost worker's share blocks no other, nor does one
 * that waits for a share; a worker that is back keeps pace with the others from
 * then on. */
static void ps_share_reader_blocks_no_ssp_worker(void **state)
{
    (void)state;
    pl_ps_core_opts opts = three;
    opts.mode = PL_PS_SSP;
    ps_rig *rig = ps_start(opts, 0);
    lose_last(rig);
    ask(rig, 1, 0, 5);
    expect_share(rig, 1, 2, 0);
    for (int64_t step = 1; step <= 6; step += 2) {
        ps_push(rig, 1, step - 1, -1.0f);
        ps_quiet(rig); /* the chief is behind */
        ps_push(rig, 0, step, -1.0f);
        ps_answer(rig, 0, 0, step + 1);
        ps_answer(rig, 1, 0, step + 1);
    }
    assert_counts(rig, 3, 0, 3);
    ps_join(rig, 2, 1);
    assert_int_equal(3, ps_look(rig, 2).pace_of_worker);
    ask(rig, 0, PL_SHARE_WAIT, 3);
    ps_push(rig, 2, 6, -1.0f);
    ps_quiet(rig);
    ask(rig, 1, 0, 5);
    expect_share(rig, 1, 1, 0);
    /* Nor does it let others go on while it asks and is answered at once. */
    ps_quiet(rig);
    make(rig, 1, 8);
    ps_answer(rig, 2, 0, 8);
    ps_close(rig);
}

/* ssp: a worker that comes back while the chief has frozen the job for a
 * checkpoint gets the chief's clock, not that of a worker ahead of the chief.
 */
static void ps_share_worker_back_in_a_freeze_is_not_ahead(void **state)
{
    (void)state;
    pl_ps_core_opts opts = three;
    opts.mode = PL_PS_SSP;
    ps_rig *rig = ps_start(opts, 0);
    lose_last(rig);
    ps_push(rig, 1, 0, -1.0f);
    ps_quiet(rig); /* the chief is behind */
    pl_frame freeze = ps_request(rig, 0, PL_FRAME_PAUSE);
    freeze.flags = PL_PAUSE_FREEZE;
    ps_say(rig, rig->peer[0], freeze, NULL);
    ps_expect(rig, rig->peer[0], PL_FRAME_ACK);
    ps_join(rig, 2, 1);
    assert_int_equal(1, ps_look(rig, 1).pace_of_worker);
    assert_int_equal(0, ps_look(rig, 2).pace_of_worker);
    ps_close(rig);
}

static void ps_share_impossible_request_is_refused(void **state)
{
    (void)state;
    static const int64_t values[][2] = {
        { -1, 0 }, { INT64_MAX, 0 }, { 0, -1 }, { 0, 3 }
    };
    ps_rig *rig = ps_start(three, 0);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        pl_frame frame = ps_request(rig, 1, PL_FRAME_SHARE);
        frame.value[0] = values[i][0];
        frame.value[1] = values[i][1];
        ps_say(rig, rig->peer[1], frame, NULL);
        ps_expect_text(rig, rig->peer[1], PL_FRAME_REFUSE,
                       i < 3 ? "malformed share" : "not a share");
    }
    ps_close(rig);
    rig = ps_start((pl_ps_core_opts) { .workers = 3 }, 0); /* sync */
    ask(rig, 1, 0, 5);
    ps_expect_text(rig, rig->peer[1], PL_FRAME_REFUSE, "not a share");
    ps_close(rig);
}

UNIT_TESTS(cmocka_unit_test(ps_share_of_a_lost_worker_goes_to_one_other),
           cmocka_unit_test(ps_share_of_a_present_or_awaited_worker_is_kept),
           cmocka_unit_test(ps_share_chief_waits_until_all_shares_are_read),
           cmocka_unit_test(ps_share_is_taken_back_by_a_returned_worker),
           cmocka_unit_test(ps_share_is_taken_back_by_a_new_process),
           cmocka_unit_test(ps_share_passes_to_the_next_reader),
           cmocka_unit_test(ps_share_reader_blocks_no_ssp_worker),
           cmocka_unit_test(ps_share_chief_waits_when_a_worker_returns),
           cmocka_unit_test(ps_share_worker_back_in_a_freeze_is_not_ahead),
           cmocka_unit_test(ps_share_impossible_request_is_refused))
