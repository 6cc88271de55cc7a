/* Requests: how they arrive, in pieces and twice, and what is refused.
 *
 * Invariants and the tests that check them:
 *   request R1  ps_core_push_is_applied_once_and_answered_again
 *   request R2  ps_core_push_is_applied_once_and_answered_again,
 *               ps_core_refusal_is_repeated
 *   request R3  ps_core_answer_keeps_to_the_window
 *   request R4  ps_core_frames_of_another_life_are_ignored */
#include "support/ps.h"

#include <math.h>

static void ps_core_new_survives_each_failed_allocation(void **state)
{
    (void)state;
    ps_rig *rig = ps_open((pl_ps_core_opts) { .workers = 3, .ps = 2 }, "adam");
    pl_ps_core_opts opts = {
        .ps = 2,
        .workers = 3,
        .count = 4,
        .params = rig->params,
        .optim = rig->optim,
        .schedule = &rig->schedule,
        .kernels = pl_kernels_best(),
        .ops = &ps_ops,
        .context = rig,
    };
    pl_ps_core *core = NULL;
    assert_survives_failed_allocations(pl_ps_core_new(&core, &opts, 0),
                                       pl_ps_core_free(core));
    pl_ps_core_free(NULL);
    ps_close(rig);
}

static void ps_core_init_sets_parameters_and_step(void **state)
{
    (void)state;
    ps_rig *rig = ps_open((pl_ps_core_opts) { 0 }, "sgd");
    const float first[4] = { 1, 2, 3, 4 }, second[4] = { 9, 9, 9, 9 };
    ps_join(rig, 0, 0);
    ps_join(rig, 1, 0);
    ps_pull(rig, 1, 0, 0); /* waits: there is nothing yet */
    ps_quiet(rig);
    pl_frame init = ps_request(rig, 0, PL_FRAME_INIT);
    init.step = 7;
    ps_piece(rig, 0, init, 0, 4, second);
    ps_done(rig, 0);
    assert_true(ps_look(rig, 0).initialized);
    assert_int_equal(7, ps_look(rig, 0).step);
    ps_quiet(rig); /* other servers may have nothing yet */
    /* So a restarted chief may send others... */
    ps_init(rig, 5, first);
    const ps_sent *pulled = ps_answer(rig, 1, 0, 5);
    assert_memory_equal(first, pulled->bytes, sizeof first);
    /* ... but none once it has continued. */
    ps_init(rig, 0, second);
    assert_memory_equal(first, rig->params, sizeof first);
    assert_int_equal(5, ps_look(rig, 0).step);
    ps_quiet(rig);
    ps_close(rig);
}

static void ps_core_init_resets_the_slots(void **state)
{
    (void)state;
    ps_rig *rig = ps_open((pl_ps_core_opts) { .workers = 1 }, "adagrad");
    float zero[4] = { 0 };
    float *sum = pl_params_block(rig->optim->slots[0]);
    float initial = sum[0];
    assert_true(initial > 0);
    ps_join(rig, 0, 0);
    sum[3] = 7; /* of an earlier generation */
    ps_init(rig, 0, zero);
    for (int i = 0; i < 4; i++)
        assert_true(sum[i] == initial);
    ps_close(rig);
}

static void ps_core_init_is_for_the_chief_only(void **state)
{
    (void)state;
    ps_rig *rig = ps_open((pl_ps_core_opts) { 0 }, "sgd");
    ps_join(rig, 0, 0);
    ps_join(rig, 1, 0);
    float params[4] = { 1, 2, 3, 4 };
    ps_piece(rig, 1, ps_request(rig, 1, PL_FRAME_INIT), 0, 4, params);
    ps_expect_text(rig, rig->peer[1], PL_FRAME_REFUSE,
                   "only the chief sends first parameters");
    assert_false(ps_look(rig, 0).initialized);
    ps_close(rig);
}

static void ps_core_init_of_an_impossible_step_is_refused(void **state)
{
    (void)state;
    static const int64_t steps[] = { -1, INT64_MIN, INT64_MAX };
    ps_rig *rig = ps_open((pl_ps_core_opts) { 0 }, "sgd");
    float params[4] = { 1, 2, 3, 4 };
    ps_join(rig, 0, 0);
    for (int i = 0; i < 3; i++) {
        pl_frame init = ps_request(rig, 0, PL_FRAME_INIT);
        init.step = steps[i];
        ps_piece(rig, 0, init, 0, 4, params);
        ps_expect_text(rig, rig->peer[0], PL_FRAME_REFUSE, "malformed init");
    }
    assert_false(ps_look(rig, 0).initialized);
    ps_close(rig);
}

static void ps_core_push_before_init_is_refused(void **state)
{
    (void)state;
    ps_rig *rig = ps_open((pl_ps_core_opts) { 0 }, "sgd");
    ps_join(rig, 1, 0);
    ps_push(rig, 1, 0, 1.0f);
    ps_expect_text(rig, rig->peer[1], PL_FRAME_REFUSE,
                   "pushed before there are parameters");
    assert_int_equal(0, ps_look(rig, 0).step);
    ps_close(rig);
}

static void ps_core_push_of_the_evaluator_is_refused(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { .evaluator = true }, 0);
    ps_say_text(rig, PS_EVALUATOR, (pl_frame) { .kind = PL_FRAME_JOIN },
                "{\"role\": \"evaluator\", \"index\": 0, \"job\": \"\"}");
    uint32_t incarnation =
        ps_expect(rig, PS_EVALUATOR, PL_FRAME_WELCOME)->frame.incarnation;
    float grad[4] = { 0 };
    ps_say(rig, PS_EVALUATOR,
           (pl_frame) { .kind = PL_FRAME_PUSH,
                        .incarnation = incarnation,
                        .sequence = 1,
                        .count = 4,
                        .payload_bytes = sizeof grad },
           grad);
    ps_expect_text(rig, PS_EVALUATOR, PL_FRAME_REFUSE, "only workers push");
    ps_close(rig);
}

static void ps_core_stranger_is_refused(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { 0 }, 0);
    ps_say(rig, 99, (pl_frame) { .kind = PL_FRAME_PULL, .sequence = 5 }, NULL);
    const ps_sent *sent = ps_expect(rig, 99, PL_FRAME_REFUSE);
    assert_int_equal(5, sent->frame.sequence);
    assert_non_null(strstr(sent->bytes, "not, or no longer, a member"));
    ps_close(rig);
}

static void ps_core_wrong_shapes_are_refused(void **state)
{
    (void)state;
    ps_rig *rig =
        ps_start((pl_ps_core_opts) { .mode = PL_PS_ASYNC, .workers = 1 }, 0);
    static const struct {
        int64_t first;
        uint32_t count, keys;
    } wrong[] = {
        { 0, 3, 0 },         { 0, 5, 0 }, { 1, 4, 0 },
        { -4, 4, 0 },        { 4, 4, 0 }, { INT64_MAX, 4, 0 },
        { INT64_MIN, 4, 0 }, { 0, 4, 1 }, { 0, 12, 0 },
    };
    float grad[16] = { 0 };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pl_frame frame = ps_request(rig, 0, PL_FRAME_PUSH);
        frame.key_count = wrong[i].keys;
        frame.first = wrong[i].first;
        frame.count = wrong[i].count;
        frame.payload_bytes = sizeof grad;
        ps_say(rig, rig->peer[0], frame, grad);
        ps_expect_text(rig, rig->peer[0], PL_FRAME_REFUSE,
                       "not a piece of the parameters 0 to 4 here");
        ps_quiet(rig);
    }
    assert_int_equal(0, ps_look(rig, 0).step);
    ps_push(rig, 0, 0, -1.0f); /* and it continues */
    ps_answer_of(rig, 0, 0, 1, 1.0f);
    ps_close(rig);
}

static void ps_core_gradients_that_are_not_finite_are_refused(void **state)
{
    (void)state;
    const float bad[] = { NAN, INFINITY, -INFINITY };
    for (int mode = PL_PS_SYNC; mode <= PL_PS_SSP; mode++) {
        ps_rig *rig =
            ps_start((pl_ps_core_opts) { .mode = (pl_ps_mode)mode }, 0);
        for (int i = 0; i < 3; i++) {
            ps_push(rig, 0, 0, bad[i]);
            ps_expect_text(rig, rig->peer[0], PL_FRAME_REFUSE,
                           "the gradient of step 0 is not finite");
            ps_quiet(rig);
        }
        assert_int_equal(0, ps_look(rig, 0).step);
        assert_true(rig->params[0] == 0.0f);
        ps_close(rig);
    }
}

/* The refusal was lost: a repeated request is refused again. (R2) */
static void ps_core_refusal_is_repeated(void **state)
{
    (void)state;
    ps_rig *rig =
        ps_start((pl_ps_core_opts) { .mode = PL_PS_ASYNC, .workers = 1 }, 0);
    float grad[4] = { NAN, NAN, NAN, NAN };
    pl_frame push = ps_push(rig, 0, 0, NAN);
    ps_expect(rig, rig->peer[0], PL_FRAME_REFUSE);
    ps_probe(rig, 0, PL_FRAME_PUSH, 0);
    assert_int_equal(PL_ACK_NEED,
                     ps_expect(rig, rig->peer[0], PL_FRAME_ACK)->frame.flags);
    ps_piece(rig, 0, push, 0, 4, grad);
    ps_expect_text(rig, rig->peer[0], PL_FRAME_REFUSE, "is not finite");
    ps_quiet(rig);
    ps_close(rig);
}

/* R2 */
static void ps_core_push_is_applied_once_and_answered_again(void **state)
{
    (void)state;
    ps_rig *rig =
        ps_start((pl_ps_core_opts) { .mode = PL_PS_ASYNC, .workers = 1 }, 0);
    float grad[4] = { -1, -1, -1, -1 };
    pl_frame push = ps_push(rig, 0, 0, -1.0f);
    ps_answer_of(rig, 0, 0, 1, 1.0f);
    for (int i = 0; i < 3; i++)
        ps_piece(rig, 0, push, 0, 4, grad); /* doubled under way */
    ps_quiet(rig);
    assert_int_equal(3, ps_look(rig, 0).duplicates);
    ps_probe(rig, 0, PL_FRAME_PUSH, 0); /* the answer was lost */
    ps_answer_of(rig, 0, 0, 1, 1.0f);
    assert_int_equal(1, ps_look(rig, 0).step);
    assert_int_equal(1, ps_look(rig, 0).applied_of_worker);
    /* One of an earlier request is not even answered. */
    ps_push(rig, 0, 1, -1.0f);
    ps_answer_of(rig, 0, 0, 2, 2.0f);
    ps_piece(rig, 0, push, 0, 4, grad);
    ps_quiet(rig);
    assert_int_equal(2, ps_look(rig, 0).step);
    ps_close(rig);
}

/* R4 */
static void ps_core_frames_of_another_life_are_ignored(void **state)
{
    (void)state;
    ps_rig *rig =
        ps_start((pl_ps_core_opts) { .mode = PL_PS_ASYNC, .workers = 1 }, 0);
    float grad[4] = { -1, -1, -1, -1 };
    pl_frame push = ps_request(rig, 0, PL_FRAME_PUSH);
    push.incarnation += 1;
    ps_piece(rig, 0, push, 0, 4, grad);
    push.incarnation -= 1;
    push.generation = rig->generation + 1;
    ps_piece(rig, 0, push, 0, 4, grad);
    ps_quiet(rig);
    assert_int_equal(0, ps_look(rig, 0).step);
    ps_close(rig);
}

/* 12 pieces of 4 floats: more than the window, so each is acknowledged. */
static void ps_core_pieces_make_a_push_in_any_order(void **state)
{
    (void)state;
    static const int order[] = { 11, 3, 0, 7, 7, 2, 1, 10, 4, 9, 5, 6, 3, 8 };
    ps_rig *rig = ps_open(
        (pl_ps_core_opts) {
            .mode = PL_PS_ASYNC, .workers = 1, .count = 48, .piece = 4 },
        "sgd");
    float grad[48];
    ps_join(rig, 0, 0);
    pl_frame init = ps_request(rig, 0, PL_FRAME_INIT);
    for (int p = 0; p < 12; p++)
        ps_piece(rig, 0, init, 4 * p, 4, rig->params);
    ps_forget(rig);
    for (int i = 0; i < 48; i++)
        grad[i] = -(float)i;
    pl_frame push = ps_request(rig, 0, PL_FRAME_PUSH);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        ps_piece(rig, 0, push, 4 * order[i], 4, grad + 4 * order[i]);
        const ps_sent *ack = ps_expect(rig, rig->peer[0], PL_FRAME_ACK);
        assert_int_equal(0, ack->frame.flags);
        assert_int_equal(4 * order[i], ack->frame.first);
        assert_int_equal(4, ack->frame.value[1]);
        if (order[i] != 8)
            ps_quiet(rig);
    }
    assert_int_equal(2, ps_look(rig, 0).duplicates);
    assert_int_equal(1, ps_look(rig, 0).step);
    for (int i = 0; i < 48; i++)
        assert_true(rig->params[i] == (float)i);
    ps_close(rig);
}

static void ps_core_requests_missing_pieces(void **state)
{
    (void)state;
    ps_rig *rig = ps_open(
        (pl_ps_core_opts) {
            .mode = PL_PS_ASYNC, .workers = 1, .count = 8, .piece = 4 },
        "sgd");
    float zero[8] = { 0 };
    ps_join(rig, 0, 0);
    /* A probe that comes before any piece. */
    pl_frame init = ps_request(rig, 0, PL_FRAME_INIT);
    ps_probe(rig, 0, PL_FRAME_INIT, 0);
    assert_int_equal(PL_ACK_NEED,
                     ps_expect(rig, rig->peer[0], PL_FRAME_ACK)->frame.flags);
    ps_piece(rig, 0, init, 0, 4, zero);
    ps_quiet(rig); /* two pieces fit the window: no acknowledgement */
    ps_probe(rig, 0, PL_FRAME_INIT, 0);
    assert_int_equal(PL_ACK_NEED,
                     ps_expect(rig, rig->peer[0], PL_FRAME_ACK)->frame.flags);
    /* A piece of another kind under the same number is not mixed in. */
    pl_frame push = init;
    push.kind = PL_FRAME_PUSH;
    ps_piece(rig, 0, push, 4, 4, zero);
    ps_quiet(rig);
    ps_piece(rig, 0, init, 4, 4, zero);
    assert_int_equal(PL_ACK_DONE,
                     ps_expect(rig, rig->peer[0], PL_FRAME_ACK)->frame.flags);
    ps_quiet(rig);
    ps_close(rig);
}

/* 12 pieces go out: 8 at once, the others as these are acknowledged. */
static void ps_core_answer_keeps_to_the_window(void **state)
{
    (void)state;
    ps_rig *rig = ps_open(
        (pl_ps_core_opts) {
            .mode = PL_PS_ASYNC, .workers = 1, .count = 48, .piece = 4 },
        "sgd");
    ps_join(rig, 0, 0);
    pl_frame init = ps_request(rig, 0, PL_FRAME_INIT);
    for (int p = 0; p < 12; p++)
        ps_piece(rig, 0, init, 4 * p, 4, rig->params);
    ps_forget(rig);
    ps_pull(rig, 0, 0, 0);
    for (int p = 0; p < PL_PIECE_WINDOW; p++)
        assert_int_equal(4 * p, ps_answer(rig, 0, 0, 0)->frame.first);
    ps_quiet(rig);
    pl_frame ack = { .kind = PL_FRAME_ACK,
                     .incarnation = rig->incarnation[0],
                     .sequence = rig->sequence[0],
                     .first = 8,
                     .value = { 0, 4 } };
    ps_say(rig, rig->peer[0], ack, NULL);
    assert_int_equal(32, ps_answer(rig, 0, 0, 0)->frame.first);
    ps_say(rig, rig->peer[0], ack, NULL); /* twice counts once */
    ps_quiet(rig);
    /* A probe: all that was not acknowledged again. */
    ps_probe(rig, 0, PL_FRAME_PULL, 0);
    static const int64_t again[] = { 0, 4, 12, 16, 20, 24, 28, 32 };
    for (int i = 0; i < 8; i++)
        assert_int_equal(again[i], ps_answer(rig, 0, 0, 0)->frame.first);
    ps_quiet(rig);
    ps_close(rig);
}

static void ps_core_frames_that_are_not_requests_are_refused(void **state)
{
    (void)state;
    static const pl_frame_kind kinds[] = {
        PL_FRAME_WELCOME,       PL_FRAME_REFUSE, PL_FRAME_PARAMS,
        PL_FRAME_HEARTBEAT_ACK, PL_FRAME_OVER,   PL_FRAME_REPORT,
        PL_FRAME_APPLY
    };
    ps_rig *rig = ps_start((pl_ps_core_opts) { 0 }, 0);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        ps_say(rig, rig->peer[0], ps_request(rig, 0, kinds[i]), NULL);
        ps_expect_text(rig, rig->peer[0], PL_FRAME_REFUSE, "not a request");
    }
    ps_quiet(rig);
    assert_int_equal(0, ps_look(rig, 0).step);
    ps_close(rig);
}

UNIT_TESTS(cmocka_unit_test(ps_core_new_survives_each_failed_allocation),
           cmocka_unit_test(ps_core_init_sets_parameters_and_step),
           cmocka_unit_test(ps_core_init_resets_the_slots),
           cmocka_unit_test(ps_core_init_is_for_the_chief_only),
           cmocka_unit_test(ps_core_init_of_an_impossible_step_is_refused),
           cmocka_unit_test(ps_core_push_before_init_is_refused),
           cmocka_unit_test(ps_core_push_of_the_evaluator_is_refused),
           cmocka_unit_test(ps_core_stranger_is_refused),
           cmocka_unit_test(ps_core_wrong_shapes_are_refused),
           cmocka_unit_test(ps_core_gradients_that_are_not_finite_are_refused),
           cmocka_unit_test(ps_core_refusal_is_repeated),
           cmocka_unit_test(ps_core_push_is_applied_once_and_answered_again),
           cmocka_unit_test(ps_core_frames_of_another_life_are_ignored),
           cmocka_unit_test(ps_core_pieces_make_a_push_in_any_order),
           cmocka_unit_test(ps_core_requests_missing_pieces),
           cmocka_unit_test(ps_core_answer_keeps_to_the_window),
           cmocka_unit_test(ps_core_frames_that_are_not_requests_are_refused))
