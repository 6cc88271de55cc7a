/* Several servers: server 0 decides, the others hold their part and follow.
 *
 * Invariants and the tests that check them:
 *   core P2     ps_servers_new_server_rolls_the_job_back
 *   core P3     ps_servers_pull_waits_until_all_servers_joined
 *   members J5  ps_servers_new_server_rolls_the_job_back,
 *               ps_servers_new_server_rolls_back_a_chief_that_returns
 *   watch L1    ps_servers_follower_declares_no_worker_lost
 *   watch L4    ps_servers_leader_ends_all_and_waits_for_goodbyes
 *   watch L5    ps_servers_leader_ends_all_and_waits_for_goodbyes
 *   sync S1     ps_servers_step_needs_the_gradients_on_all,
 *               ps_servers_leader_chooses_gradients_on_all_servers
 *   sync S2     ps_servers_step_needs_the_gradients_on_all */
#include "support/ps.h"

#define SERVER_1 (PS_SERVER + 1)

static const char join_text[] =
    "{\"role\": \"ps\", \"index\": 1, \"job\": \"\"}";

/* Server 0 of 2, which server 1 has joined; its incarnation. */
static ps_rig *start_leader(pl_ps_core_opts opts, uint32_t *incarnation)
{
    opts.ps = 2;
    ps_rig *rig = ps_start(opts, 0);
    ps_say_text(rig, SERVER_1, (pl_frame) { .kind = PL_FRAME_JOIN }, join_text);
    *incarnation =
        ps_expect(rig, SERVER_1, PL_FRAME_WELCOME)->frame.incarnation;
    return rig;
}

/* The chief sends its goodbye, and server 1 its usage. */
static void chief_leaves(ps_rig *rig, uint32_t other)
{
    ps_say_text(rig, rig->peer[0], ps_request(rig, 0, PL_FRAME_BYE), "{}");
    ps_expect(rig, SERVER_1, PL_FRAME_HEARTBEAT_ACK);
    ps_say_text(rig, SERVER_1,
                (pl_frame) { .kind = PL_FRAME_HEARTBEAT,
                             .flags = PL_HEARTBEAT_FINAL,
                             .incarnation = other },
                "{}");
}

static void say_have(ps_rig *rig, uint32_t incarnation, int64_t worker,
                     int64_t step)
{
    ps_say(rig, SERVER_1,
           (pl_frame) { .kind = PL_FRAME_HAVE,
                        .incarnation = incarnation,
                        .step = step,
                        .value = { worker } },
           NULL);
}

static void from_server_0(ps_rig *rig, pl_frame frame, const void *payload,
                          uint32_t bytes)
{
    frame.payload_bytes = bytes;
    ps_say(rig, PL_PEER_COORDINATOR, frame, payload);
}

/* Server 1 of 2, joined at server 0, with its workers. */
static ps_rig *open_follower(pl_ps_core_opts opts)
{
    opts.ps = 2;
    opts.index = 1;
    ps_rig *rig = ps_open(opts, "sgd");
    from_server_0(rig,
                  (pl_frame) { .kind = PL_FRAME_WELCOME, .incarnation = 9 },
                  "{}", 2);
    for (int32_t w = 0; w < rig->workers; w++) {
        char text[64];
        snprintf(text, sizeof text,
                 "{\"role\": \"worker\", \"index\": %d, \"job\": \"\"}", w);
        rig->incarnation[w] = 3 + (uint32_t)w;
        rig->peer[w] = PS_WORKER + w;
        ps_say_text(rig, rig->peer[w],
                    (pl_frame) { .kind = PL_FRAME_JOIN,
                                 .incarnation = rig->incarnation[w] },
                    text);
        ps_expect(rig, rig->peer[w], PL_FRAME_WELCOME);
    }
    return rig;
}

/* ... and with parameters. */
static ps_rig *start_follower(pl_ps_core_opts opts)
{
    ps_rig *rig = open_follower(opts);
    float zero[PS_FLOATS] = { 0 };
    ps_init(rig, 0, zero);
    ps_quiet(rig);
    return rig;
}

static void ps_servers_step_needs_the_gradients_on_all(void **state)
{
    (void)state;
    uint32_t other;
    ps_rig *rig = start_leader((pl_ps_core_opts) { 0 }, &other);
    ps_push(rig, 0, 0, -1.0f);
    ps_push(rig, 1, 0, -3.0f);
    say_have(rig, other, 1, 0);
    ps_quiet(rig); /* server 1 lacks the gradient of worker 0 */
    say_have(rig, other, 0, 0);
    const ps_sent *apply = ps_expect(rig, SERVER_1, PL_FRAME_APPLY);
    assert_int_equal(0, apply->frame.step);
    assert_int_equal(other, apply->frame.incarnation);
    assert_int_equal(2, apply->frame.payload_bytes);
    assert_memory_equal("\2\2", apply->bytes, 2);
    ps_answer_of(rig, 0, 0, 1, 2.0f);
    ps_answer_of(rig, 1, 0, 1, 2.0f);
    /* A HAVE of the step before: the APPLY was lost, so once more. */
    say_have(rig, other, 0, 0);
    assert_memory_equal("\2\2", ps_expect(rig, SERVER_1, PL_FRAME_APPLY)->bytes,
                        2);
    /* Of other steps and workers: nothing. */
    say_have(rig, other, 0, 7);
    say_have(rig, other, 2, 1);
    say_have(rig, other, -1, 1);
    say_have(rig, other + 1, 0, 0);
    ps_quiet(rig);
    assert_int_equal(1, ps_look(rig, 0).step);
    ps_close(rig);
}

static void ps_servers_leader_chooses_gradients_on_all_servers(void **state)
{
    (void)state;
    uint32_t other;
    ps_rig *rig =
        start_leader((pl_ps_core_opts) { .workers = 3, .replicas = 2 }, &other);
    ps_push(rig, 0, 0, -1.0f);
    ps_push(rig, 1, 0, -100.0f);
    ps_push(rig, 2, 0, -3.0f);
    say_have(rig, other, 2, 0);
    ps_quiet(rig);
    say_have(rig, other, 0, 0);
    assert_memory_equal("\2\0\2",
                        ps_expect(rig, SERVER_1, PL_FRAME_APPLY)->bytes, 3);
    ps_answer_of(rig, 0, 0, 1, 2.0f);
    ps_answer_of(rig, 1, PL_ANSWER_DROPPED, 1, 2.0f);
    ps_answer_of(rig, 2, 0, 1, 2.0f);
    assert_int_equal(1, ps_look(rig, 0).dropped);
    ps_close(rig);
}

static void ps_servers_have_of_a_worker_is_ignored(void **state)
{
    (void)state;
    uint32_t other;
    ps_rig *rig = start_leader((pl_ps_core_opts) { .workers = 1 }, &other);
    ps_push(rig, 0, 0, -1.0f);
    ps_say(rig, rig->peer[0],
           (pl_frame) { .kind = PL_FRAME_HAVE,
                        .incarnation = rig->incarnation[0],
                        .value = { 0 } },
           NULL);
    ps_quiet(rig);
    assert_int_equal(0, ps_look(rig, 0).step);
    ps_close(rig);
}

/* P3 */
static void ps_servers_pull_waits_until_all_servers_joined(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { .ps = 2 }, 0);
    ps_pull(rig, 1, 0, 0);
    ps_quiet(rig);
    ps_say_text(rig, SERVER_1, (pl_frame) { .kind = PL_FRAME_JOIN }, join_text);
    ps_expect(rig, SERVER_1, PL_FRAME_WELCOME);
    ps_answer_of(rig, 1, 0, 0, 0.0f);
    ps_close(rig);
}

static void ps_servers_follower_joins_and_sends_heartbeats(void **state)
{
    (void)state;
    ps_rig *rig = ps_open(
        (pl_ps_core_opts) { .ps = 2, .index = 1, .started_ms = 1234 }, "sgd");
    ps_tick(rig, 500);
    ps_expect_text(rig, PL_PEER_COORDINATOR, PL_FRAME_JOIN, "1234");
    ps_tick(rig, 99);
    ps_quiet(rig);
    ps_tick(rig, 1); /* not answered: once more */
    ps_expect_text(rig, PL_PEER_COORDINATOR, PL_FRAME_JOIN, "\"ps\"");
    from_server_0(rig,
                  (pl_frame) { .kind = PL_FRAME_WELCOME, .incarnation = 4 },
                  "{}", 2);
    ps_tick(rig, 500);
    const ps_sent *heart =
        ps_expect(rig, PL_PEER_COORDINATOR, PL_FRAME_HEARTBEAT);
    assert_int_equal(4, heart->frame.incarnation);
    ps_quiet(rig);
    ps_close(rig);
}

static void expect_heart(ps_rig *rig, const char *usage)
{
    ps_expect_text(rig, PL_PEER_COORDINATOR, PL_FRAME_HEARTBEAT, usage);
}

/* With every heartbeat, and at once when server 0 asks at the end of the job.
 */
static void ps_servers_follower_reports_its_usage(void **state)
{
    (void)state;
    ps_rig *rig = open_follower((pl_ps_core_opts) { 0 });
    rig->peak_mb = 1000;
    ps_tick(rig, 500);
    expect_heart(rig, "{\"peak_rss_mb\":1000}");
    rig->peak_mb = 3000;
    from_server_0(rig,
                  (pl_frame) { .kind = PL_FRAME_HEARTBEAT_ACK,
                               .flags = PL_HEARTBEAT_FINAL },
                  NULL, 0);
    const ps_sent *heart =
        ps_expect(rig, PL_PEER_COORDINATOR, PL_FRAME_HEARTBEAT);
    assert_int_equal(PL_HEARTBEAT_FINAL, heart->frame.flags);
    assert_string_equal("{\"peak_rss_mb\":3000}", heart->bytes);
    ps_quiet(rig);
    ps_close(rig);
}

/* The clock of server 0 is that of the last heartbeat ack. */
static void ps_servers_follower_compares_clocks_by_its_last_heartbeat(
    void **state)
{
    (void)state;
    ps_rig *rig = start_follower((pl_ps_core_opts) { 0 });
    ps_tick(rig, 500);
    uint64_t number =
        ps_expect(rig, PL_PEER_COORDINATOR, PL_FRAME_HEARTBEAT)->frame.sequence;
    pl_frame beat = { .kind = PL_FRAME_HEARTBEAT_ACK,
                      .sequence = number - 1,
                      .value = { rig->now_ns + 7000 * PS_MS } };
    from_server_0(rig, beat, NULL, 0);
    assert_false(ps_look(rig, 0).skew.known);
    beat.sequence = number;
    from_server_0(rig, beat, NULL, 0);
    assert_true(ps_look(rig, 0).skew.known);
    assert_int_equal(7000 * PS_MS, ps_look(rig, 0).skew.ahead_ns);
    ps_close(rig);
}

/* What each task reported last, and the most memory of all its heartbeats: the
 * chief receives it when the others have reported once more, after its goodbye.
 */
static void ps_servers_usage_of_all_is_reported(void **state)
{
    (void)state;
    static const char *const told[] = {
        "{\"peak_rss_mb\":1}",
        "{\"peak_rss_mb\":70,\"user_seconds\":1.5}",
        "{\"host\":\"b\",\"peak_rss_mb\":5,\"user_seconds\":0.5}",
        "{\"peak_rss_mb\":-1}",
        "no JSON",
    };
    uint32_t other;
    ps_rig *rig = start_leader(
        (pl_ps_core_opts) { .workers = 1, .evaluator = true }, &other);
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        ps_say_text(
            rig, SERVER_1,
            (pl_frame) { .kind = PL_FRAME_HEARTBEAT, .incarnation = other },
            told[i]);
        ps_expect(rig, SERVER_1, PL_FRAME_HEARTBEAT_ACK);
    }
    ps_say_text(rig, PS_EVALUATOR, (pl_frame) { .kind = PL_FRAME_JOIN },
                "{\"role\": \"evaluator\", \"index\": 0, \"job\": \"\"}");
    uint32_t evaluator =
        ps_expect(rig, PS_EVALUATOR, PL_FRAME_WELCOME)->frame.incarnation;
    ps_say_text(
        rig, PS_EVALUATOR,
        (pl_frame) { .kind = PL_FRAME_HEARTBEAT, .incarnation = evaluator },
        "{\"disk_read_bytes\":7}");
    ps_expect(rig, PS_EVALUATOR, PL_FRAME_HEARTBEAT_ACK);
    rig->peak_mb = 3;
    ps_say_text(rig, rig->peer[0], ps_request(rig, 0, PL_FRAME_BYE), "{}");
    pl_frame asks = ps_expect(rig, SERVER_1, PL_FRAME_HEARTBEAT_ACK)->frame;
    assert_int_equal(PL_HEARTBEAT_FINAL, asks.flags);
    /* One that left before the question came is asked again. */
    pl_frame heart = { .kind = PL_FRAME_HEARTBEAT, .incarnation = other };
    ps_say_text(rig, SERVER_1, heart, "{\"user_seconds\":0.6}");
    asks = ps_expect(rig, SERVER_1, PL_FRAME_HEARTBEAT_ACK)->frame;
    assert_int_equal(PL_HEARTBEAT_FINAL, asks.flags);
    heart.flags = PL_HEARTBEAT_FINAL;
    ps_say_text(rig, SERVER_1, heart, "{\"user_seconds\":0.75}");
    asks = ps_expect(rig, SERVER_1, PL_FRAME_HEARTBEAT_ACK)->frame;
    assert_int_equal(0, asks.flags);
    ps_quiet(rig); /* the evaluator has not left */
    ps_say_text(rig, PS_EVALUATOR,
                (pl_frame) { .kind = PL_FRAME_BYE,
                             .incarnation = evaluator,
                             .sequence = 1 },
                "{\"bytes_sent\":9,\"disk_read_bytes\":8}");
    ps_expect_text(rig, rig->peer[0], PL_FRAME_REPORT,
                   "\"servers\":[{\"index\":0,\"peak_rss_mb\":3},"
                   "{\"index\":1,\"peak_rss_mb\":70,"
                   "\"user_seconds\":0.75}],"
                   "\"evaluator\":{\"bytes_sent\":9,\"disk_read_bytes\":8}}");
    ps_close(rig);
}

/* A server that does not answer any more delays the chief for a while. */
static void ps_servers_silent_server_is_reported_by_its_last_heartbeat(
    void **state)
{
    (void)state;
    uint32_t other;
    ps_rig *rig = start_leader(
        (pl_ps_core_opts) { .workers = 1, .heartbeat_ms = 4000 }, &other);
    ps_say_text(rig, SERVER_1,
                (pl_frame) { .kind = PL_FRAME_HEARTBEAT, .incarnation = other },
                "{\"user_seconds\":0.5}");
    ps_forget(rig);
    ps_say_text(rig, rig->peer[0], ps_request(rig, 0, PL_FRAME_BYE), "{}");
    ps_expect(rig, SERVER_1, PL_FRAME_HEARTBEAT_ACK);
    ps_tick(rig, 1900);
    ps_quiet(rig);
    ps_tick(rig, 200);
    ps_expect_text(rig, rig->peer[0], PL_FRAME_REPORT,
                   "{\"index\":1,\"user_seconds\":0.5}");
    ps_close(rig);
}

static void ps_servers_follower_applies_what_server_0_chose(void **state)
{
    (void)state;
    ps_rig *rig = start_follower((pl_ps_core_opts) { .workers = 3 });
    for (int w = 2; w >= 0; w--) {
        ps_push(rig, w, 0, -1.0f - (float)w);
        const ps_sent *have =
            ps_expect(rig, PL_PEER_COORDINATOR, PL_FRAME_HAVE);
        assert_int_equal(9, have->frame.incarnation);
        assert_int_equal(w, have->frame.value[0]);
        assert_int_equal(0, have->frame.step);
    }
    ps_quiet(rig); /* all are in, but it does not decide */
    ps_tick(rig, 500);
    ps_expect(rig, PL_PEER_COORDINATOR, PL_FRAME_HEARTBEAT);
    for (int w = 0; w < 3; w++) /* repeated until it is answered */
        ps_expect(rig, PL_PEER_COORDINATOR, PL_FRAME_HAVE);
    pl_frame apply = { .kind = PL_FRAME_APPLY, .step = 0 };
    from_server_0(rig, apply, "\2\2", 2); /* of another number of workers */
    ps_quiet(rig);
    from_server_0(rig, apply, "\2\0\2", 3);
    ps_answer_of(rig, 0, 0, 1, 2.0f);
    ps_answer_of(rig, 1, PL_ANSWER_DROPPED, 1, 2.0f);
    ps_answer_of(rig, 2, 0, 1, 2.0f);
    from_server_0(rig, apply, "\2\0\2", 3); /* doubled */
    ps_quiet(rig);
    assert_int_equal(1, ps_look(rig, 0).step);
    ps_close(rig);
}

static void ps_servers_follower_fails_when_a_chosen_gradient_is_not_here(
    void **state)
{
    (void)state;
    ps_rig *rig = start_follower((pl_ps_core_opts) { 0 });
    ps_push(rig, 0, 0, -1.0f);
    ps_forget(rig);
    from_server_0(rig, (pl_frame) { .kind = PL_FRAME_APPLY }, "\2\2", 2);
    assert_fails(PL_CLOSED, "ps 1 has no gradient of worker 1 at step 0",
                 pl_ps_core_outcome(rig->core));
    assert_int_equal(0, ps_look(rig, 0).step);
    ps_expect(rig, rig->peer[0], PL_FRAME_OVER);
    ps_expect(rig, rig->peer[1], PL_FRAME_OVER);
    ps_expect_text(rig, PL_PEER_COORDINATOR, PL_FRAME_STOP, "no gradient of");
    ps_close(rig);
}

static void ps_servers_follower_gives_up_on_a_silent_server_0(void **state)
{
    (void)state;
    ps_rig *rig = start_follower(
        (pl_ps_core_opts) { .heartbeat_ms = 3000, .rejoin_ms = 10000 });
    ps_tick(rig, 2500);
    from_server_0(rig, (pl_frame) { .kind = PL_FRAME_HEARTBEAT_ACK }, NULL, 0);
    ps_forget(rig);
    ps_tick(rig, 3000);
    ps_expect(rig, PL_PEER_COORDINATOR, PL_FRAME_HEARTBEAT);
    ps_tick(rig, 500); /* when it comes back it may be another: join it */
    ps_expect(rig, PL_PEER_COORDINATOR, PL_FRAME_JOIN);
    ps_tick(rig, 6500);
    assert_ok(pl_ps_core_outcome(rig->core));
    ps_tick(rig, 100);
    assert_fails(PL_CLOSED, "ps 0 is lost: it has been silent for 10.",
                 pl_ps_core_outcome(rig->core));
    assert_true(pl_ps_core_finished(rig->core));
    ps_close(rig);
}

/* One that is restarted when the chief has left, and receives the end. */
static void ps_servers_follower_without_parameters_ends_well(void **state)
{
    (void)state;
    ps_rig *rig = ps_open((pl_ps_core_opts) { .ps = 2, .index = 1 }, "sgd");
    from_server_0(rig,
                  (pl_frame) { .kind = PL_FRAME_WELCOME, .incarnation = 9 },
                  "{}", 2);
    from_server_0(
        rig,
        (pl_frame) { .kind = PL_FRAME_HEARTBEAT_ACK, .flags = PL_STOP_NOW },
        "stop_loss", 9);
    assert_ok(pl_ps_core_outcome(rig->core));
    from_server_0(rig, (pl_frame) { .kind = PL_FRAME_OVER }, NULL, 0);
    assert_true(pl_ps_core_finished(rig->core));
    assert_ok(pl_ps_core_outcome(rig->core));
    ps_close(rig);
}

/* ... and a task that comes too late does not wait for parameters that no
 * server will send. */
static void ps_servers_follower_without_parameters_refuses_late_tasks(
    void **state)
{
    (void)state;
    ps_rig *rig = open_follower((pl_ps_core_opts) { 0 });
    ps_say(rig, rig->peer[1], ps_request(rig, 1, PL_FRAME_PULL), NULL);
    ps_quiet(rig);
    from_server_0(
        rig,
        (pl_frame) { .kind = PL_FRAME_HEARTBEAT_ACK, .flags = PL_STOP_NOW },
        "stop_loss", 9);
    ps_expect_text(rig, rig->peer[1], PL_FRAME_REFUSE, "the job is over");
    assert_ok(pl_ps_core_outcome(rig->core));
    ps_close(rig);
}

static void ps_servers_follower_stops_and_ends_on_request(void **state)
{
    (void)state;
    ps_rig *rig = start_follower((pl_ps_core_opts) { .mode = PL_PS_ASYNC });
    from_server_0(
        rig,
        (pl_frame) { .kind = PL_FRAME_HEARTBEAT_ACK, .flags = PL_STOP_NOW },
        "stop_loss", 9);
    ps_forget(rig);
    ps_push(rig, 1, 0, -1.0f);
    ps_answer(rig, 1, PL_ANSWER_DROPPED | PL_ANSWER_STOP, 0);
    ps_pull(rig, 0, PL_PULL_FINAL, 0); /* parameters are still given */
    ps_answer_of(rig, 0, PL_ANSWER_STOP, 0, 0.0f);
    assert_false(pl_ps_core_finished(rig->core));
    from_server_0(rig, (pl_frame) { .kind = PL_FRAME_OVER }, NULL, 0);
    const ps_sent *bye = ps_expect(rig, PL_PEER_COORDINATOR, PL_FRAME_BYE);
    assert_int_equal(9, bye->frame.incarnation);
    assert_true(pl_ps_core_finished(rig->core));
    assert_ok(pl_ps_core_outcome(rig->core));
    ps_close(rig);
}

/* An interrupt that comes with the end adds nothing to the goodbye: server 0
 * would take a later request for a sign that this server is back. */
static void ps_servers_follower_sends_nothing_after_its_goodbye(void **state)
{
    (void)state;
    ps_rig *rig = start_follower((pl_ps_core_opts) { 0 });
    from_server_0(rig, (pl_frame) { .kind = PL_FRAME_OVER }, NULL, 0);
    ps_expect(rig, PL_PEER_COORDINATOR, PL_FRAME_BYE);
    pl_ps_core_stop(rig->core, false, PL_STOP_INTERRUPT);
    ps_tick(rig, 1000);
    ps_quiet(rig);
    ps_close(rig);
}

/* It does not watch for silence: server 0 does, and reports it. */
static void ps_servers_follower_declares_no_worker_lost(void **state)
{
    (void)state;
    ps_rig *rig = start_follower((pl_ps_core_opts) { .heartbeat_ms = 2000 });
    for (int i = 0; i < 40; i++) {
        from_server_0(rig, (pl_frame) { .kind = PL_FRAME_HEARTBEAT_ACK }, NULL,
                      0);
        ps_pass(rig, 500, 0);
    }
    for (int32_t w = 0; w < rig->workers; w++)
        assert_int_equal(0, rig->lost[w]);
    assert_int_equal(0, ps_look(rig, 0).lost);
    assert_ok(pl_ps_core_outcome(rig->core));
    ps_close(rig);
}

static void ps_servers_follower_fails_with_the_job(void **state)
{
    (void)state;
    ps_rig *rig = start_follower((pl_ps_core_opts) { 0 });
    from_server_0(rig,
                  (pl_frame) { .kind = PL_FRAME_OVER, .flags = PL_STOP_FAILED },
                  "worker 1: out of memory", 23);
    assert_fails(PL_CLOSED, "worker 1: out of memory",
                 pl_ps_core_outcome(rig->core));
    assert_true(pl_ps_core_finished(rig->core));
    ps_close(rig);
    rig = start_follower((pl_ps_core_opts) { 0 });
    from_server_0(rig, (pl_frame) { .kind = PL_FRAME_REFUSE }, "--lr", 4);
    assert_fails(PL_CLOSED, "ps 0 refused this server: --lr",
                 pl_ps_core_outcome(rig->core));
    assert_true(pl_ps_core_finished(rig->core));
    ps_close(rig);
}

/* L4, L5 */
static void ps_servers_leader_ends_all_and_waits_for_goodbyes(void **state)
{
    (void)state;
    uint32_t other;
    ps_rig *rig = start_leader((pl_ps_core_opts) { .workers = 1 }, &other);
    chief_leaves(rig, other);
    ps_expect(rig, rig->peer[0], PL_FRAME_REPORT);
    ps_expect(rig, SERVER_1, PL_FRAME_HEARTBEAT_ACK);
    ps_heard(rig);
    ps_tick(rig, 500);
    assert_int_equal(0, ps_expect(rig, SERVER_1, PL_FRAME_OVER)->frame.flags);
    ps_tick(rig, 100);
    ps_quiet(rig);
    ps_tick(rig, 400); /* lost: once more */
    ps_expect(rig, SERVER_1, PL_FRAME_OVER);
    assert_false(pl_ps_core_finished(rig->core));
    ps_say(rig, SERVER_1,
           (pl_frame) {
               .kind = PL_FRAME_BYE, .incarnation = other, .sequence = 1 },
           NULL);
    ps_tick(rig, 100);
    assert_true(pl_ps_core_finished(rig->core));
    assert_ok(pl_ps_core_outcome(rig->core));
    ps_close(rig);
}

/* `ms` pass, in which only worker 0 sends. */
static void pass_without_server_1(ps_rig *rig, int64_t ms)
{
    for (int64_t at = 0; at < ms; at += 500) {
        ps_heart(rig, 0, 0, PL_PHASE_WAITING, 1);
        ps_tick(rig, 500);
        if (pl_ps_core_outcome(rig->core) == PL_OK)
            ps_forget(rig);
    }
}

static void ps_servers_lost_server_is_waited_for(void **state)
{
    (void)state;
    uint32_t other;
    ps_rig *rig = start_leader(
        (pl_ps_core_opts) { .workers = 1, .rejoin_ms = 10000 }, &other);
    pass_without_server_1(rig, 15000);
    assert_ok(pl_ps_core_outcome(rig->core));
    pass_without_server_1(rig, 1000);
    assert_fails(PL_CLOSED,
                 "ps 1 () was lost at step 0 and did not come back "
                 "within 10 s (--rejoin-timeout)",
                 pl_ps_core_outcome(rig->core));
    ps_close(rig);
}

/* It was cut off, with all it holds: nothing is lost. */
static void ps_servers_server_that_was_cut_off_continues(void **state)
{
    (void)state;
    uint32_t other;
    ps_rig *rig = start_leader(
        (pl_ps_core_opts) { .workers = 1, .rejoin_ms = 10000 }, &other);
    pass_without_server_1(rig, 7000);
    for (int i = 0; i < 60; i++) {
        ps_say(rig, SERVER_1,
               (pl_frame) { .kind = PL_FRAME_HEARTBEAT, .incarnation = other },
               NULL);
        ps_expect(rig, SERVER_1, PL_FRAME_HEARTBEAT_ACK);
        pass_without_server_1(rig, 500);
    }
    assert_ok(pl_ps_core_outcome(rig->core));
    assert_true(ps_look(rig, 0).initialized);
    ps_close(rig);
}

/* Server 0 was restarted and counts generations from 1 again: a server of a job
 * that was rolled back reports how many there were. */
static void ps_servers_follower_joins_a_new_server_0(void **state)
{
    (void)state;
    ps_rig *rig = start_follower((pl_ps_core_opts) { 0 });
    rig->generation = 5;
    from_server_0(
        rig, (pl_frame) { .kind = PL_FRAME_HEARTBEAT_ACK, .incarnation = 9 },
        NULL, 0); /* rolled back */
    ps_forget(rig);
    pl_frame refuse = {
        .kind = PL_FRAME_REFUSE,
        .flags = PL_REFUSE_UNKNOWN,
        .generation = 1,
        .incarnation = 8, /* of an earlier life: it comes late */
    };
    from_server_0(rig, refuse, NULL, 0);
    ps_tick(rig, 500);
    ps_expect(rig, PL_PEER_COORDINATOR, PL_FRAME_HEARTBEAT);
    refuse.incarnation = 9;
    from_server_0(rig, refuse, NULL, 0);
    ps_tick(rig, 100);
    assert_int_equal(
        5,
        ps_expect(rig, PL_PEER_COORDINATOR, PL_FRAME_JOIN)->frame.generation);
    ps_close(rig);
}

/* Cut off for longer it joins again; server 0 knows the process, which still
 * has its part. */
static void ps_servers_known_server_joins_without_a_rollback(void **state)
{
    (void)state;
    uint32_t other;
    ps_rig *rig = start_leader((pl_ps_core_opts) { .workers = 1 }, &other);
    ps_say_text(
        rig, SERVER_1,
        (pl_frame) { .kind = PL_FRAME_JOIN, .generation = rig->generation },
        "{\"role\": \"ps\", \"index\": 1, \"job\": \"\"}");
    const ps_sent *sent = ps_expect(rig, SERVER_1, PL_FRAME_WELCOME);
    assert_int_equal(other, sent->frame.incarnation);
    assert_int_equal(rig->generation, sent->frame.generation);
    assert_true(ps_look(rig, 0).initialized);
    ps_close(rig);
}

/* It was silent for too long, just when the end was on its way: it is admitted
 * to receive that, and another process in its place is not. */
static void ps_servers_known_server_joins_to_receive_the_end(void **state)
{
    (void)state;
    uint32_t other;
    ps_rig *rig = start_leader((pl_ps_core_opts) { .workers = 1 }, &other);
    chief_leaves(rig, other);
    ps_expect(rig, rig->peer[0], PL_FRAME_REPORT);
    ps_expect(rig, SERVER_1, PL_FRAME_HEARTBEAT_ACK);
    ps_heard(rig);
    ps_tick(rig, 500);
    ps_expect(rig, SERVER_1, PL_FRAME_OVER);
    pl_frame join = { .kind = PL_FRAME_JOIN, .generation = rig->generation };
    ps_say_text(rig, SERVER_1, join, join_text);
    assert_int_equal(
        other, ps_expect(rig, SERVER_1, PL_FRAME_WELCOME)->frame.incarnation);
    ps_say_text(rig, SERVER_1 + 1, join, join_text);
    ps_expect_text(rig, SERVER_1 + 1, PL_FRAME_REFUSE, "the job is over");
    pl_frame bye = { .kind = PL_FRAME_BYE,
                     .incarnation = other,
                     .sequence = 1 };
    ps_say(rig, SERVER_1, bye, NULL);
    ps_expect(rig, SERVER_1, PL_FRAME_ACK);
    ps_say_text(rig, SERVER_1, join, join_text); /* late: it has left */
    ps_expect(rig, SERVER_1, PL_FRAME_WELCOME);
    ps_tick(rig, 100);
    assert_true(pl_ps_core_finished(rig->core));
    assert_ok(pl_ps_core_outcome(rig->core));
    ps_close(rig);
}

/* J5 */
static void ps_servers_new_server_rolls_the_job_back(void **state)
{
    (void)state;
    uint32_t other;
    ps_rig *rig = start_leader((pl_ps_core_opts) { .workers = 1 }, &other);
    ps_push(rig, 0, 0, -1.0f);
    say_have(rig, other, 0, 0);
    ps_forget(rig);
    assert_int_equal(1, ps_look(rig, 0).step);
    ps_say_text(rig, SERVER_1 + PS_LIFE, (pl_frame) { .kind = PL_FRAME_JOIN },
                join_text);
    ps_expect_text(rig, SERVER_1, PL_FRAME_REFUSE, "a newer process");
    const ps_sent *beat = ps_expect(rig, rig->peer[0], PL_FRAME_HEARTBEAT_ACK);
    assert_int_equal(2, beat->frame.generation);
    ps_expect(rig, SERVER_1 + PS_LIFE, PL_FRAME_HEARTBEAT_ACK);
    ps_expect(rig, SERVER_1 + PS_LIFE, PL_FRAME_WELCOME);
    assert_false(ps_look(rig, 0).initialized);
    assert_int_equal(0, ps_look(rig, 0).step);
    ps_push(rig, 0, 1, -1.0f); /* of the generation before */
    ps_quiet(rig);
    rig->generation = 2;
    ps_join(rig, 0, 0);
    const float saved[4] = { 5, 5, 5, 5 };
    ps_init(rig, 7, saved);
    assert_int_equal(7, ps_look(rig, 0).step);
    assert_ok(pl_ps_core_outcome(rig->core));
    ps_close(rig);
}

/* The chief has still to take the last parameters; once it has, the server is
 * not needed any more. */
/* A server that is new since the chief left needs nothing, unless the chief
 * was not done and is started again. (J5) */
static void ps_servers_new_server_rolls_back_a_chief_that_returns(void **state)
{
    (void)state;
    uint32_t other;
    ps_rig *rig = start_leader((pl_ps_core_opts) { .workers = 1 }, &other);
    chief_leaves(rig, other);
    ps_expect(rig, rig->peer[0], PL_FRAME_REPORT);
    ps_expect(rig, SERVER_1, PL_FRAME_HEARTBEAT_ACK);
    ps_say_text(rig, SERVER_1 + PS_LIFE, (pl_frame) { .kind = PL_FRAME_JOIN },
                join_text);
    ps_expect_text(rig, SERVER_1, PL_FRAME_REFUSE, "a newer process");
    const ps_sent *sent = ps_expect(rig, SERVER_1 + PS_LIFE, PL_FRAME_WELCOME);
    assert_int_equal(1, sent->frame.generation);
    assert_true(ps_look(rig, 0).initialized);
    ps_say_text(rig, rig->peer[0] + PS_LIFE,
                (pl_frame) { .kind = PL_FRAME_JOIN, .sequence = 1 },
                "{\"role\": \"worker\", \"index\": 0, \"job\": \"\"}");
    sent = ps_expect(rig, rig->peer[0] + PS_LIFE, PL_FRAME_HEARTBEAT_ACK);
    assert_int_equal(2, sent->frame.generation);
    ps_expect(rig, SERVER_1 + PS_LIFE, PL_FRAME_HEARTBEAT_ACK);
    sent = ps_expect(rig, rig->peer[0] + PS_LIFE, PL_FRAME_WELCOME);
    assert_int_equal(0, sent->frame.value[1]); /* it is to restore all */
    assert_false(ps_look(rig, 0).initialized);
    ps_close(rig);
}

static void ps_servers_lost_server_is_needed_until_the_chief_left(void **state)
{
    (void)state;
    for (int left = 0; left <= 1; left++) {
        uint32_t other;
        ps_rig *rig = start_leader(
            (pl_ps_core_opts) { .workers = 1, .rejoin_ms = 10000 }, &other);
        pl_ps_core_stop(rig->core, false, "stop_loss");
        ps_forget(rig);
        pass_without_server_1(rig, 7000);
        if (left != 0)
            ps_say_text(rig, rig->peer[0], ps_request(rig, 0, PL_FRAME_BYE),
                        "{}");
        ps_forget(rig);
        pass_without_server_1(rig, 9000);
        assert_int_equal(left != 0, pl_ps_core_outcome(rig->core) == PL_OK);
        assert_true(left == 0 || pl_ps_core_finished(rig->core));
        ps_close(rig);
    }
}

/* One that comes back when all is done would wait forever for its part. */
static void ps_servers_late_worker_does_not_wait_for_a_lost_one(void **state)
{
    (void)state;
    uint32_t other;
    ps_rig *rig =
        start_leader((pl_ps_core_opts) { .rejoin_ms = 10000 }, &other);
    chief_leaves(rig, other);
    ps_heard(rig);
    ps_forget(rig);
    for (int ms = 0; ms < 17000; ms += 500) {
        if (rig->taken == rig->made)
            ps_heart(rig, 1, 0, PL_PHASE_WAITING, 0);
        ps_tick(rig, 500);
    }
    ps_expect_text(rig, rig->peer[1], PL_FRAME_REFUSE, "ps 1");
    assert_true(pl_ps_core_finished(rig->core));
    assert_ok(pl_ps_core_outcome(rig->core));
    ps_close(rig);
}

/* Interrupted tasks are not restarted. */
static void ps_servers_server_lost_in_an_interrupt_ends_the_job(void **state)
{
    (void)state;
    uint32_t other;
    ps_rig *rig = start_leader((pl_ps_core_opts) { .workers = 1 }, &other);
    pl_ps_core_stop(rig->core, false, PL_STOP_INTERRUPT);
    ps_forget(rig);
    pass_without_server_1(rig, 6000);
    assert_fails(PL_CLOSED, "was lost while the job was interrupted",
                 pl_ps_core_outcome(rig->core));
    ps_close(rig);
}

/* An interrupt of server 1 counts also when the job ends anyway: a chief that
 * is lost will not come back. */
static void ps_servers_interrupt_reaches_a_job_that_ends(void **state)
{
    (void)state;
    uint32_t other;
    ps_rig *rig = start_leader((pl_ps_core_opts) { .workers = 2 }, &other);
    pl_ps_core_stop(rig->core, false, "stop_loss");
    ps_forget(rig);
    ps_push(rig, 1, 0, -1.0f);
    ps_answer(rig, 1, PL_ANSWER_DROPPED | PL_ANSWER_STOP, 0);
    ps_say_text(rig, SERVER_1,
                (pl_frame) { .kind = PL_FRAME_STOP,
                             .incarnation = other,
                             .sequence = 1 },
                PL_STOP_INTERRUPT);
    ps_expect(rig, SERVER_1, PL_FRAME_ACK);
    ps_push(rig, 1, 0, -1.0f);
    ps_answer(rig, 1, PL_ANSWER_DROPPED | PL_ANSWER_STOP | PL_ANSWER_BROKEN, 0);
    ps_close(rig);
    rig = start_follower((pl_ps_core_opts) { .mode = PL_PS_ASYNC });
    from_server_0(
        rig,
        (pl_frame) { .kind = PL_FRAME_HEARTBEAT_ACK, .flags = PL_STOP_NOW },
        "stop_loss", 9);
    pl_ps_core_stop(rig->core, false, PL_STOP_INTERRUPT);
    ps_tick(rig, 500);
    ps_expect_text(rig, PL_PEER_COORDINATOR, PL_FRAME_STOP, PL_STOP_INTERRUPT);
    ps_close(rig);
}

static void ps_servers_failure_is_resent_until_server_0_ends_the_job(
    void **state)
{
    (void)state;
    ps_rig *rig = start_follower((pl_ps_core_opts) { 0 });
    pl_ps_core_stop(rig->core, true, "out of memory");
    ps_forget(rig);
    for (int i = 0; i < 3; i++) {
        ps_tick(rig, 500);
        const ps_sent *stop =
            ps_expect(rig, PL_PEER_COORDINATOR, PL_FRAME_STOP);
        assert_int_equal(PL_STOP_FAILED, stop->frame.flags);
        assert_string_equal("out of memory", stop->bytes);
        ps_expect(rig, PL_PEER_COORDINATOR, PL_FRAME_HEARTBEAT);
    }
    ps_close(rig);
}

/* No server 0 sends an APPLY that chooses no worker. */
static void ps_servers_apply_without_workers_is_ignored(void **state)
{
    (void)state;
    ps_rig *rig = start_follower((pl_ps_core_opts) { 0 });
    from_server_0(rig, (pl_frame) { .kind = PL_FRAME_APPLY }, "\0\1", 2);
    assert_int_equal(0, ps_look(rig, 0).step);
    assert_ok(pl_ps_core_outcome(rig->core));
    ps_quiet(rig);
    ps_close(rig);
}

UNIT_TESTS(
    cmocka_unit_test(ps_servers_step_needs_the_gradients_on_all),
    cmocka_unit_test(ps_servers_leader_chooses_gradients_on_all_servers),
    cmocka_unit_test(ps_servers_have_of_a_worker_is_ignored),
    cmocka_unit_test(ps_servers_pull_waits_until_all_servers_joined),
    cmocka_unit_test(ps_servers_late_worker_does_not_wait_for_a_lost_one),
    cmocka_unit_test(ps_servers_follower_without_parameters_ends_well),
    cmocka_unit_test(ps_servers_follower_without_parameters_refuses_late_tasks),
    cmocka_unit_test(ps_servers_follower_joins_and_sends_heartbeats),
    cmocka_unit_test(ps_servers_follower_reports_its_usage),
    cmocka_unit_test(ps_servers_follower_compares_clocks_by_its_last_heartbeat),
    cmocka_unit_test(ps_servers_usage_of_all_is_reported),
    cmocka_unit_test(
        ps_servers_silent_server_is_reported_by_its_last_heartbeat),
    cmocka_unit_test(ps_servers_follower_applies_what_server_0_chose),
    cmocka_unit_test(
        ps_servers_follower_fails_when_a_chosen_gradient_is_not_here),
    cmocka_unit_test(ps_servers_follower_gives_up_on_a_silent_server_0),
    cmocka_unit_test(ps_servers_follower_stops_and_ends_on_request),
    cmocka_unit_test(ps_servers_follower_sends_nothing_after_its_goodbye),
    cmocka_unit_test(ps_servers_follower_declares_no_worker_lost),
    cmocka_unit_test(ps_servers_follower_fails_with_the_job),
    cmocka_unit_test(ps_servers_leader_ends_all_and_waits_for_goodbyes),
    cmocka_unit_test(ps_servers_lost_server_is_waited_for),
    cmocka_unit_test(ps_servers_server_that_was_cut_off_continues),
    cmocka_unit_test(ps_servers_follower_joins_a_new_server_0),
    cmocka_unit_test(ps_servers_known_server_joins_without_a_rollback),
    cmocka_unit_test(ps_servers_known_server_joins_to_receive_the_end),
    cmocka_unit_test(ps_servers_new_server_rolls_the_job_back),
    cmocka_unit_test(ps_servers_new_server_rolls_back_a_chief_that_returns),
    cmocka_unit_test(ps_servers_lost_server_is_needed_until_the_chief_left),
    cmocka_unit_test(ps_servers_server_lost_in_an_interrupt_ends_the_job),
    cmocka_unit_test(ps_servers_interrupt_reaches_a_job_that_ends),
    cmocka_unit_test(ps_servers_failure_is_resent_until_server_0_ends_the_job),
    cmocka_unit_test(ps_servers_apply_without_workers_is_ignored))
