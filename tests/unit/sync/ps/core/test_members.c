/* Joining, heartbeats, loss, leaving, the end.
 *
 * Invariants and the tests that check them:
 *   core P1     ps_members_failure_of_one_ends_the_job
 *   core P4     ps_members_early_interrupt_is_no_failure
 *   members J1  ps_members_join_is_welcomed_with_an_incarnation
 *   members J2  ps_members_invalid_joins_are_refused
 *   members J3  ps_members_newer_process_takes_the_place
 *   members J6  ps_members_workers_stay_until_the_chief_has_reports
 *   watch L2    ps_members_silence_means_lost,
 *               ps_members_stuck_worker_is_lost
 *   watch L3    ps_members_wait_ends_at_the_rejoin_timeout,
 *               ps_members_absent_task_is_named
 *   ssp C2      ps_members_lost_ssp_worker_keeps_pace_when_it_is_back */
#include "support/ps.h"
#include "sync/ps/messages/messages.h"

static void join_as(ps_rig *rig, pl_peer peer, const char *text)
{
    ps_say_text(rig, peer, (pl_frame) { .kind = PL_FRAME_JOIN }, text);
}

static void assert_failed(const ps_rig *rig, const char *part)
{
    assert_fails(PL_CLOSED, part, pl_ps_core_outcome(rig->core));
}

/* J1 */
static void ps_members_join_is_welcomed_with_an_incarnation(void **state)
{
    (void)state;
    ps_rig *rig = ps_open((pl_ps_core_opts) { 0 }, "sgd");
    join_as(rig, 30, "{\"role\": \"worker\", \"index\": 1, \"job\": \"\"}");
    const ps_sent *first = ps_expect(rig, 30, PL_FRAME_WELCOME);
    assert_int_equal(1, first->frame.incarnation);
    assert_int_equal(0, first->frame.value[1]); /* no parameters yet */
    assert_non_null(strstr(first->bytes, "\"job\":\"\"")); /* nor a job */
    /* The welcome was lost: the same process is not another one. */
    join_as(rig, 30, "{\"role\": \"worker\", \"index\": 1, \"job\": \"\"}");
    assert_int_equal(1,
                     ps_expect(rig, 30, PL_FRAME_WELCOME)->frame.incarnation);
    join_as(rig, 31,
            "{\"role\": \"worker\", \"index\": 0, \"job\": "
            "\"000000000000002a\"}");
    assert_int_equal(2,
                     ps_expect(rig, 31, PL_FRAME_WELCOME)->frame.incarnation);
    ps_quiet(rig);
    ps_close(rig);
}

/* J2 */
static void ps_members_invalid_joins_are_refused(void **state)
{
    (void)state;
    static const char *const joins[][2] = {
        { "", "join" },
        { "{", "join" },
        { "\xff\xfe{}", "join" },
        { "[1, 2]", "expected an object" },
        { "{}", "role" },
        { "{\"role\": 7, \"index\": 0, \"job\": \"\"}", "role" },
        { "{\"role\": \"worker\", \"job\": \"\"}", "index" },
        { "{\"role\": \"worker\", \"index\": -1, \"job\": \"\"}", "index" },
        { "{\"role\": \"worker\", \"index\": 2, \"job\": \"\"}",
          "worker 2: the job of this ps has 2 workers, 1 ps and no evaluator" },
        { "{\"role\": \"worker\", \"index\": 2147483648, \"job\": \"\"}",
          "index" },
        { "{\"role\": \"evaluator\", \"index\": 0, \"job\": \"\"}",
          "evaluator 0: the job of this ps has 2 workers" },
        { "{\"role\": \"ps\", \"index\": 1, \"job\": \"\"}",
          "ps 1: the job of this ps has 2 workers" },
        { "{\"role\": \"wizard\", \"index\": 0, \"job\": \"\"}", "wizard 0" },
        { "{\"role\": \"worker\", \"index\": 0}", "job" },
        { "{\"role\": \"worker\", \"index\": 0, \"job\": "
          "\"00000000000000ff\"}",
          "belongs to job 00000000000000ff, but ps 0 serves job "
          "000000000000002a" },
    };
    ps_rig *rig = ps_open((pl_ps_core_opts) { 0 }, "sgd");
    join_as(rig, 31, /* the chief provides the number of the job */
            "{\"role\": \"worker\", \"index\": 0, \"job\": "
            "\"000000000000002a\"}");
    ps_expect(rig, 31, PL_FRAME_WELCOME);
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++) {
        join_as(rig, 30, joins[i][0]);
        ps_expect_text(rig, 30, PL_FRAME_REFUSE, joins[i][1]);
        ps_quiet(rig);
    }
    ps_close(rig);
}

static void ps_members_join_names_the_first_setting_that_differs(void **state)
{
    (void)state;
    static const char own[] = "{\"model\": \"lenet\", \"batch\": \"100\"}";
    static const char *const joins[][2] = {
        { "\"settings\": {\"model\": \"lenet\", \"batch\": \"50\"}",
          "--batch is 50 here and 100 at ps 0" },
        { "\"settings\": {\"model\": \"lenet\"}",
          "--batch is nothing here and 100 at ps 0" },
        { "\"settings\": {\"model\": \"softmax\", \"batch\": \"50\"}",
          "--model is softmax here and lenet at ps 0" },
        { "\"settings\": 3", "settings" },
        { "\"x\": 0", "settings" },
    };
    pl_json *settings;
    assert_ok(pl_json_parse(&settings, own, strlen(own), "settings"));
    ps_rig *rig = ps_open((pl_ps_core_opts) { .settings = settings }, "sgd");
    char text[200];
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++) {
        snprintf(text, sizeof text,
                 "{\"role\": \"worker\", \"index\": 0, \"job\": \"\", %s}",
                 joins[i][0]);
        join_as(rig, 30, text);
        ps_expect_text(rig, 30, PL_FRAME_REFUSE, joins[i][1]);
    }
    snprintf(text, sizeof text,
             "{\"role\": \"worker\", \"index\": 0, \"job\": \"\", "
             "\"settings\": %s}",
             own);
    join_as(rig, 30, text);
    ps_expect(rig, 30, PL_FRAME_WELCOME);
    pl_json_free(settings);
    ps_close(rig);
}

static void ps_members_new_process_has_no_codec_residual(void **state)
{
    (void)state;
    static const struct {
        const pl_codec *codec;
        bool keeps;
    } rows[] = { { &pl_codec_bf16, false },
                 { &pl_codec_topk_default.base, true } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ps_rig *rig = ps_start((pl_ps_core_opts) { .codec = rows[i].codec }, 0);
        assert_false(ps_look(rig, 0).mixed);
        join_as(rig, 77, "{\"role\": \"worker\", \"index\": 1, \"job\": \"\"}");
        assert_true(ps_look(rig, 0).mixed == rows[i].keeps);
        ps_close(rig);
    }
}

/* J3 */
static void ps_members_newer_process_takes_the_place(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { .mode = PL_PS_ASYNC }, 0);
    uint32_t old = rig->incarnation[1];
    join_as(rig, 77, "{\"role\": \"worker\", \"index\": 1, \"job\": \"\"}");
    const ps_sent *refuse = ps_expect(rig, rig->peer[1], PL_FRAME_REFUSE);
    assert_int_equal(old, refuse->frame.incarnation);
    assert_non_null(strstr(refuse->bytes, "a newer process has taken"));
    assert_true(ps_expect(rig, 77, PL_FRAME_WELCOME)->frame.incarnation > old);
    /* The old one thaws: neither its gradient nor its heartbeat counts. */
    ps_push(rig, 1, 0, -1.0f);
    ps_expect_text(rig, rig->peer[1], PL_FRAME_REFUSE, "no longer, a member");
    ps_say(rig, 88,
           (pl_frame) { .kind = PL_FRAME_HEARTBEAT, .incarnation = old }, NULL);
    ps_expect_text(rig, 88, PL_FRAME_REFUSE, "a newer process has taken");
    assert_int_equal(0, ps_look(rig, 1).step);
    ps_close(rig);
}

/* Another server takes incarnations from the workers, which have them from
 * server 0. */
static void ps_members_older_incarnation_is_refused_by_a_follower(void **state)
{
    (void)state;
    static const char text[] =
        "{\"role\": \"worker\", \"index\": 0, \"job\": \"\"}";
    ps_rig *rig = ps_open((pl_ps_core_opts) { .ps = 2, .index = 1 }, "sgd");
    pl_frame join = { .kind = PL_FRAME_JOIN, .incarnation = 5 };
    ps_say_text(rig, 30, join, text);
    ps_quiet(rig); /* not before server 0 knows this server */
    ps_say_text(rig, PL_PEER_COORDINATOR,
                (pl_frame) { .kind = PL_FRAME_WELCOME, .incarnation = 9 },
                "{}");
    ps_say_text(rig, 30, join, text);
    assert_int_equal(5,
                     ps_expect(rig, 30, PL_FRAME_WELCOME)->frame.incarnation);
    join.incarnation = 4;
    ps_say_text(rig, 31, join, text);
    ps_expect_text(rig, 31, PL_FRAME_REFUSE, "a newer process has taken");
    join.incarnation = 6;
    ps_say_text(rig, 32, join, text);
    ps_expect_text(rig, 30, PL_FRAME_REFUSE, "a newer process has taken");
    ps_expect(rig, 32, PL_FRAME_WELCOME);
    ps_close(rig);
}

static void ps_members_heartbeats_are_answered_with_the_state(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { .mode = PL_PS_ASYNC }, 3);
    ps_say(rig, PS_HEARTS,
           (pl_frame) { .kind = PL_FRAME_HEARTBEAT,
                        .incarnation = rig->incarnation[0],
                        .sequence = 9,
                        .value = { 99, 1 } }, /* no such phase */
           NULL);
    ps_quiet(rig);
    ps_forget(rig);
    ps_heart(rig, 0, 3, PL_PHASE_WAITING, 1);
    const ps_sent *ack = &rig->sent[0];
    assert_int_equal(0, ack->frame.flags);
    assert_int_equal(1, ack->frame.sequence);
    assert_int_equal(3, ack->frame.step);
    pl_ps_core_stop(rig->core, false, "interrupt");
    ps_forget(rig);
    ps_heart(rig, 0, 3, PL_PHASE_WAITING, 2);
    assert_int_equal(PL_STOP_NOW, rig->sent[0].frame.flags);
    pl_ps_core_stop(rig->core, true, "out of memory");
    ps_forget(rig);
    ps_heart(rig, 0, 3, PL_PHASE_WAITING, 3);
    assert_int_equal(PL_STOP_NOW | PL_STOP_FAILED, rig->sent[0].frame.flags);
    assert_string_equal("out of memory", rig->sent[0].bytes);
    ps_close(rig);
}

/* L2 */
static void ps_members_silence_means_lost(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { .heartbeat_ms = 2000 }, 0);
    ps_pass(rig, 2000, 1);
    assert_int_equal(0, rig->lost[1]);
    ps_pass(rig, 500, 1);
    assert_int_equal(1, rig->lost[1]);
    assert_int_equal(0, rig->lost[0]);
    assert_int_equal(1, ps_look(rig, 0).lost);
    ps_pass(rig, 5000, 1); /* reported once */
    assert_int_equal(1, rig->lost[1]);
    assert_ok(pl_ps_core_outcome(rig->core));
    ps_close(rig);
}

/* It lives, but computes for 10 times the longest it ever took. (L2) */
static void ps_members_stuck_worker_is_lost(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { .heartbeat_ms = 1000 }, 0);
    int64_t progress = 1;
    for (int i = 0; i < 3; i++) { /* a step in 1 s is its usual pace */
        ps_heart(rig, 1, i, PL_PHASE_COMPUTING, progress++);
        ps_heart(rig, 0, 0, PL_PHASE_WAITING, 1);
        ps_tick(rig, 500);
        ps_heart(rig, 1, i, PL_PHASE_COMPUTING, progress - 1);
        ps_tick(rig, 500);
    }
    for (int i = 0; i < 60; i++) { /* one of 30 s, in operators of 5 s */
        ps_heart(rig, 0, 0, PL_PHASE_WAITING, 1);
        ps_heart(rig, 1, 3, PL_PHASE_COMPUTING, progress + i / 10);
        ps_tick(rig, 500);
        ps_forget(rig);
    }
    progress += 10;
    assert_int_equal(0, rig->lost[1]);
    for (int i = 0; i < 18; i++) {
        ps_heart(rig, 0, 0, PL_PHASE_WAITING, 1);
        ps_heart(rig, 1, 3, PL_PHASE_COMPUTING, progress);
        ps_tick(rig, 500);
        ps_forget(rig);
    }
    assert_int_equal(0, rig->lost[1]); /* 9 s */
    for (int i = 0; i < 3; i++) {
        ps_heart(rig, 0, 0, PL_PHASE_WAITING, 1);
        ps_heart(rig, 1, 3, PL_PHASE_COMPUTING, progress);
        ps_tick(rig, 500);
    }
    assert_int_equal(1, rig->lost[1]);
    /* A task may wait or evaluate for any time. */
    assert_int_equal(0, rig->lost[0]);
    ps_close(rig);
}

/* Progress is that of operators and steps: the message claims no more. */
static void ps_members_stuck_worker_is_named(void **state)
{
    (void)state;
    ps_rig *rig = ps_start(
        (pl_ps_core_opts) { .heartbeat_ms = 1000, .on_loss = PL_ON_LOSS_ABORT },
        0);
    for (int i = 0; i < 4; i++) {
        ps_heart(rig, 0, 0, PL_PHASE_WAITING, 1);
        ps_heart(rig, 1, 1, PL_PHASE_COMPUTING, 1);
        ps_tick(rig, 500);
        ps_forget(rig);
    }
    assert_fails(PL_CLOSED, "it responds, but has made no progress for 1.5 s",
                 pl_ps_core_outcome(rig->core));
    ps_close(rig);
}

static void ps_members_lost_worker_may_come_back(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { 0 }, 0);
    ps_pass(rig, 6000, 1);
    assert_int_equal(1, rig->lost[1]);
    ps_push(rig, 1, 0, -1.0f); /* it was only slow */
    ps_push(rig, 0, 0, -1.0f);
    ps_answer_of(rig, 0, 0, 1, 1.0f);
    ps_answer_of(rig, 1, 0, 1, 1.0f);
    ps_pass(rig, 61000, 3); /* and the deadline is off */
    assert_ok(pl_ps_core_outcome(rig->core));
    ps_close(rig);
}

/* L3 */
static void ps_members_wait_ends_at_the_rejoin_timeout(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { .rejoin_ms = 10000 }, 0);
    ps_pass(rig, 5500, 1);
    assert_int_equal(1, rig->lost[1]);
    ps_pass(rig, 10000, 1);
    assert_ok(pl_ps_core_outcome(rig->core));
    ps_pass(rig, 500, 1);
    assert_failed(rig, "worker 1 (node1, process 100) was lost at step 0 and "
                       "did not come back within 10 s (--rejoin-timeout)");
    ps_expect_text(rig, rig->peer[0], PL_FRAME_OVER, "did not come back");
    ps_close(rig);
}

static void ps_members_abort_ends_the_job_at_once(void **state)
{
    (void)state;
    for (int mode = PL_PS_SYNC; mode <= PL_PS_ASYNC; mode++) {
        ps_rig *rig =
            ps_start((pl_ps_core_opts) { .mode = (pl_ps_mode)mode,
                                         .on_loss = PL_ON_LOSS_ABORT },
                     0);
        ps_pass(rig, 5500, 1);
        assert_failed(rig, "worker 1 (node1, process 100) is lost at step 0");
        const ps_sent *over = ps_expect(rig, rig->peer[0], PL_FRAME_OVER);
        assert_int_equal(PL_STOP_FAILED, over->frame.flags);
        assert_int_equal(0, rig->lost[1]); /* it will not be restarted */
        ps_close(rig);
    }
}

static void ps_members_continue_mode_proceeds_without_a_worker(void **state)
{
    (void)state;
    ps_rig *rig = ps_start(
        (pl_ps_core_opts) { .workers = 3, .on_loss = PL_ON_LOSS_CONTINUE }, 0);
    ps_push(rig, 0, 0, -1.0f);
    ps_push(rig, 2, 0, -3.0f);
    ps_quiet(rig);
    ps_pass(rig, 5500, 5);
    ps_answer_of(rig, 0, 0, 1, 2.0f);
    ps_answer_of(rig, 2, 0, 1, 2.0f);
    assert_true(ps_look(rig, 0).mixed);
    ps_pass(rig, 61000, 5); /* nor does its absence ever end the job */
    assert_ok(pl_ps_core_outcome(rig->core));
    ps_join(rig, 1, 1); /* until it is there again */
    ps_forget(rig);
    ps_push(rig, 0, 1, -1.0f);
    ps_push(rig, 2, 1, -1.0f);
    ps_quiet(rig);
    ps_push(rig, 1, 1, -1.0f);
    for (int w = 0; w < 3; w++)
        ps_answer_of(rig, w, 0, 2, 3.0f);
    ps_close(rig);
}

/* Without the chief no decision is possible: it is waited for in any case. */
static void ps_members_chief_is_waited_for_also_in_continue(void **state)
{
    (void)state;
    ps_rig *rig =
        ps_start((pl_ps_core_opts) { .on_loss = PL_ON_LOSS_CONTINUE }, 0);
    ps_push(rig, 1, 0, -1.0f);
    ps_pass(rig, 5500, 2);
    assert_int_equal(1, rig->lost[0]);
    ps_quiet(rig);
    ps_pass(rig, 61000, 2);
    assert_failed(rig, "worker 0 (node0, process 100) was lost");
    ps_close(rig);
}

/* ssp: a supervised worker is restarted within seconds, so it is waited for. */
static void ps_members_supervised_ssp_waits_for_a_lost_worker(void **state)
{
    (void)state;
    for (int supervised = 0; supervised <= 1; supervised++) {
        ps_rig *rig =
            ps_start((pl_ps_core_opts) { .mode = PL_PS_SSP,
                                         .on_loss = PL_ON_LOSS_CONTINUE,
                                         .supervised = supervised != 0 },
                     0);
        ps_push(rig, 0, 0, -1.0f);
        ps_quiet(rig);
        ps_pass(rig, 5500, 1);
        if (supervised != 0)
            ps_quiet(rig);
        else
            ps_answer_of(rig, 0, 0, 1, 1.0f);
        ps_close(rig);
    }
}

/* ssp: a process that was declared lost joins again.  It does not make the
 * gradients that the others made without it first, also when the chief, which
 * is the only other one, evaluates just then. */
static void ps_members_lost_ssp_worker_keeps_pace_when_it_is_back(void **state)
{
    (void)state;
    for (int paused = 0; paused <= 1; paused++) {
        ps_rig *rig =
            ps_start((pl_ps_core_opts) { .mode = PL_PS_SSP,
                                         .on_loss = PL_ON_LOSS_CONTINUE },
                     0);
        ps_push(rig, 0, 0, -1.0f);
        ps_pass(rig, 5500, 1);
        ps_answer_of(rig, 0, 0, 1, 1.0f);
        for (int step = 1; step < 3; step++) {
            ps_push(rig, 0, step, -1.0f);
            ps_answer_of(rig, 0, 0, step + 1, (float)(step + 1));
        }
        if (paused != 0) {
            ps_say(rig, rig->peer[0], ps_request(rig, 0, PL_FRAME_PAUSE), NULL);
            ps_expect(rig, rig->peer[0], PL_FRAME_ACK);
        }
        ps_join(rig, 1, 0);
        assert_int_equal(3, ps_look(rig, 1).pace_of_worker);
        ps_push(rig, 0, 3, -1.0f);
        ps_quiet(rig); /* one ahead of worker 1 */
        ps_push(rig, 1, 4, -1.0f);
        for (int w = 0; w < 2; w++)
            ps_answer_of(rig, w, 0, 5, 5.0f);
        ps_close(rig);
    }
}

/* ssp: the supervisor knows that it does not come back. */
static void ps_members_worker_that_is_gone_is_not_waited_for(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { .mode = PL_PS_SSP,
                                               .on_loss = PL_ON_LOSS_CONTINUE,
                                               .supervised = true },
                           0);
    ps_push(rig, 0, 0, -1.0f);
    pl_ps_core_gone(rig->core, 1);
    ps_quiet(rig); /* it may still be there */
    ps_pass(rig, 7000, 1);
    ps_answer_of(rig, 0, 0, 1, 1.0f);
    ps_close(rig);
}

/* The path to the chief was cut while the others left. */
static void ps_members_final_pull_is_answered_when_the_chief_is_back(
    void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { .mode = PL_PS_ASYNC,
                                               .on_loss = PL_ON_LOSS_CONTINUE },
                           0);
    ps_pull(rig, 0, PL_PULL_FINAL, 0);
    ps_pass(rig, 6000, 2);
    assert_int_equal(1, rig->lost[0]);
    ps_say_text(rig, rig->peer[1], ps_request(rig, 1, PL_FRAME_BYE), "{}");
    ps_quiet(rig);
    ps_probe(rig, 0, PL_FRAME_PULL, 0);
    ps_answer_of(rig, 0, 0, 0, 0.0f);
    ps_close(rig);
}

static void ps_members_lost_evaluator_may_come_back(void **state)
{
    (void)state;
    ps_rig *rig =
        ps_start((pl_ps_core_opts) { .workers = 1, .evaluator = true }, 0);
    join_as(rig, PS_EVALUATOR,
            "{\"role\": \"evaluator\", \"index\": 0, \"job\": \"\"}");
    pl_frame pull = {
        .kind = PL_FRAME_PULL,
        .incarnation =
            ps_expect(rig, PS_EVALUATOR, PL_FRAME_WELCOME)->frame.incarnation,
        .sequence = 1,
    };
    ps_pass(rig, 6000, 1);
    ps_say(rig, PS_EVALUATOR, pull, NULL);
    ps_expect(rig, PS_EVALUATOR, PL_FRAME_PARAMS);
    pull.kind = PL_FRAME_BYE; /* and then it is gone for good */
    pull.sequence = 2;
    ps_say(rig, PS_EVALUATOR, pull, NULL);
    ps_expect(rig, PS_EVALUATOR, PL_FRAME_ACK);
    ps_say_text(rig, rig->peer[0], ps_request(rig, 0, PL_FRAME_BYE), "{}");
    ps_heard(rig);
    ps_tick(rig, 100);
    assert_true(pl_ps_core_finished(rig->core));
    ps_close(rig);
}

static void ps_members_worker_that_was_given_up_is_answered(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { .mode = PL_PS_ASYNC,
                                               .on_loss = PL_ON_LOSS_CONTINUE,
                                               .rejoin_ms = 2000 },
                           0);
    ps_pass(rig, 9000, 1);
    ps_push(rig, 1, 0, -1.0f);
    ps_answer_of(rig, 1, 0, 1, 1.0f);
    ps_close(rig);
}

/* A step that takes long, on a path that was cut for a while. */
static void ps_members_heartbeats_with_progress_restore_a_worker(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { 0 }, 0);
    ps_pass(rig, 6000, 1);
    assert_int_equal(1, rig->lost[1]);
    for (int i = 0; i < 61; i++) {
        ps_heart(rig, 1, 0, PL_PHASE_COMPUTING, 1 + i);
        ps_pass(rig, 1000, 1);
        ps_forget(rig);
    }
    assert_ok(pl_ps_core_outcome(rig->core));
    ps_close(rig);
}

/* What the chief has got as the last parameters stays the last. */
static void ps_members_nothing_changes_after_the_final_pull(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { .mode = PL_PS_ASYNC,
                                               .on_loss = PL_ON_LOSS_CONTINUE,
                                               .rejoin_ms = 2000 },
                           0);
    ps_pass(rig, 9000, 1);
    ps_pull(rig, 0, PL_PULL_FINAL, 0);
    ps_answer_of(rig, 0, 0, 0, 0.0f);
    ps_push(rig, 1, 0, -1.0f); /* given up, and back */
    ps_answer(rig, 1, PL_ANSWER_DROPPED | PL_ANSWER_STOP, 0);
    assert_true(rig->params[0] == 0.0f);
    assert_int_equal(0, ps_look(rig, 0).step);
    ps_close(rig);
}

/* L3 */
static void ps_members_absent_task_is_named(void **state)
{
    (void)state;
    ps_rig *rig = ps_open(
        (pl_ps_core_opts) {
            .workers = 3, .ps = 2, .named_chief = true, .join_ms = 20000 },
        "sgd");
    ps_join(rig, 1, 0);
    ps_pass(rig, 20000, 2);
    assert_ok(pl_ps_core_outcome(rig->core));
    ps_pass(rig, 500, 2);
    assert_failed(rig, "chief, worker 1, ps 1 did not join within 20 s "
                       "(--join-timeout)");
    ps_expect_text(rig, rig->peer[1], PL_FRAME_OVER, "did not join");
    join_as(rig, 30, "{\"role\": \"worker\", \"index\": 0, \"job\": \"\"}");
    while (rig->taken < rig->made && rig->sent[rig->taken].to != 30)
        rig->taken++;
    ps_expect_text(rig, 30, PL_FRAME_REFUSE, "the job is over: chief");
    ps_close(rig);
}

static void ps_members_final_pull_waits_for_all_others(void **state)
{
    (void)state;
    ps_rig *rig =
        ps_start((pl_ps_core_opts) { .workers = 3, .mode = PL_PS_ASYNC }, 0);
    ps_pull(rig, 0, PL_PULL_FINAL, 0);
    ps_quiet(rig);
    ps_say_text(rig, rig->peer[1], ps_request(rig, 1, PL_FRAME_BYE), "{}");
    ps_quiet(rig); /* it may be needed again until the chief has left */
    ps_push(rig, 2, 0, -1.0f);
    ps_answer_of(rig, 2, 0, 1, 1.0f);
    ps_say_text(rig, rig->peer[2], ps_request(rig, 2, PL_FRAME_BYE), "{}");
    ps_answer_of(rig, 0, 0, 1, 1.0f);
    ps_quiet(rig);
    ps_say_text(rig, rig->peer[0], ps_request(rig, 0, PL_FRAME_BYE), "{}");
    ps_expect(rig, rig->peer[0], PL_FRAME_REPORT);
    ps_heard(rig);
    ps_expect(rig, rig->peer[1], PL_FRAME_ACK);
    ps_expect(rig, rig->peer[2], PL_FRAME_ACK);
    ps_quiet(rig);
    ps_close(rig);
}

/* A server 0 that dies with reports the chief did not get is followed by one
 * that needs all workers again. (J6) */
static void ps_members_workers_stay_until_the_chief_has_reports(void **state)
{
    (void)state;
    for (int silent = 0; silent <= 1; silent++) {
        ps_rig *rig = ps_start((pl_ps_core_opts) { 0 }, 0);
        ps_say_text(rig, rig->peer[1], ps_request(rig, 1, PL_FRAME_BYE), "{}");
        ps_say_text(rig, rig->peer[0], ps_request(rig, 0, PL_FRAME_BYE), "{}");
        ps_expect(rig, rig->peer[0], PL_FRAME_REPORT);
        ps_tick(rig, 4900);
        ps_quiet(rig); /* the report may be lost */
        assert_false(pl_ps_core_finished(rig->core));
        if (silent != 0)
            ps_tick(rig, 200); /* or the chief's acknowledgement */
        else
            ps_heard(rig);
        ps_done(rig, 1);
        ps_tick(rig, 100);
        assert_true(pl_ps_core_finished(rig->core));
        ps_close(rig);
    }
}

/* The chief could not read one text of all reports that holds it. */
static void ps_members_malformed_report_counts_as_lost(void **state)
{
    (void)state;
    static const char *const malformed[] = {
        "{", "[]", "{\"steps\": -1}", "{}], \"restarts\": 9, \"a\": [{"
    };
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        ps_rig *rig = ps_start(
            (pl_ps_core_opts) { .workers = 2, .mode = PL_PS_ASYNC }, 0);
        ps_push(rig, 1, 0, -1.0f);
        ps_forget(rig);
        ps_say_text(rig, rig->peer[1], ps_request(rig, 1, PL_FRAME_BYE),
                    malformed[i]);
        ps_say_text(rig, rig->peer[0], ps_request(rig, 0, PL_FRAME_BYE),
                    "{\"index\": 7, \"steps\": 0}");
        ps_expect_text(rig, rig->peer[0], PL_FRAME_REPORT,
                       "[{\"index\":0,\"steps\":0},{\"index\":1,\"steps\":1,"
                       "\"dropped\":0,\"lost\":true}]");
        ps_close(rig);
    }
}

static void ps_members_reports_are_gathered_for_the_chief(void **state)
{
    (void)state;
    ps_rig *rig =
        ps_start((pl_ps_core_opts) { .workers = 3, .mode = PL_PS_ASYNC }, 0);
    ps_push(rig, 2, 0, -1.0f);
    rig->now_ns += 5 * PS_MS;
    ps_push(rig, 2, 1, -1.0f);
    ps_forget(rig);
    ps_say_text(rig, rig->peer[2], ps_request(rig, 2, PL_FRAME_BYE),
                "{\"steps\": 2}");
    ps_probe(rig, 2, PL_FRAME_BYE, 0); /* probed early: acknowledged */
    assert_int_equal(PL_ACK_COMPLETE,
                     ps_expect(rig, rig->peer[2], PL_FRAME_ACK)->frame.flags);
    ps_say_text(rig, rig->peer[0], ps_request(rig, 0, PL_FRAME_BYE),
                "{\"steps\": 0}");
    const ps_sent *report = ps_expect(rig, rig->peer[0], PL_FRAME_REPORT);
    assert_string_equal("{\"restarts\":0,\"mixed\":false,\"dropped\":0,"
                        "\"workers\":[{\"index\":0,\"steps\":0},"
                        "{\"index\":1,\"steps\":0,\"dropped\":0,"
                        "\"lost\":true},{\"index\":2,\"steps\":2}],"
                        "\"servers\":[{\"index\":0,\"peak_rss_mb\":0}]}",
                        report->bytes);
    assert_int_equal(2, report->frame.step);
    assert_int_equal(5 * PS_MS, report->frame.value[1]);
    ps_heard(rig);
    for (int i = 0; i < 2; i++) { /* requested again, answered again */
        assert_int_equal(
            PL_ACK_DONE,
            ps_expect(rig, rig->peer[2], PL_FRAME_ACK)->frame.flags);
        if (i == 0)
            ps_probe(rig, 2, PL_FRAME_BYE, 0);
    }
    ps_tick(rig, 100);
    assert_false(pl_ps_core_finished(rig->core)); /* worker 1 is there */
    ps_say_text(rig, rig->peer[1], ps_request(rig, 1, PL_FRAME_BYE), "");
    ps_tick(rig, 100);
    assert_true(pl_ps_core_finished(rig->core));
    assert_ok(pl_ps_core_outcome(rig->core));
    ps_close(rig);
}

/* It has nothing to save, but nothing failed. (P4) */
static void ps_members_early_interrupt_is_no_failure(void **state)
{
    (void)state;
    ps_rig *rig = ps_open((pl_ps_core_opts) { 0 }, "sgd");
    ps_join(rig, 0, 0);
    pl_ps_core_stop(rig->core, false, PL_STOP_INTERRUPT);
    ps_expect_text(rig, rig->peer[0], PL_FRAME_OVER,
                   PL_STOP_INTERRUPT PL_STOP_EARLY);
    assert_fails(PL_INTERRUPTED, "interrupted before the training began",
                 pl_ps_core_outcome(rig->core));
    ps_close(rig);
}

/* Settings do not show how large the data make a model. */
static void ps_members_join_of_another_size_is_refused(void **state)
{
    (void)state;
    ps_rig *rig = ps_open((pl_ps_core_opts) { .floats = 4 }, "sgd");
    join_as(rig, 30,
            "{\"role\": \"worker\", \"index\": 1, \"job\": \"\", "
            "\"floats\": 5, \"table_first\": 0, \"table_count\": "
            "0}");
    ps_expect_text(rig, 30, PL_FRAME_REFUSE, "floats 5, that of the job 4");
    join_as(rig, 30,
            "{\"role\": \"worker\", \"index\": 1, \"job\": \"\", "
            "\"floats\": 4, \"table_first\": 0, \"table_count\": "
            "0}");
    ps_expect(rig, 30, PL_FRAME_WELCOME);
    ps_close(rig);
}

static void ps_members_failure_of_one_ends_the_job(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { 0 }, 0);
    pl_frame stop = ps_request(rig, 1, PL_FRAME_STOP);
    stop.flags = PL_STOP_FAILED;
    ps_say_text(rig, rig->peer[1], stop, "the loss is not a number");
    assert_failed(rig, "worker 1: the loss is not a number");
    ps_expect(rig, rig->peer[1], PL_FRAME_ACK);
    ps_expect_text(rig, rig->peer[0], PL_FRAME_OVER, "worker 1: the loss");
    assert_false(pl_ps_core_finished(rig->core));
    stop = ps_request(rig, 0, PL_FRAME_STOP);
    stop.flags = PL_STOP_FAILED;
    ps_say_text(rig, rig->peer[0], stop, "another reason");
    assert_failed(rig, "worker 1: the loss is not a number");
    ps_forget(rig);
    ps_tick(rig, 1000); /* some time to say goodbye, but not forever */
    assert_false(pl_ps_core_finished(rig->core));
    ps_tick(rig, 1500);
    assert_true(pl_ps_core_finished(rig->core));
    ps_close(rig);
}

/* The clock of server 0 may step back between two updates. */
static void ps_members_report_survives_a_clock_that_steps_back(void **state)
{
    (void)state;
    ps_rig *rig =
        ps_start((pl_ps_core_opts) { .workers = 1, .mode = PL_PS_ASYNC }, 0);
    rig->now_ns += 2000 * PS_MS;
    ps_push(rig, 0, 0, -1.0f);
    ps_answer_of(rig, 0, 0, 1, 1.0f);
    rig->now_ns -= 1000 * PS_MS;
    ps_push(rig, 0, 1, -1.0f);
    ps_answer_of(rig, 0, 0, 2, 2.0f);
    ps_say_text(rig, rig->peer[0], ps_request(rig, 0, PL_FRAME_BYE), "{}");
    pl_message message = {
        .frame = ps_expect(rig, rig->peer[0], PL_FRAME_REPORT)->frame
    };
    pl_ps_report report;
    assert_true(pl_ps_report_decode(&report, &message));
    assert_int_equal(2, report.step);
    assert_int_equal(0, report.update_ns);
    ps_close(rig);
}

UNIT_TESTS(
    cmocka_unit_test(ps_members_report_survives_a_clock_that_steps_back),
    cmocka_unit_test(ps_members_join_is_welcomed_with_an_incarnation),
    cmocka_unit_test(ps_members_invalid_joins_are_refused),
    cmocka_unit_test(ps_members_join_names_the_first_setting_that_differs),
    cmocka_unit_test(ps_members_newer_process_takes_the_place),
    cmocka_unit_test(ps_members_new_process_has_no_codec_residual),
    cmocka_unit_test(ps_members_older_incarnation_is_refused_by_a_follower),
    cmocka_unit_test(ps_members_heartbeats_are_answered_with_the_state),
    cmocka_unit_test(ps_members_silence_means_lost),
    cmocka_unit_test(ps_members_stuck_worker_is_lost),
    cmocka_unit_test(ps_members_stuck_worker_is_named),
    cmocka_unit_test(ps_members_lost_worker_may_come_back),
    cmocka_unit_test(ps_members_wait_ends_at_the_rejoin_timeout),
    cmocka_unit_test(ps_members_abort_ends_the_job_at_once),
    cmocka_unit_test(ps_members_continue_mode_proceeds_without_a_worker),
    cmocka_unit_test(ps_members_chief_is_waited_for_also_in_continue),
    cmocka_unit_test(ps_members_supervised_ssp_waits_for_a_lost_worker),
    cmocka_unit_test(ps_members_lost_ssp_worker_keeps_pace_when_it_is_back),
    cmocka_unit_test(ps_members_worker_that_is_gone_is_not_waited_for),
    cmocka_unit_test(ps_members_final_pull_is_answered_when_the_chief_is_back),
    cmocka_unit_test(ps_members_lost_evaluator_may_come_back),
    cmocka_unit_test(ps_members_worker_that_was_given_up_is_answered),
    cmocka_unit_test(ps_members_heartbeats_with_progress_restore_a_worker),
    cmocka_unit_test(ps_members_nothing_changes_after_the_final_pull),
    cmocka_unit_test(ps_members_absent_task_is_named),
    cmocka_unit_test(ps_members_final_pull_waits_for_all_others),
    cmocka_unit_test(ps_members_malformed_report_counts_as_lost),
    cmocka_unit_test(ps_members_workers_stay_until_the_chief_has_reports),
    cmocka_unit_test(ps_members_reports_are_gathered_for_the_chief),
    cmocka_unit_test(ps_members_early_interrupt_is_no_failure),
    cmocka_unit_test(ps_members_join_of_another_size_is_refused),
    cmocka_unit_test(ps_members_failure_of_one_ends_the_job))
