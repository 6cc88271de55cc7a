/* async and ssp over two servers: a gradient counts on both or on neither,
 * and server 0 says which.
 *
 * Invariants and the tests that check them:
 *   async I1  ps_settle_leader_applies_what_is_on_all_servers
 *   async I2  ps_settle_follower_waits_for_the_verdict
 *   async I3  ps_settle_follower_settles_before_a_join
 *   async I4  ps_settle_follower_saves_without_a_half_gradient
 *   async I6  ps_tests_are_waited_for
 *   ssp C4    ps_tests_block_no_worker_that_the_chief_waits_for */
#include "support/ps.h"

#define SERVER_1 (PS_SERVER + 1)
#define PLAN     "plan"

static uint32_t server_1; /* the incarnation that server 0 gave it */
static int saves;

static bool on_save(void *context, const char *plan, size_t bytes)
{
    (void)context, (void)plan, (void)bytes;
    saves++;
    return true;
}

static bool on_commit(void *context, const pl_ps_part *parts)
{
    (void)context, (void)parts;
    return true;
}

static bool on_load(void *context, const char *plan, size_t bytes)
{
    (void)context, (void)plan, (void)bytes;
    return true;
}

static void on_cancel(void *context)
{
    (void)context;
}

static const pl_ps_core_ops ops = {
    .send = ps_on_send,
    .lost = ps_on_lost,
    .save = on_save,
    .commit = on_commit,
    .load = on_load,
    .cancel = on_cancel,
};

static pl_ps_core_opts resolve(pl_ps_core_opts opts)
{
    saves = 0;
    opts.mode = opts.mode == PL_PS_SYNC ? PL_PS_ASYNC : opts.mode;
    opts.on_loss = PL_ON_LOSS_CONTINUE;
    opts.ops = &ops;
    opts.ps = 2;
    return opts;
}

static ps_rig *start_leader(pl_ps_core_opts opts)
{
    ps_rig *rig = ps_start(resolve(opts), 0);
    ps_say_text(rig, SERVER_1, (pl_frame) { .kind = PL_FRAME_JOIN },
                "{\"role\": \"ps\", \"index\": 1, \"job\": \"\"}");
    server_1 = ps_expect(rig, SERVER_1, PL_FRAME_WELCOME)->frame.incarnation;
    return rig;
}

static void join_follower(ps_rig *rig, int32_t worker, uint32_t incarnation)
{
    char text[64];
    snprintf(text, sizeof text,
             "{\"role\": \"worker\", \"index\": %d, \"job\": \"\"}", worker);
    rig->peer[worker] = PS_WORKER + worker + (int32_t)incarnation * PS_LIFE;
    rig->incarnation[worker] = incarnation;
    rig->sequence[worker] = 0;
    ps_say_text(
        rig, rig->peer[worker],
        (pl_frame) { .kind = PL_FRAME_JOIN, .incarnation = incarnation }, text);
}

static ps_rig *start_follower(pl_ps_core_opts opts)
{
    float zero[PS_FLOATS] = { 0 };
    opts = resolve(opts);
    opts.index = 1;
    ps_rig *rig = ps_open(opts, "sgd");
    ps_say_text(rig, PL_PEER_COORDINATOR,
                (pl_frame) { .kind = PL_FRAME_WELCOME, .incarnation = 9 },
                "{}");
    for (int32_t w = 0; w < rig->workers; w++) {
        join_follower(rig, w, 3 + (uint32_t)w);
        ps_expect(rig, rig->peer[w], PL_FRAME_WELCOME);
    }
    pl_frame init = ps_request(rig, 0, PL_FRAME_INIT);
    int64_t piece = opts.piece > 0 ? opts.piece : rig->count;
    for (int64_t at = 0; at < rig->count; at += piece)
        ps_piece(rig, 0, init, at, (uint32_t)piece, zero);
    ps_done(rig, 0);
    ps_quiet(rig);
    return rig;
}

/* Server 1 has this gradient complete. */
static void say_have(ps_rig *rig, int32_t worker, uint32_t incarnation,
                     uint64_t sequence)
{
    ps_say(rig, SERVER_1,
           (pl_frame) { .kind = PL_FRAME_HAVE,
                        .incarnation = server_1,
                        .sequence = sequence,
                        .first = incarnation,
                        .value = { worker } },
           NULL);
}

static void expect_verdict(ps_rig *rig, pl_frame expected)
{
    const pl_frame *frame = &ps_expect(rig, SERVER_1, PL_FRAME_APPLY)->frame;
    assert_int_equal(expected.flags, frame->flags);
    assert_int_equal(expected.first, frame->first);
    assert_int_equal(expected.sequence, frame->sequence);
    assert_int_equal(expected.value[0], frame->value[0]);
    assert_int_equal(expected.value[1], frame->value[1]);
    assert_int_equal(server_1, frame->incarnation);
}

static void say_verdict(ps_rig *rig, int32_t worker, int32_t share,
                        unsigned flags)
{
    ps_say(rig, PL_PEER_COORDINATOR,
           (pl_frame) { .kind = PL_FRAME_APPLY,
                        .flags = (uint8_t)flags,
                        .sequence = rig->sequence[worker],
                        .first = rig->incarnation[worker],
                        .value = { worker, share } },
           NULL);
}

static void expect_have(ps_rig *rig, int32_t worker)
{
    const pl_frame *frame =
        &ps_expect(rig, PL_PEER_COORDINATOR, PL_FRAME_HAVE)->frame;
    assert_int_equal(worker, frame->value[0]);
    assert_int_equal(rig->incarnation[worker], frame->first);
    assert_int_equal(rig->sequence[worker], frame->sequence);
}

static void say_save(ps_rig *rig, int64_t first, int64_t second)
{
    const int64_t counts[2] = { first, second };
    char payload[sizeof counts + sizeof PLAN - 1];
    memcpy(payload, counts, sizeof counts);
    memcpy(payload + sizeof counts, PLAN, sizeof PLAN - 1);
    pl_frame frame = ps_request(rig, 0, PL_FRAME_SAVE);
    frame.value[0] = 5;
    frame.payload_bytes = sizeof payload;
    ps_say(rig, rig->peer[0], frame, payload);
}

static void ps_settle_leader_applies_what_is_on_all_servers(void **state)
{
    (void)state;
    ps_rig *rig = start_leader((pl_ps_core_opts) { 0 });
    ps_push(rig, 1, 0, -1.0f);
    ps_quiet(rig);
    assert_int_equal(0, ps_look(rig, 0).step);
    say_have(rig, 1, rig->incarnation[1], 7); /* not this one */
    ps_quiet(rig);
    say_have(rig, 1, rig->incarnation[1], 1);
    pl_frame verdict = { .first = rig->incarnation[1],
                         .sequence = 1,
                         .value = { 1, 1 } };
    expect_verdict(rig, verdict);
    ps_answer_of(rig, 1, 0, 1, 1.0f);
    say_have(rig, 1, rig->incarnation[1], 1); /* the verdict was lost */
    expect_verdict(rig, verdict);
    /* Server 1 may be first. */
    say_have(rig, 0, rig->incarnation[0], rig->sequence[0] + 1);
    ps_quiet(rig);
    ps_push(rig, 0, 1, -1.0f);
    ps_expect(rig, SERVER_1, PL_FRAME_APPLY);
    ps_answer_of(rig, 0, 0, 2, 2.0f);
    ps_quiet(rig);
    ps_close(rig);
}

static void ps_settle_follower_waits_for_the_verdict(void **state)
{
    (void)state;
    ps_rig *rig = start_follower((pl_ps_core_opts) { 0 });
    ps_push(rig, 1, 0, -1.0f);
    expect_have(rig, 1);
    ps_quiet(rig);
    assert_int_equal(0, ps_look(rig, 0).step);
    ps_tick(rig, 600); /* it repeats this until acknowledged */
    ps_expect(rig, PL_PEER_COORDINATOR, PL_FRAME_HEARTBEAT);
    expect_have(rig, 1);
    say_verdict(rig, 1, 0, 0); /* it was one of worker 0's share */
    ps_answer_of(rig, 1, 0, 1, 1.0f);
    assert_int_equal(1, ps_look(rig, 0).applied_of_worker);
    assert_int_equal(0, ps_look(rig, 1).applied_of_worker);
    say_verdict(rig, 1, 0, 0); /* twice */
    ps_quiet(rig);
    ps_push(rig, 0, 1, -1.0f);
    expect_have(rig, 0);
    say_verdict(rig, 0, 0, PL_APPLY_DROPPED);
    ps_answer_of(rig, 0, PL_ANSWER_DROPPED, 1, 1.0f);
    assert_int_equal(1, ps_look(rig, 0).applied_of_worker);
    ps_close(rig);
}

/* A verdict that names no worker, or a gradient that is not here, changes
 * nothing. */
static void ps_settle_follower_ignores_other_verdicts(void **state)
{
    (void)state;
    static const pl_frame wrong[] = {
        { .sequence = 1, .first = 4, .value = { 2, 0 } },
        { .sequence = 1, .first = 4, .value = { -1, 0 } },
        { .sequence = 1, .first = 4, .value = { 1, 2 } },
        { .sequence = 1, .first = 4, .value = { 1, -1 } },
        { .sequence = 2, .first = 4, .value = { 1, 1 } },
        { .sequence = 1, .first = 5, .value = { 1, 1 } },
        { .sequence = 1, .first = 3, .value = { 0, 0 } },
    };
    ps_rig *rig = start_follower((pl_ps_core_opts) { 0 });
    ps_push(rig, 1, 0, -1.0f);
    expect_have(rig, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pl_frame frame = wrong[i];
        frame.kind = PL_FRAME_APPLY;
        ps_say(rig, PL_PEER_COORDINATOR, frame, NULL);
    }
    ps_quiet(rig);
    assert_int_equal(0, ps_look(rig, 0).step);
    say_verdict(rig, 1, 1, 0);
    ps_answer_of(rig, 1, 0, 1, 1.0f);
    ps_close(rig);
}

/* Server 1 has half of the gradient that worker 1 died in: server 0 does not
 * use it, and the next checkpoint does not wait for it. */
static void ps_settle_leader_saves_without_a_half_gradient(void **state)
{
    (void)state;
    ps_rig *rig = start_leader((pl_ps_core_opts) { 0 });
    ps_push(rig, 1, 0, -1.0f);
    pl_frame freeze = ps_request(rig, 0, PL_FRAME_PAUSE);
    freeze.flags = PL_PAUSE_FREEZE;
    ps_say(rig, rig->peer[0], freeze, NULL);
    ps_quiet(rig); /* it may still be completed */
    ps_pass(rig, 6000, 1);
    assert_int_equal(1, rig->lost[1]);
    const ps_sent *sent = ps_expect(rig, rig->peer[0], PL_FRAME_ACK);
    int64_t counts[2];
    memcpy(counts, sent->bytes, sizeof counts);
    assert_int_equal(0, counts[0]);
    assert_int_equal(~INT64_C(0), counts[1]);
    say_save(rig, counts[0], counts[1]);
    assert_int_equal(1, saves);
    ps_done(rig, 0);
    assert_true(rig->params[0] == 0.0f);
    ps_close(rig);
}

/* ... nor does it on server 1, whichever half it has. */
static void ps_settle_follower_saves_without_a_half_gradient(void **state)
{
    (void)state;
    const float grad[PS_FLOATS] = { 1 };
    for (int whole = 0; whole <= 1; whole++) {
        ps_rig *rig =
            start_follower((pl_ps_core_opts) { .count = 8, .piece = 4 });
        pl_frame push = ps_request(rig, 1, PL_FRAME_PUSH);
        ps_piece(rig, 1, push, 4, 4, grad);
        if (whole) {
            ps_piece(rig, 1, push, 0, 4, grad);
            expect_have(rig, 1);
        }
        say_save(rig, 0, ~INT64_C(0));
        assert_int_equal(1, saves);
        ps_done(rig, 0);
        assert_true(rig->params[4] == 0.0f);
        ps_close(rig);
    }
}

/* What server 0 counts was complete here: only its verdict is awaited. */
static void ps_settle_follower_saves_what_server_0_counts(void **state)
{
    (void)state;
    ps_rig *rig = start_follower((pl_ps_core_opts) { 0 });
    ps_push(rig, 1, 0, -1.0f);
    expect_have(rig, 1);
    ps_say(rig, PL_PEER_COORDINATOR,
           (pl_frame) { .kind = PL_FRAME_HEARTBEAT_ACK, .flags = PL_STOP_NOW },
           NULL);
    say_save(rig, 0, ~INT64_C(1));
    assert_int_equal(0, saves);
    say_verdict(rig, 1, 1, 0);
    assert_int_equal(1, saves);
    ps_close(rig);
}

/* A new process of the worker: the gradient of the one before cannot be
 * completed any more.  One that was applied stays so. */
static void ps_settle_leader_drops_gradients_of_a_dead_process(void **state)
{
    (void)state;
    ps_rig *rig = start_leader((pl_ps_core_opts) { 0 });
    ps_push(rig, 1, 0, -1.0f);
    say_have(rig, 1, rig->incarnation[1], 1);
    ps_expect(rig, SERVER_1, PL_FRAME_APPLY);
    ps_answer(rig, 1, 0, 1);
    ps_push(rig, 1, 1, -1.0f);
    uint32_t before = rig->incarnation[1];
    ps_pass(rig, 6000, 1);
    ps_join(rig, 1, 1);
    assert_int_equal(1, rig->sent[rig->taken - 1].frame.value[0]);
    say_have(rig, 1, before, 2);
    expect_verdict(rig, (pl_frame) { .flags = PL_APPLY_DROPPED,
                                     .first = before,
                                     .sequence = 2,
                                     .value = { 1 } });
    say_have(rig, 1, before, 1);
    expect_verdict(
        rig, (pl_frame) { .first = before, .sequence = 1, .value = { 1, 1 } });
    assert_int_equal(1, ps_look(rig, 1).applied_of_worker);
    /* The same number of the new process is another gradient. */
    ps_push(rig, 1, 1, -1.0f);
    ps_quiet(rig);
    say_have(rig, 1, rig->incarnation[1], 1);
    ps_expect(rig, SERVER_1, PL_FRAME_APPLY);
    ps_answer_of(rig, 1, 0, 2, 2.0f);
    ps_close(rig);
}

/* The same process joins once more, as after a silence of server 0. */
static void ps_settle_leader_drops_gradients_before_a_new_join(void **state)
{
    (void)state;
    ps_rig *rig = start_leader((pl_ps_core_opts) { 0 });
    ps_push(rig, 1, 0, -1.0f);
    ps_say_text(rig, rig->peer[1],
                (pl_frame) { .kind = PL_FRAME_JOIN, .sequence = 2, .first = 1 },
                "{\"role\": \"worker\", \"index\": 1, \"job\": \"\"}");
    ps_expect(rig, rig->peer[1], PL_FRAME_WELCOME);
    say_have(rig, 1, rig->incarnation[1], 1);
    expect_verdict(rig, (pl_frame) { .flags = PL_APPLY_DROPPED,
                                     .first = rig->incarnation[1],
                                     .sequence = 1,
                                     .value = { 1 } });
    assert_int_equal(0, ps_look(rig, 0).step);
    ps_close(rig);
}

/* Server 1 admits a worker when it knows the outcome of its gradient. */
static void ps_settle_follower_settles_before_a_join(void **state)
{
    (void)state;
    ps_rig *rig = start_follower((pl_ps_core_opts) { 0 });
    ps_push(rig, 1, 0, -1.0f);
    expect_have(rig, 1);
    pl_peer before = rig->peer[1];
    join_follower(rig, 1, 8);
    ps_expect(rig, PL_PEER_COORDINATOR, PL_FRAME_HAVE);
    ps_quiet(rig);
    ps_say(rig, PL_PEER_COORDINATOR,
           (pl_frame) { .kind = PL_FRAME_APPLY,
                        .sequence = 1,
                        .first = 4,
                        .value = { 1, 1 } },
           NULL);
    ps_expect(rig, before, PL_FRAME_PARAMS);
    assert_int_equal(1, ps_look(rig, 1).applied_of_worker);
    join_follower(rig, 1, 8);
    ps_expect(rig, before, PL_FRAME_REFUSE);
    ps_expect(rig, rig->peer[1], PL_FRAME_WELCOME);
    ps_push(rig, 1, 1, -1.0f);
    expect_have(rig, 1);
    ps_close(rig);
}

static void ps_settle_refuses_two_gradients_at_once(void **state)
{
    (void)state;
    ps_rig *rig = start_leader((pl_ps_core_opts) { 0 });
    ps_push(rig, 1, 0, -1.0f);
    ps_push(rig, 1, 0, -1.0f);
    ps_expect_text(rig, rig->peer[1], PL_FRAME_REFUSE, "was settled");
    ps_close(rig);
}

/* The end: a gradient that is not on all servers by then is used by none. */
static void ps_settle_stop_drops_waiting_gradients(void **state)
{
    (void)state;
    ps_rig *rig = start_leader((pl_ps_core_opts) { 0 });
    ps_push(rig, 1, 0, -1.0f);
    ps_quiet(rig);
    pl_ps_core_stop(rig->core, false, "stop_loss");
    ps_expect(rig, SERVER_1, PL_FRAME_HEARTBEAT_ACK);
    pl_frame dropped = { .flags = PL_APPLY_DROPPED,
                         .first = rig->incarnation[1],
                         .sequence = 1,
                         .value = { 1 } };
    expect_verdict(rig, dropped);
    ps_answer(rig, 1, PL_ANSWER_STOP | PL_ANSWER_DROPPED, 0);
    say_have(rig, 1, rig->incarnation[1], 1);
    expect_verdict(rig, dropped);
    /* One that comes later is dropped on arrival, by both servers. */
    ps_push(rig, 0, 0, -1.0f);
    ps_answer(rig, 0, PL_ANSWER_STOP | PL_ANSWER_DROPPED, 0);
    say_have(rig, 0, rig->incarnation[0], rig->sequence[0]);
    dropped.first = rig->incarnation[0];
    dropped.sequence = rig->sequence[0];
    dropped.value[0] = 0;
    expect_verdict(rig, dropped);
    ps_close(rig);
}

/* Server 1 receives the end before the verdict on a gradient that was applied.
 */
static void ps_settle_verdict_holds_after_the_end(void **state)
{
    (void)state;
    ps_rig *rig = start_follower((pl_ps_core_opts) { 0 });
    ps_push(rig, 1, 0, -1.0f);
    expect_have(rig, 1);
    ps_say(rig, PL_PEER_COORDINATOR,
           (pl_frame) { .kind = PL_FRAME_HEARTBEAT_ACK, .flags = PL_STOP_NOW },
           NULL);
    /* The chief wants the last parameters, which are those of step 1. */
    ps_pull(rig, 0, PL_PULL_FINAL, 1);
    ps_quiet(rig);
    say_verdict(rig, 1, 1, 0);
    ps_answer_of(rig, 0, PL_ANSWER_STOP, 1, 1.0f);
    ps_answer(rig, 1, PL_ANSWER_STOP, 1);
    ps_close(rig);
}

/* Server 1 may be ahead of server 0's count; that is what counts. */
static void ps_settle_follower_does_not_end_the_job(void **state)
{
    (void)state;
    ps_rig *rig = start_follower((pl_ps_core_opts) { .end_step = 1 });
    for (int64_t step = 1; step <= 2; step++) {
        ps_push(rig, 1, step - 1, -1.0f);
        expect_have(rig, 1);
        say_verdict(rig, 1, 1, 0);
        ps_answer_of(rig, 1, 0, step, (float)step);
    }
    ps_close(rig);
}

/* One server; the chief tests every 3 steps, and that decides. */
static ps_rig *open_tested(pl_ps_mode mode, int32_t staleness)
{
    float zero[PS_FLOATS] = { 0 };
    ps_rig *rig = ps_open((pl_ps_core_opts) { .workers = 3,
                                              .mode = mode,
                                              .staleness = staleness,
                                              .on_loss = PL_ON_LOSS_CONTINUE },
                          "sgd");
    rig->test_every = 3;
    for (int32_t w = 0; w < 3; w++)
        ps_join(rig, w, 0);
    ps_init(rig, 0, zero);
    return rig;
}

static ps_rig *start_tested(pl_ps_mode mode, int32_t staleness)
{
    ps_rig *rig = open_tested(mode, staleness);
    for (int32_t w = 0; w < 3; w++) {
        ps_pull(rig, w, 0, 0);
        ps_answer_of(rig, w, 0, 0, 0.0f);
    }
    return rig;
}

static void freeze(ps_rig *rig)
{
    pl_frame frame = ps_request(rig, 0, PL_FRAME_PAUSE);
    frame.flags = PL_PAUSE_FREEZE;
    ps_say(rig, rig->peer[0], frame, NULL);
    ps_expect(rig, rig->peer[0], PL_FRAME_ACK);
}

/* I6: three gradients are granted, so the first worker that pushes waits; the
 * chief gets the parameters of the test's step, and no other continues before
 * its next gradient, however long that takes. */
static void ps_tests_are_waited_for(void **state)
{
    (void)state;
    ps_rig *rig = start_tested(PL_PS_ASYNC, 0);
    ps_push(rig, 1, 0, -1.0f);
    ps_quiet(rig);
    ps_push(rig, 0, 0, -1.0f);
    ps_quiet(rig); /* worker 2 still owes one */
    ps_push(rig, 2, 0, -1.0f);
    ps_answer_of(rig, 0, 0, 3, 3.0f);
    ps_quiet(rig);
    freeze(rig);
    ps_tick(rig, 100);
    ps_quiet(rig);
    ps_push(rig, 0, 3, -1.0f); /* the test was made */
    ps_answer_of(rig, 1, 0, 3, 3.0f);
    ps_answer_of(rig, 2, 0, 3, 3.0f);
    ps_quiet(rig); /* up to step 6 all are granted */
    ps_push(rig, 1, 3, -1.0f);
    ps_push(rig, 2, 3, -1.0f);
    ps_answer_of(rig, 0, 0, 6, 6.0f);
    ps_quiet(rig);
    ps_close(rig);
}

/* I6: the others leave an update to a chief that is slow to begin. */
static void ps_tests_are_waited_for_from_the_first_step(void **state)
{
    (void)state;
    ps_rig *rig = open_tested(PL_PS_ASYNC, 0);
    for (int32_t w = 1; w < 3; w++) {
        ps_pull(rig, w, 0, 0);
        ps_answer_of(rig, w, 0, 0, 0.0f);
    }
    ps_push(rig, 1, 0, -1.0f);
    ps_push(rig, 2, 0, -1.0f);
    ps_quiet(rig);
    ps_pull(rig, 0, 0, 0);
    ps_answer_of(rig, 0, 0, 2, 2.0f);
    ps_quiet(rig);
    ps_push(rig, 0, 2, -1.0f);
    ps_answer_of(rig, 0, 0, 3, 3.0f);
    ps_quiet(rig);
    ps_close(rig);
}

/* A worker that is lost with its grant leaves it to another. */
static void ps_tests_do_not_wait_for_a_lost_worker(void **state)
{
    (void)state;
    ps_rig *rig = start_tested(PL_PS_ASYNC, 0);
    ps_push(rig, 1, 0, -1.0f);
    ps_push(rig, 0, 0, -1.0f);
    ps_quiet(rig);
    for (int i = 0; i < 20 && rig->lost[2] == 0; i++) {
        ps_heart(rig, 0, 1, PL_PHASE_WAITING, i);
        ps_heart(rig, 1, 1, PL_PHASE_WAITING, i);
        ps_tick(rig, 500);
    }
    assert_int_equal(1, rig->lost[2]);
    ps_answer_of(rig, 0, 0, 2, 2.0f);
    ps_quiet(rig);
    ps_close(rig);
}

/* A chief that waits for the end tests no more: no worker waits for it. */
static void ps_tests_of_a_finished_chief_block_no_worker(void **state)
{
    (void)state;
    ps_rig *rig = start_tested(PL_PS_ASYNC, 0);
    ps_push(rig, 1, 0, -1.0f);
    ps_push(rig, 2, 0, -1.0f);
    ps_push(rig, 0, 0, -1.0f);
    ps_answer_of(rig, 0, 0, 3, 3.0f);
    ps_quiet(rig);
    ps_pull(rig, 0, PL_PULL_FINAL, 0);
    ps_answer_of(rig, 1, 0, 3, 3.0f);
    ps_answer_of(rig, 2, 0, 3, 3.0f);
    ps_quiet(rig);
    ps_close(rig);
}

/* ssp, C4: the chief is as far ahead as it may be and waits for worker 2, which
 * continues past the test's step. */
static void ps_tests_block_no_worker_that_the_chief_waits_for(void **state)
{
    (void)state;
    ps_rig *rig = start_tested(PL_PS_SSP, 0);
    ps_push(rig, 0, 0, -1.0f);
    ps_push(rig, 1, 0, -1.0f);
    ps_quiet(rig);
    ps_push(rig, 2, 0, -1.0f);
    ps_answer_of(rig, 0, 0, 3, 3.0f);
    ps_quiet(rig);
    ps_push(rig, 0, 3, -1.0f); /* no test was due there */
    ps_answer_of(rig, 1, 0, 4, 4.0f);
    ps_answer_of(rig, 2, 0, 4, 4.0f);
    ps_quiet(rig);
    ps_close(rig);
}

UNIT_TESTS(cmocka_unit_test(ps_tests_are_waited_for),
           cmocka_unit_test(ps_tests_are_waited_for_from_the_first_step),
           cmocka_unit_test(ps_tests_do_not_wait_for_a_lost_worker),
           cmocka_unit_test(ps_tests_of_a_finished_chief_block_no_worker),
           cmocka_unit_test(ps_tests_block_no_worker_that_the_chief_waits_for),
           cmocka_unit_test(ps_settle_leader_applies_what_is_on_all_servers),
           cmocka_unit_test(ps_settle_follower_waits_for_the_verdict),
           cmocka_unit_test(ps_settle_follower_ignores_other_verdicts),
           cmocka_unit_test(ps_settle_leader_saves_without_a_half_gradient),
           cmocka_unit_test(ps_settle_follower_saves_without_a_half_gradient),
           cmocka_unit_test(ps_settle_follower_saves_what_server_0_counts),
           cmocka_unit_test(ps_settle_leader_drops_gradients_of_a_dead_process),
           cmocka_unit_test(ps_settle_leader_drops_gradients_before_a_new_join),
           cmocka_unit_test(ps_settle_follower_settles_before_a_join),
           cmocka_unit_test(ps_settle_refuses_two_gradients_at_once),
           cmocka_unit_test(ps_settle_stop_drops_waiting_gradients),
           cmocka_unit_test(ps_settle_verdict_holds_after_the_end),
           cmocka_unit_test(ps_settle_follower_does_not_end_the_job))
