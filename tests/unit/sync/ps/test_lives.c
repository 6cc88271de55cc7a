/* Servers and tasks that restart: which job and which life a frame belongs to.
 */
#include "support/ps.h"

/* A worker's JOIN that knows a job, or "" for none. */
static void join_job(ps_rig *rig, pl_peer from, int32_t worker,
                     uint32_t generation, const char *job)
{
    char text[160];
    snprintf(text, sizeof text,
             "{\"role\": \"worker\", \"index\": %d, \"job\": \"%s\"}", worker,
             job);
    ps_say_text(rig, from,
                (pl_frame) { .kind = PL_FRAME_JOIN, .generation = generation },
                text);
}

#define JOB_A "000000000000000a"
#define JOB_B "000000000000000b"

static void ps_lives_chief_identifies_the_job(void **state)
{
    (void)state;
    ps_rig *rig = ps_open((pl_ps_core_opts) { 0 }, "sgd");
    join_job(rig, 31, 1, 0, "");
    ps_expect_text(rig, 31, PL_FRAME_WELCOME, "\"job\":\"\"");
    join_job(rig, 30, 0, 0, JOB_A);
    ps_expect_text(rig, 30, PL_FRAME_WELCOME, "\"job\":\"" JOB_A "\"");
    join_job(rig, 32, 1, 0, JOB_B);
    ps_expect_text(rig, 32, PL_FRAME_REFUSE,
                   "belongs to job " JOB_B ", but ps 0 serves job " JOB_A);
    ps_close(rig);
}

/* Server 0 and the chief were both restarted: a worker that kept running still
 * belongs to the job, whichever joins first. */
static void ps_lives_survivor_recognizes_its_job(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        ps_rig *rig = ps_open((pl_ps_core_opts) { 0 }, "sgd");
        for (int turn = 0; turn < 2; turn++) {
            bool chief = turn == first;
            join_job(rig, chief ? 30 : 31, chief ? 0 : 1, chief ? 0 : 7, JOB_A);
            while (rig->sent[rig->taken].frame.kind == PL_FRAME_HEARTBEAT_ACK)
                rig->taken++;
            ps_expect(rig, chief ? 30 : 31, PL_FRAME_WELCOME);
        }
        ps_quiet(rig);
        ps_close(rig);
    }
}

/* A worker left from another job came to the new server before the chief: it is
 * detected when all rejoin. */
static void ps_lives_stranger_does_not_keep_the_chief_out(void **state)
{
    (void)state;
    ps_rig *rig = ps_open((pl_ps_core_opts) { 0 }, "sgd");
    join_job(rig, 31, 1, 0, JOB_B);
    uint32_t before = ps_expect(rig, 31, PL_FRAME_WELCOME)->frame.generation;
    join_job(rig, 30, 0, 0, JOB_A);
    assert_true(ps_expect(rig, 31, PL_FRAME_HEARTBEAT_ACK)->frame.generation >
                before);
    ps_expect_text(rig, 30, PL_FRAME_WELCOME, JOB_A);
    join_job(rig, 31, 1, before, JOB_B);
    ps_expect_text(rig, 31, PL_FRAME_REFUSE, "belongs to job " JOB_B);
    ps_close(rig);
}

/* Incarnations of two lives of server 0 are not compared: a task that joins is
 * admitted when this server, too, knows the new life. */
static void ps_lives_follower_waits_until_it_knows_the_new_life(void **state)
{
    (void)state;
    static const char text[] =
        "{\"role\": \"worker\", \"index\": 0, \"job\": \"\"}";
    ps_rig *rig = ps_open((pl_ps_core_opts) { .ps = 2, .index = 1 }, "sgd");
    pl_frame welcome = { .kind = PL_FRAME_WELCOME, .incarnation = 0x50009 };
    pl_frame join = { .kind = PL_FRAME_JOIN, .incarnation = 0x5000a };
    ps_say_text(rig, PL_PEER_COORDINATOR, welcome, "{}");
    ps_say_text(rig, 30, join, text);
    ps_expect(rig, 30, PL_FRAME_WELCOME);
    join.incarnation = 0x30002;
    ps_say_text(rig, 31, join, text);
    ps_quiet(rig);
    welcome.incarnation = 0x30003;
    welcome.generation = 2;
    ps_say_text(rig, PL_PEER_COORDINATOR, welcome, "{}");
    ps_forget(rig);
    join.generation = 2;
    ps_say_text(rig, 31, join, text);
    while (rig->sent[rig->taken].to != 31)
        rig->taken++;
    assert_int_equal(0x30002,
                     ps_expect(rig, 31, PL_FRAME_WELCOME)->frame.incarnation);
    ps_close(rig);
}

/* Several heartbeats fit into any limit. */
static void ps_lives_follower_sends_heartbeats_within_the_limit(void **state)
{
    (void)state;
    static const int64_t limits_ms[] = { 100, 500, 1000, 5000, 60000 };
    for (size_t i = 0; i < sizeof limits_ms / sizeof *limits_ms; i++) {
        ps_rig *rig = ps_open(
            (pl_ps_core_opts) {
                .ps = 2, .index = 1, .heartbeat_ms = limits_ms[i] },
            "sgd");
        pl_frame welcome = { .kind = PL_FRAME_WELCOME, .incarnation = 9 };
        ps_say_text(rig, PL_PEER_COORDINATOR, welcome, "{}");
        int hearts = 0;
        int64_t end_ms = limits_ms[i] < 5000 ? limits_ms[i] : 5000;
        for (int64_t ms = 0; ms < end_ms; ms += 10) {
            ps_forget(rig);
            ps_tick(rig, 10);
            for (int k = 0; k < rig->made; k++)
                hearts += rig->sent[k].frame.kind == PL_FRAME_HEARTBEAT;
        }
        assert_true(hearts >= 4 && hearts <= 10);
        ps_close(rig);
    }
}

/* A number that was given to another connection: its present owner is not the
 * process that had it before. */
static void ps_lives_number_of_a_peer_may_be_reused(void **state)
{
    (void)state;
    static const char text[] =
        "{\"role\": \"worker\", \"index\": 1, \"job\": \"\"}";
    ps_rig *rig = ps_open((pl_ps_core_opts) { 0 }, "sgd");
    join_job(rig, 31, 1, 0, "");
    uint32_t before = ps_expect(rig, 31, PL_FRAME_WELCOME)->frame.incarnation;
    pl_message message = {
        .from = 31,
        .first = true,
        .frame = { .kind = PL_FRAME_JOIN, .payload_bytes = sizeof text - 1 },
        .payload = text,
    };
    pl_ps_core_receive(rig->core, &message, rig->now_ns);
    assert_true(ps_expect(rig, 31, PL_FRAME_WELCOME)->frame.incarnation >
                before);
    ps_quiet(rig); /* nothing to the connection that was given up */
    ps_close(rig);
}

/* A server that was stopped may read the messages of a dead process after those
 * of the next.  Times of other hosts, or of other boots of one, do not compare:
 * there the last one counts. (J3) */
static void ps_lives_late_join_of_a_dead_process_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *role, *host, *boot;
        int64_t started_ms;
        pl_frame_kind answer;
    } cases[] = {
        { "worker", "a", "b1", 999, PL_FRAME_REFUSE },
        { "worker", "ab", "b1", 999, PL_FRAME_WELCOME },
        { "worker", "a", "b1", 1000, PL_FRAME_WELCOME },
        { "worker", "a", "b2", 10, PL_FRAME_WELCOME },
        { "worker", "a", "", 10, PL_FRAME_WELCOME },
        { "ps", "a", "b1", 999, PL_FRAME_REFUSE },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ps_rig *rig = ps_open((pl_ps_core_opts) { .ps = 2 }, "sgd");
        for (int turn = 0; turn < 2; turn++) {
            char text[200];
            snprintf(text, sizeof text,
                     "{\"role\": \"%s\", \"index\": 1, \"job\": \"\", "
                     "\"host\": \"%s\", \"process\": 7, \"started\": %lld, "
                     "\"boot\": \"%s\"}",
                     cases[i].role, turn == 0 ? "a" : cases[i].host,
                     turn == 0 ? 1000LL : (long long)cases[i].started_ms,
                     turn == 0 ? "b1" : cases[i].boot);
            ps_say_text(rig, 30 + turn, (pl_frame) { .kind = PL_FRAME_JOIN },
                        text);
            if (turn == 1 && cases[i].answer == PL_FRAME_WELCOME)
                ps_expect(rig, 30, PL_FRAME_REFUSE);
            ps_expect(rig, 30 + turn,
                      turn == 0 ? PL_FRAME_WELCOME : cases[i].answer);
        }
        ps_quiet(rig);
        ps_close(rig);
    }
}

/* The job has ended, but not its chief: one that died before its summary is
 * restarted and finds all as it was. */
static void ps_lives_held_server_waits_for_a_restarted_chief(void **state)
{
    (void)state;
    for (int held = 0; held < 2; held++) {
        ps_rig *rig = ps_open(
            (pl_ps_core_opts) { .workers = 1, .end_step = 1, .held = held },
            "sgd");
        float params[PS_FLOATS] = { 0 };
        ps_join(rig, 0, 0);
        ps_init(rig, 0, params);
        ps_push(rig, 0, 0, 1.0f);
        ps_forget(rig);
        ps_say_text(rig, rig->peer[0], ps_request(rig, 0, PL_FRAME_BYE), "{}");
        ps_heard(rig);
        ps_forget(rig);
        ps_tick(rig, 1000);
        assert_int_equal(!held, pl_ps_core_finished(rig->core));
        if (held) {
            ps_join(rig, 0, 1);
            assert_int_equal(1, ps_look(rig, 0).step);
            ps_say_text(rig, rig->peer[0], ps_request(rig, 0, PL_FRAME_BYE),
                        "{}");
            pl_ps_core_stop(rig->core, false, "interrupt");
            ps_tick(rig, 1000);
            assert_true(pl_ps_core_finished(rig->core));
            assert_ok(pl_ps_core_outcome(rig->core));
        }
        ps_close(rig);
    }
}

/* Messages may overtake each other: the job does not wait for a worker that has
 * left. */
static void ps_lives_join_after_the_goodbye_changes_nothing(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { 0 }, 0);
    ps_say(rig, rig->peer[1], ps_request(rig, 1, PL_FRAME_BYE), NULL);
    join_job(rig, rig->peer[1], 1, 0, "");
    ps_expect(rig, rig->peer[1], PL_FRAME_WELCOME);
    ps_pull(rig, 0, PL_PULL_FINAL, 0);
    ps_expect(rig, rig->peer[0], PL_FRAME_PARAMS);
    ps_close(rig);
}

/* A worker that joins again is told how many of its gradients were applied: one
 * that is still on its way must not be applied after that.  A join that comes
 * late has no effect. (J4) */
static void ps_lives_requests_before_a_join_are_void(void **state)
{
    (void)state;
    const float half[2] = { -1, -1 };
    for (int late = 0; late <= 1; late++) {
        ps_rig *rig = ps_open(
            (pl_ps_core_opts) { .mode = PL_PS_ASYNC, .piece = 2 }, "sgd");
        ps_join(rig, 0, 0);
        ps_join(rig, 1, 0);
        pl_frame init = ps_request(rig, 0, PL_FRAME_INIT);
        for (int p = 0; p < 2; p++)
            ps_piece(rig, 0, init, 2 * p, 2, half);
        ps_done(rig, 0);
        ps_go(rig);
        pl_frame push = ps_request(rig, 1, PL_FRAME_PUSH);
        ps_piece(rig, 1, push, 0, 2, half);
        pl_frame join = { .kind = PL_FRAME_JOIN,
                          .sequence = 2,
                          .first = (int64_t)push.sequence - late };
        ps_say_text(rig, rig->peer[1], join,
                    "{\"role\": \"worker\", \"index\": 1, \"job\": \"\"}");
        ps_expect(rig, rig->peer[1], PL_FRAME_WELCOME);
        ps_piece(rig, 1, push, 2, 2, half);
        assert_int_equal(late, ps_look(rig, 1).applied_of_worker);
        ps_forget(rig);
        ps_pull(rig, 1, 0, 0);
        ps_answer(rig, 1, 0, late);
        ps_close(rig);
    }
}

/* A worker that was done is not restarted; a job that is rolled back then
 * continues without it, or names the missing worker. */
static void ps_lives_rolled_back_job_may_continue_without_one(void **state)
{
    (void)state;
    float zero[PS_FLOATS] = { 0 };
    for (int on = 0; on <= 1; on++) {
        ps_rig *rig =
            ps_open((pl_ps_core_opts) { .join_ms = 1000,
                                        .on_loss = on ? PL_ON_LOSS_CONTINUE
                                                      : PL_ON_LOSS_WAIT },
                    "sgd");
        join_job(rig, PS_WORKER, 0, 1, ""); /* it knew a server 0 before */
        const ps_sent *sent = ps_expect(rig, PS_WORKER, PL_FRAME_WELCOME);
        rig->peer[0] = PS_WORKER;
        rig->incarnation[0] = sent->frame.incarnation;
        rig->generation = sent->frame.generation;
        assert_int_equal(2, rig->generation);
        ps_init(rig, 0, zero);
        ps_push(rig, 0, 0, -1.0f);
        ps_quiet(rig);
        ps_tick(rig, 1001);
        if (on)
            ps_answer_of(rig, 0, 0, 1, 1.0f);
        else
            assert_fails(PL_CLOSED, "worker 1 did not join within 1 s",
                         pl_ps_core_outcome(rig->core));
        ps_close(rig);
    }
}

/* Frozen when server 0 was lost, it sends nothing to the new one: where a
 * supervisor can restart it, it is declared lost, once. */
static void ps_lives_task_that_does_not_rejoin_is_declared_lost(void **state)
{
    (void)state;
    for (int supervised = 0; supervised <= 1; supervised++) {
        ps_rig *rig = ps_open((pl_ps_core_opts) { .join_ms = 1000,
                                                  .heartbeat_ms = 60000,
                                                  .supervised = supervised },
                              "sgd");
        join_job(rig, PS_WORKER, 0, 1, ""); /* it knew a server 0 before */
        ps_tick(rig, 500);
        assert_int_equal(0, rig->lost[1]);
        ps_tick(rig, 1);
        assert_int_equal(supervised, rig->lost[1]);
        ps_tick(rig, 900);
        ps_tick(rig, 99 + (supervised ? 1 : 0));
        bool waits = pl_ps_core_outcome(rig->core) == PL_OK;
        assert_true(waits == (supervised != 0)); /* the timeout started again */
        ps_tick(rig, 1);
        assert_fails(PL_CLOSED, "worker 1 did not join within 1 s",
                     pl_ps_core_outcome(rig->core));
        assert_int_equal(supervised, rig->lost[1]);
        assert_int_equal(0, rig->lost[0]);
        ps_close(rig);
    }
}

UNIT_TESTS(
    cmocka_unit_test(ps_lives_task_that_does_not_rejoin_is_declared_lost),
    cmocka_unit_test(ps_lives_rolled_back_job_may_continue_without_one),
    cmocka_unit_test(ps_lives_requests_before_a_join_are_void),
    cmocka_unit_test(ps_lives_join_after_the_goodbye_changes_nothing),

    cmocka_unit_test(ps_lives_chief_identifies_the_job),
    cmocka_unit_test(ps_lives_survivor_recognizes_its_job),
    cmocka_unit_test(ps_lives_stranger_does_not_keep_the_chief_out),
    cmocka_unit_test(ps_lives_follower_waits_until_it_knows_the_new_life),
    cmocka_unit_test(ps_lives_follower_sends_heartbeats_within_the_limit),
    cmocka_unit_test(ps_lives_number_of_a_peer_may_be_reused),
    cmocka_unit_test(ps_lives_late_join_of_a_dead_process_is_refused),
    cmocka_unit_test(ps_lives_held_server_waits_for_a_restarted_chief))
