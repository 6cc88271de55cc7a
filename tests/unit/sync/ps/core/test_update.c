/* Gradients become updates: which, in which order, how many, and which workers
 * may continue.
 *
 * Invariants and the tests that check them:
 *   members J4  ps_update_new_process_skips_a_kept_gradient
 *   sync S3     ps_update_stale_gradient_is_dropped_and_answered
 *   async I5    ps_update_counts_async_steps_exactly,
 *               ps_update_grant_of_a_lost_worker_is_returned
 *   ssp C1      ps_update_ssp_blocks_a_worker_that_is_ahead
 *   ssp C3      ps_update_ssp_ignores_paused_and_departed_workers
 *   sync S4     ps_update_keeps_the_gradient_of_a_lost_worker,
 *               ps_update_gradient_of_a_lost_worker_replaces_none
 *   dense D2    ps_update_sync_answer_is_of_one_step */
#include "support/ps.h"

/* Three gradients whose sum depends on the order it is made in. */
static const float terms[3][4] = {
    { 1e8f, 0.1f, 3e-8f, 1.0f },
    { 1.0f, 0.2f, 1.0f, 1e-8f },
    { -1e8f, 0.7f, -1.0f, 1e-8f },
};

static void push_term(ps_rig *rig, int32_t worker, int64_t step)
{
    pl_frame frame = ps_request(rig, worker, PL_FRAME_PUSH);
    frame.step = step;
    ps_piece(rig, worker, frame, 0, 4, terms[worker]);
}

static void ps_update_combines_in_worker_order(void **state)
{
    (void)state;
    static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                      { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
    const pl_kernels *kernels = pl_kernels_best();
    const float *parts[3] = { terms[0], terms[1], terms[2] };
    for (int sum = 0; sum <= 1; sum++)
        for (int o = 0; o < 6; o++) {
            ps_rig *rig = ps_start(
                (pl_ps_core_opts) { .workers = 3, .sum = sum != 0 }, 0);
            float expected[4], other[4];
            for (int i = 0; i < 3; i++)
                push_term(rig, orders[o][i], 0);
            kernels->sum_parts(4, 3, parts, expected);
            kernels->sum_parts(
                4, 3, (const float *[3]) { terms[0], terms[2], terms[1] },
                other);
            assert_true(memcmp(expected, other, sizeof other) != 0);
            if (sum == 0)
                kernels->scale(4, 1.0f / 3.0f, expected, expected);
            for (int i = 0; i < 4; i++)
                expected[i] = 0.0f - expected[i];
            assert_memory_equal(expected, rig->params, sizeof expected);
            assert_int_equal(1, ps_look(rig, 0).step);
            assert_false(ps_look(rig, 0).mixed);
            for (int w = 0; w < 3; w++)
                assert_memory_equal(expected, ps_answer(rig, w, 0, 1)->bytes,
                                    sizeof expected);
            ps_quiet(rig);
            ps_close(rig);
        }
}

static void ps_update_waits_for_all_by_default(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { 0 }, 0);
    ps_push(rig, 1, 0, -2.0f);
    ps_quiet(rig);
    ps_probe(rig, 1, PL_FRAME_PUSH, 0);
    assert_int_equal(PL_ACK_COMPLETE,
                     ps_expect(rig, rig->peer[1], PL_FRAME_ACK)->frame.flags);
    ps_push(rig, 0, 0, -4.0f);
    ps_answer_of(rig, 0, 0, 1, 3.0f);
    ps_answer_of(rig, 1, 0, 1, 3.0f);
    ps_close(rig);
}

static void ps_update_stale_gradient_is_dropped_and_answered(void **state)
{
    (void)state;
    ps_rig *rig =
        ps_start((pl_ps_core_opts) { .workers = 3, .replicas = 2 }, 0);
    ps_push(rig, 0, 0, -1.0f);
    ps_push(rig, 2, 0, -3.0f);
    ps_answer_of(rig, 0, 0, 1, 2.0f);
    ps_answer_of(rig, 2, 0, 1, 2.0f);
    assert_true(ps_look(rig, 0).mixed);
    /* The third comes too late: it gets the new parameters instead. */
    ps_push(rig, 1, 0, -100.0f);
    ps_answer_of(rig, 1, PL_ANSWER_DROPPED, 1, 2.0f);
    assert_int_equal(1, ps_look(rig, 1).dropped);
    assert_int_equal(0, ps_look(rig, 1).applied_of_worker);
    assert_int_equal(1, ps_look(rig, 2).applied_of_worker);
    /* Asked again it is answered alike, and not counted twice. */
    ps_probe(rig, 1, PL_FRAME_PUSH, 0);
    ps_answer_of(rig, 1, PL_ANSWER_DROPPED, 1, 2.0f);
    assert_int_equal(1, ps_look(rig, 1).dropped);
    /* Its next one is fresh. */
    ps_push(rig, 1, 1, -1.0f);
    ps_push(rig, 0, 1, -1.0f);
    ps_answer_of(rig, 0, 0, 2, 3.0f);
    ps_answer_of(rig, 1, 0, 2, 3.0f);
    ps_quiet(rig);
    ps_close(rig);
}

static void ps_update_step_may_pass_a_push_that_arrives(void **state)
{
    (void)state;
    ps_rig *rig = ps_open(
        (pl_ps_core_opts) { .replicas = 1, .count = 8, .piece = 4 }, "sgd");
    float zero[8] = { 0 };
    ps_join(rig, 0, 0);
    ps_join(rig, 1, 0);
    pl_frame init = ps_request(rig, 0, PL_FRAME_INIT);
    ps_piece(rig, 0, init, 0, 4, zero);
    ps_piece(rig, 0, init, 4, 4, zero);
    pl_frame slow = ps_request(rig, 1, PL_FRAME_PUSH);
    ps_piece(rig, 1, slow, 0, 4, zero);
    pl_frame fast = ps_request(rig, 0, PL_FRAME_PUSH);
    ps_piece(rig, 0, fast, 0, 4, zero);
    ps_piece(rig, 0, fast, 4, 4, zero);
    ps_forget(rig);
    ps_piece(rig, 1, slow, 4, 4, zero);
    ps_answer(rig, 1, PL_ANSWER_DROPPED, 1);
    assert_int_equal(1, ps_look(rig, 1).dropped);
    ps_close(rig);
}

/* A complete gradient of a worker that dies is used: its next process would
 * make the same. */
static void ps_update_keeps_the_gradient_of_a_lost_worker(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { 0 }, 0);
    ps_push(rig, 1, 0, -2.0f);
    for (int i = 0; i < 60; i++) {
        ps_heart(rig, 0, 0, PL_PHASE_WAITING, 1);
        ps_tick(rig, 100);
    }
    assert_int_equal(1, rig->lost[1]);
    ps_forget(rig);
    ps_push(rig, 0, 0, -4.0f);
    ps_answer_of(rig, 0, 0, 1, 3.0f);
    assert_int_equal(1, ps_look(rig, 1).applied_of_worker);
    ps_forget(rig);
    /* Its next process made that gradient once more: not a second time. */
    ps_join(rig, 1, 1);
    assert_int_equal(1, rig->sent[rig->taken - 1].frame.value[0]);
    ps_push(rig, 1, 0, -2.0f);
    ps_answer_of(rig, 1, 0, 1, 3.0f);
    assert_int_equal(0, ps_look(rig, 1).dropped);
    assert_int_equal(1, ps_look(rig, 1).step);
    ps_close(rig);
}

/* S4: what a lost worker left behind does not stand for one that is here. */
static void ps_update_gradient_of_a_lost_worker_replaces_none(void **state)
{
    (void)state;
    ps_rig *rig = ps_start(
        (pl_ps_core_opts) { .workers = 3, .on_loss = PL_ON_LOSS_CONTINUE }, 0);
    ps_push(rig, 1, 0, -2.0f);
    ps_pass(rig, 5500, 5);
    assert_int_equal(1, rig->lost[1]);
    ps_forget(rig);
    ps_push(rig, 2, 0, -3.0f);
    ps_quiet(rig);
    ps_push(rig, 0, 0, -4.0f);
    for (int w = 0; w < 3; w++)
        ps_answer_of(rig, w, 0, 1, 3.0f);
    assert_false(ps_look(rig, 0).mixed);
    ps_close(rig);
}

static void ps_update_new_process_skips_a_kept_gradient(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { 0 }, 0);
    ps_push(rig, 1, 0, -2.0f);
    rig->taken = rig->made;
    ps_say_text(rig, PS_LIFE, (pl_frame) { .kind = PL_FRAME_JOIN },
                "{\"role\": \"worker\", \"index\": 1, \"job\": \"\"}");
    ps_expect_text(rig, PS_WORKER + 1, PL_FRAME_REFUSE, "a newer process");
    rig->incarnation[1] =
        ps_expect(rig, PS_LIFE, PL_FRAME_WELCOME)->frame.incarnation;
    rig->peer[1] = PS_LIFE;
    rig->sequence[1] = 0;
    ps_push(rig, 1, 0, -100.0f); /* not read: the first one stays */
    assert_int_equal(PL_ACK_COMPLETE,
                     ps_expect(rig, PS_LIFE, PL_FRAME_ACK)->frame.flags);
    ps_push(rig, 0, 0, -4.0f);
    ps_answer_of(rig, 0, 0, 1, 3.0f);
    ps_answer_of(rig, 1, 0, 1, 3.0f);
    ps_close(rig);
}

static void ps_update_async_applies_on_arrival(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { .mode = PL_PS_ASYNC }, 0);
    ps_push(rig, 1, 0, -2.0f);
    ps_answer_of(rig, 1, 0, 1, 2.0f);
    ps_push(rig, 1, 1, -2.0f);
    ps_answer_of(rig, 1, 0, 2, 4.0f);
    ps_push(rig, 0, 0, -1.0f); /* however old it is */
    ps_answer_of(rig, 0, 0, 3, 5.0f);
    assert_int_equal(0, ps_look(rig, 0).dropped);
    assert_int_equal(2, ps_look(rig, 1).applied_of_worker);
    ps_close(rig);
}

static void ps_update_counts_async_steps_exactly(void **state)
{
    (void)state;
    ps_rig *rig = ps_start(
        (pl_ps_core_opts) { .mode = PL_PS_ASYNC, .end_step = 3, .workers = 3 },
        0);
    for (int w = 0; w < 3; w++) {
        ps_pull(rig, w, 0, 0); /* each gets a grant: three are left */
        ps_answer_of(rig, w, 0, 0, 0.0f);
    }
    ps_push(rig, 0, 0, -1.0f);
    ps_quiet(rig); /* no fourth: it waits for the end */
    ps_push(rig, 1, 0, -1.0f);
    ps_quiet(rig);
    ps_push(rig, 2, 0, -1.0f);
    for (int w = 0; w < 3; w++)
        assert_int_equal(0, ps_answer(rig, w, PL_ANSWER_STOP, 3)->frame.count);
    assert_int_equal(3, ps_look(rig, 0).step);
    assert_int_equal(0, ps_look(rig, 0).dropped);
    ps_close(rig);
}

static void ps_update_grant_of_a_lost_worker_is_returned(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { .mode = PL_PS_ASYNC,
                                               .end_step = 2,
                                               .on_loss = PL_ON_LOSS_CONTINUE },
                           0);
    for (int w = 0; w < 2; w++) {
        ps_pull(rig, w, 0, 0);
        ps_answer_of(rig, w, 0, 0, 0.0f);
    }
    ps_push(rig, 0, 0, -1.0f);
    ps_quiet(rig);
    for (int i = 0; i < 60 && rig->lost[1] == 0; i++) {
        ps_heart(rig, 0, 1, PL_PHASE_WAITING, 1);
        ps_tick(rig, 100);
    }
    assert_int_equal(1, rig->lost[1]);
    ps_answer_of(rig, 0, 0, 1, 1.0f); /* it makes the one of worker 1 */
    /* Which comes back and sends its own: one too many.  It waits like all
     * who have no grant, or it would make more of them. */
    ps_push(rig, 1, 0, -8.0f);
    ps_quiet(rig);
    assert_int_equal(1, ps_look(rig, 0).dropped);
    ps_push(rig, 0, 1, -1.0f);
    assert_int_equal(0, ps_answer(rig, 0, PL_ANSWER_STOP, 2)->frame.count);
    ps_answer(rig, 1, PL_ANSWER_DROPPED | PL_ANSWER_STOP, 2);
    assert_true(rig->params[0] == 2.0f);
    ps_close(rig);
}

static void ps_update_ssp_blocks_a_worker_that_is_ahead(void **state)
{
    (void)state;
    ps_rig *rig =
        ps_start((pl_ps_core_opts) { .mode = PL_PS_SSP, .staleness = 1 }, 0);
    ps_push(rig, 0, 0, -1.0f);
    ps_answer_of(rig, 0, 0, 1, 1.0f); /* 1 ahead is allowed */
    ps_push(rig, 0, 1, -1.0f);
    ps_quiet(rig); /* 2 ahead: applied, but not answered */
    assert_int_equal(2, ps_look(rig, 0).step);
    ps_push(rig, 1, 0, -1.0f);
    ps_answer_of(rig, 0, 0, 3, 3.0f);
    ps_answer_of(rig, 1, 0, 3, 3.0f);
    ps_quiet(rig);
    ps_close(rig);
}

static void ps_update_ssp_ignores_paused_and_departed_workers(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { .mode = PL_PS_SSP }, 0);
    ps_push(rig, 1, 0, -1.0f);
    ps_quiet(rig);
    ps_say(rig, rig->peer[0], ps_request(rig, 0, PL_FRAME_PAUSE), NULL);
    ps_expect(rig, rig->peer[0], PL_FRAME_ACK);
    ps_answer_of(rig, 1, 0, 1, 1.0f);
    ps_push(rig, 1, 1, -1.0f);
    ps_answer_of(rig, 1, 0, 2, 2.0f);
    ps_push(rig, 0, 0, -1.0f); /* that ends the pause */
    ps_answer_of(rig, 0, 0, 3, 3.0f);
    ps_push(rig, 1, 2, -1.0f);
    ps_quiet(rig);
    ps_say_text(rig, rig->peer[0], ps_request(rig, 0, PL_FRAME_BYE), "{}");
    ps_expect(rig, rig->peer[0], PL_FRAME_REPORT);
    ps_answer_of(rig, 1, 0, 4, 4.0f);
    ps_close(rig);
}

/* Backup workers may fill a step without the chief; while it evaluates, no
 * step is made. */
static void ps_update_sync_makes_no_step_while_the_chief_pauses(void **state)
{
    (void)state;
    ps_rig *rig =
        ps_start((pl_ps_core_opts) { .workers = 3, .replicas = 2 }, 0);
    ps_say(rig, rig->peer[0], ps_request(rig, 0, PL_FRAME_PAUSE), NULL);
    assert_int_equal(PL_ACK_DONE,
                     ps_expect(rig, rig->peer[0], PL_FRAME_ACK)->frame.flags);
    ps_push(rig, 1, 0, -1.0f);
    ps_push(rig, 2, 0, -3.0f);
    ps_quiet(rig);
    assert_int_equal(0, ps_look(rig, 0).step);
    ps_push(rig, 0, 0, -5.0f); /* all three are there now */
    for (int w = 0; w < 3; w++)
        ps_answer_of(rig, w, 0, 1, 3.0f);
    ps_close(rig);
}

static void ps_update_sync_ends_at_the_requested_step(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { .end_step = 8 }, 7);
    ps_push(rig, 0, 7, -1.0f);
    ps_push(rig, 1, 7, -1.0f);
    for (int w = 0; w < 2; w++)
        assert_int_equal(0, ps_answer(rig, w, PL_ANSWER_STOP, 8)->frame.count);
    ps_push(rig, 1, 8, -1.0f); /* a worker that ignores it is notified again */
    ps_answer(rig, 1, PL_ANSWER_DROPPED | PL_ANSWER_STOP, 8);
    assert_int_equal(8, ps_look(rig, 0).step);
    ps_close(rig);
}

static void ps_update_stop_drops_waiting_gradients(void **state)
{
    (void)state;
    for (int mode = PL_PS_SYNC; mode <= PL_PS_ASYNC; mode++) {
        ps_rig *rig = ps_start(
            (pl_ps_core_opts) { .mode = (pl_ps_mode)mode, .workers = 2 }, 0);
        if (mode == PL_PS_SYNC)
            ps_push(rig, 1, 0, -1.0f);
        ps_quiet(rig);
        ps_say_text(rig, rig->peer[0], ps_request(rig, 0, PL_FRAME_STOP),
                    "stop_loss");
        ps_expect(rig, rig->peer[0], PL_FRAME_ACK);
        if (mode == PL_PS_ASYNC)
            ps_push(rig, 1, 0, -1.0f);
        ps_answer(rig, 1, PL_ANSWER_DROPPED | PL_ANSWER_STOP, 0);
        assert_int_equal(1, ps_look(rig, 1).dropped);
        assert_int_equal(0, ps_look(rig, 1).step);
        assert_true(rig->params[0] == 0.0f);
        assert_ok(pl_ps_core_outcome(rig->core));
        ps_close(rig);
    }
}

/* In sync what is sent is of one step: when the step changes in between, it is
 * sent again. */
static void ps_update_sync_answer_is_of_one_step(void **state)
{
    (void)state;
    ps_rig *rig = ps_open(
        (pl_ps_core_opts) { .replicas = 1, .count = 48, .piece = 4 }, "sgd");
    float grad[48];
    for (int i = 0; i < 48; i++)
        grad[i] = -1.0f;
    ps_join(rig, 0, 0);
    ps_join(rig, 1, 0);
    pl_frame init = ps_request(rig, 0, PL_FRAME_INIT);
    for (int p = 0; p < 12; p++)
        ps_piece(rig, 0, init, 4 * p, 4, rig->params);
    ps_forget(rig);
    ps_go(rig);
    ps_pull(rig, 1, 0, 0); /* 8 pieces of step 0 leave */
    ps_forget(rig);
    pl_frame push = ps_request(rig, 0, PL_FRAME_PUSH);
    for (int p = 0; p < 12; p++)
        ps_piece(rig, 0, push, 4 * p, 4, grad);
    ps_forget(rig);
    pl_frame ack = { .kind = PL_FRAME_ACK,
                     .incarnation = rig->incarnation[1],
                     .sequence = rig->sequence[1],
                     .value = { 0, 4 } };
    ps_say(rig, rig->peer[1], ack, NULL);
    for (int p = 0; p < PL_PIECE_WINDOW; p++) {
        const ps_sent *sent = ps_answer(rig, 1, 0, 1);
        assert_int_equal(4 * p, sent->frame.first);
        assert_memory_equal(rig->params + 4 * p, sent->bytes, 16);
    }
    ps_quiet(rig);
    ps_say(rig, rig->peer[1], ack, NULL); /* of step 0: means nothing now */
    ps_quiet(rig);
    ps_close(rig);
}

/* The evaluator waits for a later step, or for the end. */
static void ps_update_pull_waits_for_its_step(void **state)
{
    (void)state;
    ps_rig *rig =
        ps_start((pl_ps_core_opts) { .workers = 1, .evaluator = true }, 0);
    ps_say_text(rig, PS_EVALUATOR, (pl_frame) { .kind = PL_FRAME_JOIN },
                "{\"role\": \"evaluator\", \"index\": 0, \"job\": \"\"}");
    pl_frame pull = {
        .kind = PL_FRAME_PULL,
        .incarnation =
            ps_expect(rig, PS_EVALUATOR, PL_FRAME_WELCOME)->frame.incarnation,
        .sequence = 1,
        .value = { 1 },
    };
    ps_say(rig, PS_EVALUATOR, pull, NULL);
    ps_quiet(rig);
    ps_push(rig, 0, 0, -1.0f);
    ps_answer_of(rig, 0, 0, 1, 1.0f);
    const ps_sent *sent = ps_expect(rig, PS_EVALUATOR, PL_FRAME_PARAMS);
    assert_int_equal(1, sent->frame.step);
    assert_int_equal(0, sent->frame.flags);
    pull.sequence = 2;
    pull.value[0] = 5; /* a step that never comes */
    ps_say(rig, PS_EVALUATOR, pull, NULL);
    ps_quiet(rig);
    ps_say_text(rig, rig->peer[0], ps_request(rig, 0, PL_FRAME_BYE), "{}");
    sent = ps_expect(rig, PS_EVALUATOR, PL_FRAME_PARAMS);
    assert_int_equal(1, sent->frame.step);
    assert_int_equal(PL_ANSWER_STOP, sent->frame.flags);
    ps_close(rig);
}

UNIT_TESTS(
    cmocka_unit_test(ps_update_combines_in_worker_order),
    cmocka_unit_test(ps_update_waits_for_all_by_default),
    cmocka_unit_test(ps_update_stale_gradient_is_dropped_and_answered),
    cmocka_unit_test(ps_update_step_may_pass_a_push_that_arrives),
    cmocka_unit_test(ps_update_keeps_the_gradient_of_a_lost_worker),
    cmocka_unit_test(ps_update_gradient_of_a_lost_worker_replaces_none),
    cmocka_unit_test(ps_update_new_process_skips_a_kept_gradient),
    cmocka_unit_test(ps_update_async_applies_on_arrival),
    cmocka_unit_test(ps_update_counts_async_steps_exactly),
    cmocka_unit_test(ps_update_grant_of_a_lost_worker_is_returned),
    cmocka_unit_test(ps_update_ssp_blocks_a_worker_that_is_ahead),
    cmocka_unit_test(ps_update_ssp_ignores_paused_and_departed_workers),
    cmocka_unit_test(ps_update_sync_makes_no_step_while_the_chief_pauses),
    cmocka_unit_test(ps_update_sync_ends_at_the_requested_step),
    cmocka_unit_test(ps_update_stop_drops_waiting_gradients),
    cmocka_unit_test(ps_update_sync_answer_is_of_one_step),
    cmocka_unit_test(ps_update_pull_waits_for_its_step))
