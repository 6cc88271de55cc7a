/* Which workers share the data of a sync job from which step on: invariants D1
 * to D4 of sync/ps/core/deal.c.
 *
 * Invariants and the tests that check them:
 *   deal D1  ps_deal_is_among_the_present_workers
 *   deal D2  ps_deal_is_among_the_present_workers
 *   deal D3  ps_deal_is_to_all_after_a_rollback
 *   deal D4  ps_deal_is_settled_a_step_earlier */
#include "support/ps.h"
#include "sync/ps/messages/messages.h"

#define FIRST_TWO 3u /* workers, as a mask */
#define ALL       7u

static const pl_ps_core_opts three = {
    .workers = 3,
    .mode = PL_PS_SYNC,
    .on_loss = PL_ON_LOSS_CONTINUE,
    .end_step = 8,
};

/* A worker requests the deal of `step`, the first of `epoch`. */
static pl_deal ask(ps_rig *rig, int32_t worker, int64_t step, int64_t epoch)
{
    pl_frame frame = ps_request(rig, worker, PL_FRAME_SHARE);
    pl_ps_deal_answer answer;
    frame.flags = PL_SHARE_DEAL;
    frame.value[0] = step;
    frame.value[1] = epoch;
    ps_say(rig, rig->peer[worker], frame, NULL);
    const ps_sent *sent = ps_expect(rig, rig->peer[worker], PL_FRAME_ACK);
    pl_message message = { .frame = sent->frame, .payload = sent->bytes };
    assert_true(pl_ps_deal_answer_decode(&answer, &message, 3));
    return answer.deal;
}

static void assert_deal(pl_deal deal, int64_t step, int64_t epoch,
                        unsigned workers)
{
    assert_int_equal(step, deal.step);
    assert_int_equal(epoch, deal.epoch);
    assert_int_equal(workers, deal.workers.bits[0]);
}

/* The workers of the mask make the step after `step`. */
static void make_step(ps_rig *rig, int64_t step, unsigned workers)
{
    for (int32_t w = 0; w < 3; w++)
        if ((workers & 1u << w) != 0)
            ps_push(rig, w, step, -1.0f);
    ps_forget(rig);
    assert_int_equal(step + 1, ps_look(rig, 0).step);
}

/* All make a step, then worker 2 is silent until it is lost. */
static ps_rig *start_and_lose(void)
{
    ps_rig *rig = ps_start(three, 0);
    make_step(rig, 0, ALL);
    ps_pass(rig, 6000, FIRST_TWO);
    assert_int_equal(1, rig->lost[2]);
    return rig;
}

static void ps_deal_is_among_the_present_workers(void **state)
{
    (void)state;
    ps_rig *rig = start_and_lose();
    make_step(rig, 1, FIRST_TWO);
    assert_deal(ask(rig, 0, 2, 1), 2, 1, FIRST_TWO);
    ps_join(rig, 2, 1);
    assert_deal(ask(rig, 2, -1, 0), 2, 1, FIRST_TWO);
    assert_deal(ask(rig, 1, 2, 1), 2, 1, FIRST_TWO); /* D1 */
    make_step(rig, 2, ALL);
    assert_deal(ask(rig, 1, 3, 2), 3, 2, ALL);
    make_step(rig, 3, ALL);
    assert_deal(ask(rig, 1, 4, 3), 3, 2, ALL); /* D2 */
    ps_close(rig);
}

/* Keyed parameters: a step before the epoch begins. */
static void ps_deal_is_settled_a_step_earlier(void **state)
{
    (void)state;
    ps_rig *rig = start_and_lose();
    assert_deal(ask(rig, 0, 2, 1), 2, 1, FIRST_TWO);
    ps_join(rig, 2, 1);
    assert_deal(ask(rig, 2, -1, 0), 0, 0, ALL);      /* D4 */
    assert_deal(ask(rig, 2, 2, 1), 2, 1, FIRST_TWO); /* D1 */
    make_step(rig, 1, ALL);
    assert_deal(ask(rig, 2, -1, 0), 2, 1, FIRST_TWO);
    assert_deal(ask(rig, 1, 2, 1), 2, 1, FIRST_TWO);
    assert_deal(ask(rig, 1, 3, 2), 3, 2, ALL);
    ps_close(rig);
}

static void ps_deal_is_of_steps_that_will_be_made(void **state)
{
    (void)state;
    ps_rig *rig = start_and_lose();
    assert_deal(ask(rig, 0, 3, 1), 0, 0, ALL); /* not yet */
    for (int64_t step = 1; step < 7; step++)
        make_step(rig, step, FIRST_TWO);
    assert_deal(ask(rig, 0, 8, 1), 0, 0, ALL); /* after the last */
    assert_deal(ask(rig, 0, 7, 1), 7, 1, FIRST_TWO);
    ps_close(rig);
}

/* A new process of server 1 has no parameters: all begin again. */
static void ps_deal_is_to_all_after_a_rollback(void **state)
{
    (void)state;
    static const char server_1[] =
        "{\"role\": \"ps\", \"index\": 1, \"job\": \"\"}";
    pl_ps_core_opts opts = three;
    opts.ps = 2;
    ps_rig *rig = ps_start(opts, 0);
    ps_say_text(rig, PS_SERVER + 1, (pl_frame) { .kind = PL_FRAME_JOIN },
                server_1);
    ps_pass(rig, 6000, FIRST_TWO);
    assert_int_equal(1, rig->lost[2]);
    ps_forget(rig);
    assert_deal(ask(rig, 0, 1, 1), 1, 1, FIRST_TWO);
    ps_say_text(rig, PS_SERVER + 1 + PS_LIFE,
                (pl_frame) { .kind = PL_FRAME_JOIN }, server_1);
    assert_false(ps_look(rig, 0).initialized);
    rig->generation = 2;
    for (int32_t w = 0; w < 3; w++) {
        ps_forget(rig);
        ps_join(rig, w, 0);
    }
    assert_deal(ask(rig, 0, -1, 0), 0, 0, ALL);
    ps_close(rig);
}

UNIT_TESTS(cmocka_unit_test(ps_deal_is_among_the_present_workers),
           cmocka_unit_test(ps_deal_is_settled_a_step_earlier),
           cmocka_unit_test(ps_deal_is_of_steps_that_will_be_made),
           cmocka_unit_test(ps_deal_is_to_all_after_a_rollback))
