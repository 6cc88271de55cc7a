/* Checkpoints, as the core decides about them: begun at one moment, written
 * while training goes on, complete when all parts are.
 *
 * Invariants and the tests that check them:
 *   save K1  ps_save_is_of_the_state_that_the_chief_froze
 *   save K2  ps_save_holds_a_step,
 *            ps_save_holds_gradients_one_by_one
 *   save K3  ps_save_is_complete_when_all_parts_are,
 *            ps_save_takes_only_parts_of_its_own
 *   save K4  ps_save_is_given_up_with_a_chief_that_began_it,
 *            ps_save_that_is_being_completed_keeps_the_chief_out
 *   save K5  ps_save_part_is_resent_until_acknowledged */
#include "support/ps.h"

#define PLAN   "plan"
#define NUMBER 5

/* What the core requested from the disk. */
typedef struct disk {
    int saves, commits, loads, cancels;
    bool busy;  /* with what was cancelled: nothing can begin */
    bool holds; /* nothing may change */
    char plan[16];
    pl_ps_part parts[2];
} disk;

static disk d;

static bool begin(int *count, const char *plan, size_t bytes)
{
    if (d.busy)
        return false;
    ++*count;
    snprintf(d.plan, sizeof d.plan, "%.*s", (int)bytes, plan);
    return true;
}

static bool on_save(void *context, const char *plan, size_t bytes)
{
    (void)context;
    return begin(&d.saves, plan, bytes);
}

static bool on_commit(void *context, const pl_ps_part *parts)
{
    (void)context;
    memcpy(d.parts, parts, sizeof d.parts);
    return begin(&d.commits, "", 0);
}

static bool on_load(void *context, const char *plan, size_t bytes)
{
    (void)context;
    return begin(&d.loads, plan, bytes);
}

static void on_cancel(void *context)
{
    (void)context;
    d.cancels++;
}

static bool on_touch(void *context, int64_t first, int64_t count)
{
    const ps_rig *rig = context;
    assert_int_equal(0, first);
    assert_int_equal(rig->count, count);
    return !d.holds;
}

static const pl_ps_core_ops ops = {
    .send = ps_on_send,
    .lost = ps_on_lost,
    .save = on_save,
    .commit = on_commit,
    .load = on_load,
    .cancel = on_cancel,
    .touch = on_touch,
};

static ps_rig *open_rig(pl_ps_core_opts opts)
{
    d = (disk) { 0 };
    opts.ops = &ops;
    return ps_open(opts, "sgd");
}

/* Server 0 of two, with two workers and parameters of 0. */
static ps_rig *start_leader(pl_ps_core_opts opts)
{
    float zero[PS_FLOATS] = { 0 };
    opts.ps = 2;
    ps_rig *rig = open_rig(opts);
    ps_say_text(rig, PS_SERVER, (pl_frame) { .kind = PL_FRAME_JOIN },
                "{\"role\": \"ps\", \"index\": 1, \"job\": \"\", \"host\": "
                "\"node9\"}");
    rig->incarnation[7] =
        ps_expect(rig, PS_SERVER, PL_FRAME_WELCOME)->frame.incarnation;
    ps_join(rig, 0, 0);
    ps_join(rig, 1, 0);
    ps_init(rig, 0, zero);
    ps_quiet(rig);
    return rig;
}

static ps_rig *start_alone(pl_ps_core_opts opts)
{
    float zero[PS_FLOATS] = { 0 };
    ps_rig *rig = open_rig(opts);
    ps_join(rig, 0, 0);
    ps_join(rig, 1, 0);
    ps_init(rig, 0, zero);
    return rig;
}

static void ask(ps_rig *rig, pl_frame_kind kind, int64_t step, int64_t a,
                int64_t b)
{
    const int64_t counts[2] = { a, b };
    char payload[sizeof counts + sizeof PLAN - 1];
    memcpy(payload, counts, sizeof counts);
    memcpy(payload + sizeof counts, PLAN, sizeof PLAN - 1);
    pl_frame frame = ps_request(rig, 0, kind);
    frame.step = step;
    frame.value[0] = NUMBER;
    frame.payload_bytes = sizeof payload;
    ps_say(rig, rig->peer[0], frame, payload);
}

static void pause_for(ps_rig *rig, unsigned flags)
{
    pl_frame frame = ps_request(rig, 0, PL_FRAME_PAUSE);
    frame.flags = (uint8_t)flags;
    ps_say(rig, rig->peer[0], frame, NULL);
}

/* The outcome of the last save, as sent to the chief. */
static const ps_sent *expect_saved(ps_rig *rig, pl_saved saved)
{
    const ps_sent *sent = ps_expect(rig, rig->peer[0], PL_FRAME_ACK);
    assert_int_equal(PL_ACK_DONE, sent->frame.flags);
    assert_int_equal(saved, sent->frame.value[0]);
    return sent;
}

static void look(ps_rig *rig, unsigned flags)
{
    pl_frame frame = ps_request(rig, 0, PL_FRAME_SAVE);
    frame.flags = (uint8_t)flags;
    ps_say(rig, rig->peer[0], frame, NULL);
}

static void stored(ps_rig *rig, pl_saved outcome, const char *why)
{
    pl_ps_core_stored(
        rig->core,
        &(pl_ps_stored) {
            .outcome = outcome, .bytes = 100, .crc32c = 7, .why = why },
        rig->now_ns);
}

/* The other server reports its part to server 0. */
static void other_saved(ps_rig *rig, int64_t number, pl_saved outcome,
                        const char *why)
{
    ps_say_text(rig, PS_SERVER,
                (pl_frame) { .kind = PL_FRAME_SAVED,
                             .flags = (uint8_t)outcome,
                             .incarnation = rig->incarnation[7],
                             .first = 200,
                             .value = { number, 9 } },
                why);
}

static void say_join(ps_rig *rig)
{
    ps_say_text(rig, rig->peer[0], (pl_frame) { .kind = PL_FRAME_JOIN },
                "{\"role\": \"worker\", \"index\": 0, \"job\": \"\"}");
}

/* K3 */
static void ps_save_is_complete_when_all_parts_are(void **state)
{
    (void)state;
    ps_rig *rig = start_leader((pl_ps_core_opts) { 0 });
    look(rig, PL_SAVE_LOOK);
    expect_saved(rig, PL_SAVED_GOOD);
    pause_for(rig, PL_PAUSE_FREEZE);
    ps_done(rig, 0);
    ask(rig, PL_FRAME_SAVE, 0, 0, 0);
    ps_done(rig, 0);
    assert_int_equal(1, d.saves);
    assert_string_equal(PLAN, d.plan);
    pause_for(rig, PL_PAUSE_THAW);
    ps_done(rig, 0);
    look(rig, PL_SAVE_LOOK);
    expect_saved(rig, PL_SAVED_WRITING);
    look(rig, PL_SAVE_WAIT); /* until it has ended */
    ps_quiet(rig);
    other_saved(rig, NUMBER, PL_SAVED_GOOD, "");
    assert_int_equal(NUMBER,
                     ps_expect(rig, PS_SERVER, PL_FRAME_SAVED)->frame.value[0]);
    assert_int_equal(0, d.commits);
    stored(rig, PL_SAVED_GOOD, NULL);
    assert_int_equal(1, d.commits);
    assert_int_equal(100, d.parts[0].bytes);
    assert_int_equal(7, d.parts[0].crc32c);
    assert_int_equal(200, d.parts[1].bytes);
    assert_int_equal(9, d.parts[1].crc32c);
    ps_quiet(rig);
    stored(rig, PL_SAVED_GOOD, NULL);
    expect_saved(rig, PL_SAVED_GOOD);
    ps_quiet(rig);
    ps_close(rig);
}

/* K3 */
static void ps_save_failure_of_any_part_is_reported_once(void **state)
{
    (void)state;
    ps_rig *rig = start_leader((pl_ps_core_opts) { 0 });
    ask(rig, PL_FRAME_SAVE, 0, 0, 0);
    ps_done(rig, 0);
    pause_for(rig, PL_PAUSE_THAW);
    ps_done(rig, 0);
    stored(rig, PL_SAVED_GOOD, NULL);
    other_saved(rig, NUMBER, PL_SAVED_FAILED, "the disk is full");
    ps_expect(rig, PS_SERVER, PL_FRAME_SAVED);
    assert_int_equal(0, d.commits);
    look(rig, PL_SAVE_LOOK);
    assert_string_equal("ps 1 (node9): the disk is full",
                        expect_saved(rig, PL_SAVED_FAILED)->bytes);
    /* The next one begins without the old reason. */
    ask(rig, PL_FRAME_SAVE, 0, 0, 0);
    ps_done(rig, 0);
    stored(rig, PL_SAVED_NUMERIC, "weights");
    other_saved(rig, NUMBER, PL_SAVED_FAILED, "later");
    ps_expect(rig, PS_SERVER, PL_FRAME_SAVED);
    look(rig, PL_SAVE_WAIT);
    assert_string_equal("ps 0: weights",
                        expect_saved(rig, PL_SAVED_NUMERIC)->bytes);
    ps_close(rig);
}

static void ps_save_takes_only_parts_of_its_own(void **state)
{
    (void)state;
    ps_rig *rig = start_leader((pl_ps_core_opts) { 0 });
    other_saved(rig, NUMBER, PL_SAVED_GOOD, ""); /* not begun: sent again */
    ps_quiet(rig);
    ask(rig, PL_FRAME_SAVE, 0, 0, 0);
    ps_done(rig, 0);
    stored(rig, PL_SAVED_GOOD, NULL);
    other_saved(rig, NUMBER - 1, PL_SAVED_GOOD, ""); /* received, ignored */
    ps_expect(rig, PS_SERVER, PL_FRAME_SAVED);
    assert_int_equal(0, d.commits);
    ps_say(rig, rig->peer[1],
           (pl_frame) { .kind = PL_FRAME_SAVED,
                        .incarnation = rig->incarnation[1],
                        .value = { NUMBER } },
           NULL);
    ps_quiet(rig);
    assert_int_equal(0, d.commits);
    ps_close(rig);
}

/* The chief is lost before all servers know: what was begun is given up. (K4)
 */
static void ps_save_is_given_up_with_a_chief_that_began_it(void **state)
{
    (void)state;
    ps_rig *rig = start_leader((pl_ps_core_opts) { 0 });
    ask(rig, PL_FRAME_SAVE, 0, 0, 0);
    ps_done(rig, 0);
    ps_forget(rig);
    ps_say_text(rig, PS_WORKER + PS_LIFE, (pl_frame) { .kind = PL_FRAME_JOIN },
                "{\"role\": \"worker\", \"index\": 0, \"job\": \"\"}");
    assert_int_equal(1, d.cancels);
    ps_expect(rig, PS_WORKER, PL_FRAME_REFUSE);
    rig->peer[0] = PS_WORKER + PS_LIFE;
    rig->incarnation[0] =
        ps_expect(rig, rig->peer[0], PL_FRAME_WELCOME)->frame.incarnation;
    look(rig, PL_SAVE_WAIT);
    assert_non_null(
        strstr(expect_saved(rig, PL_SAVED_FAILED)->bytes, "chief was lost"));
    ps_close(rig);
}

static void ps_save_continues_without_a_chief_that_thawed(void **state)
{
    (void)state;
    ps_rig *rig = start_leader((pl_ps_core_opts) { 0 });
    ask(rig, PL_FRAME_SAVE, 0, 0, 0);
    ps_done(rig, 0);
    pause_for(rig, PL_PAUSE_THAW);
    ps_done(rig, 0);
    ps_say_text(rig, PS_WORKER + PS_LIFE, (pl_frame) { .kind = PL_FRAME_JOIN },
                "{\"role\": \"worker\", \"index\": 0, \"job\": \"\"}");
    assert_int_equal(0, d.cancels);
    other_saved(rig, NUMBER, PL_SAVED_GOOD, "");
    stored(rig, PL_SAVED_GOOD, NULL);
    assert_int_equal(1, d.commits);
    ps_close(rig);
}

static void ps_save_is_for_the_chief_only(void **state)
{
    (void)state;
    ps_rig *rig = start_alone((pl_ps_core_opts) { 0 });
    char payload[24] = { 0 };
    pl_frame frame = ps_request(rig, 1, PL_FRAME_SAVE);
    frame.payload_bytes = sizeof payload;
    ps_say(rig, rig->peer[1], frame, payload);
    ps_expect_text(rig, rig->peer[1], PL_FRAME_REFUSE, "only the chief");
    frame = ps_request(rig, 0, PL_FRAME_SAVE);
    frame.payload_bytes = 8; /* counts of another number of workers */
    ps_say(rig, rig->peer[0], frame, payload);
    ps_expect_text(rig, rig->peer[0], PL_FRAME_REFUSE, "not a checkpoint");
    assert_int_equal(0, d.saves);
    ps_close(rig);
}

static void ps_save_waits_for_one_that_was_cancelled(void **state)
{
    (void)state;
    ps_rig *rig = start_alone((pl_ps_core_opts) { 0 });
    d.busy = true;
    ask(rig, PL_FRAME_SAVE, 0, 0, 0);
    ps_tick(rig, 100);
    ps_quiet(rig);
    d.busy = false;
    ps_tick(rig, 100);
    ps_done(rig, 0);
    assert_int_equal(1, d.saves);
    ps_close(rig);
}

static void ps_save_holds_a_step(void **state)
{
    (void)state;
    ps_rig *rig = start_alone((pl_ps_core_opts) { 0 });
    d.holds = true;
    ps_push(rig, 0, 0, -1.0f);
    ps_push(rig, 1, 0, -1.0f);
    ps_quiet(rig);
    assert_true(pl_ps_core_held(rig->core));
    pl_ps_core_retry(rig->core, rig->now_ns);
    ps_quiet(rig);
    d.holds = false;
    pl_ps_core_retry(rig->core, rig->now_ns);
    assert_false(pl_ps_core_held(rig->core));
    ps_answer_of(rig, 0, 0, 1, 1.0f);
    ps_answer_of(rig, 1, 0, 1, 1.0f);
    ps_close(rig);
}

/* The gradient is kept, asked about, and applied once. */
static void ps_save_holds_gradients_one_by_one(void **state)
{
    (void)state;
    ps_rig *rig = start_alone((pl_ps_core_opts) { .mode = PL_PS_ASYNC });
    d.holds = true;
    ps_push(rig, 1, 0, -1.0f);
    ps_quiet(rig);
    ps_probe(rig, 1, PL_FRAME_PUSH, 0);
    assert_int_equal(PL_ACK_COMPLETE,
                     ps_expect(rig, rig->peer[1], PL_FRAME_ACK)->frame.flags);
    ps_pull(rig, 0, PL_PULL_FINAL, 0);
    ps_quiet(rig); /* not before it is applied */
    d.holds = false;
    ps_tick(rig, 100);
    ps_answer_of(rig, 1, 0, 1, 1.0f);
    assert_int_equal(1, ps_look(rig, 1).applied_of_worker);
    ps_close(rig);
}

/* A lost worker comes back after the chief received the counts. (K2) */
static void ps_save_is_of_the_state_that_the_chief_froze(void **state)
{
    (void)state;
    ps_rig *rig = start_alone((pl_ps_core_opts) { .mode = PL_PS_ASYNC });
    pause_for(rig, PL_PAUSE_FREEZE);
    ps_done(rig, 0);
    ps_push(rig, 1, 0, -1.0f);
    assert_int_equal(0, ps_look(rig, 1).applied_of_worker);
    ask(rig, PL_FRAME_SAVE, 0, 0, 0);
    ps_done(rig, 0);
    pause_for(rig, PL_PAUSE_THAW);
    assert_int_equal(1, ps_look(rig, 1).applied_of_worker);
    ps_close(rig);
}

/* P2 */
static void ps_save_is_forgotten_when_all_is_rolled_back(void **state)
{
    (void)state;
    ps_rig *rig = start_leader((pl_ps_core_opts) { 0 });
    ask(rig, PL_FRAME_SAVE, 0, 0, 0);
    ps_done(rig, 0);
    ps_say_text(rig, PS_SERVER + 1, (pl_frame) { .kind = PL_FRAME_JOIN },
                "{\"role\": \"ps\", \"index\": 1, \"job\": \"\"}");
    assert_int_equal(1, d.cancels);
    assert_false(ps_look(rig, 0).initialized);
    ps_close(rig);
}

static void ps_save_has_no_codec_residual(void **state)
{
    (void)state;
    static const struct {
        const pl_codec *codec;
        bool keeps;
    } rows[] = { { &pl_codec_bf16, false },
                 { &pl_codec_topk_default.base, true } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ps_rig *rig = open_rig((pl_ps_core_opts) { .codec = rows[i].codec });
        ps_join(rig, 0, 0);
        ps_join(rig, 1, 0);
        ask(rig, PL_FRAME_LOAD, 7, 7, 7);
        stored(rig, PL_SAVED_GOOD, NULL);
        assert_int_equal(7, ps_look(rig, 0).step);
        assert_true(ps_look(rig, 0).mixed == rows[i].keeps);
        ps_close(rig);
    }
}

static void ps_save_load_sets_step_and_counts(void **state)
{
    (void)state;
    ps_rig *rig = open_rig((pl_ps_core_opts) { .mode = PL_PS_ASYNC });
    ps_join(rig, 0, 0);
    ps_join(rig, 1, 0);
    ask(rig, PL_FRAME_LOAD, 7, 3, ~INT64_C(4));
    assert_int_equal(1, d.loads);
    assert_false(ps_look(rig, 0).initialized);
    ps_quiet(rig);
    stored(rig, PL_SAVED_GOOD, NULL);
    ps_done(rig, 0);
    assert_true(ps_look(rig, 0).initialized);
    assert_int_equal(7, ps_look(rig, 0).step);
    assert_int_equal(3, ps_look(rig, 0).applied_of_worker);
    assert_int_equal(4, ps_look(rig, 1).applied_of_worker);
    ask(rig, PL_FRAME_LOAD, 7, 5, 6); /* by a restarted chief */
    assert_int_equal(2, d.loads);
    stored(rig, PL_SAVED_GOOD, NULL);
    ps_done(rig, 0);
    assert_int_equal(5, ps_look(rig, 0).applied_of_worker);
    ps_go(rig);
    ps_push(rig, 1, 7, 1.0f); /* from now on nothing of it may be lost */
    ps_answer(rig, 1, 0, 8);
    ask(rig, PL_FRAME_LOAD, 7, 3, 4);
    ps_done(rig, 0);
    assert_int_equal(2, d.loads);
    assert_int_equal(8, ps_look(rig, 0).step);
    assert_int_equal(7, ps_look(rig, 1).applied_of_worker);
    ps_close(rig);
}

/* When it is complete old ones are removed: the chief must not choose one of
 * them, so it is admitted when the last one is certain. (K4) */
static void ps_save_that_is_being_completed_keeps_the_chief_out(void **state)
{
    (void)state;
    ps_rig *rig = start_leader((pl_ps_core_opts) { 0 });
    ask(rig, PL_FRAME_SAVE, 0, 0, 0);
    ps_done(rig, 0);
    stored(rig, PL_SAVED_GOOD, NULL);
    other_saved(rig, NUMBER, PL_SAVED_GOOD, "");
    assert_int_equal(1, d.commits);
    ps_say_text(rig, PS_SERVER + 1, (pl_frame) { .kind = PL_FRAME_JOIN },
                "{\"role\": \"ps\", \"index\": 1, \"job\": \"\"}");
    assert_int_equal(0, d.cancels);
    rig->generation = 2;
    ps_forget(rig);
    say_join(rig);
    ps_quiet(rig);
    stored(rig, PL_SAVED_GOOD, NULL);
    say_join(rig);
    assert_int_equal(
        0, ps_expect(rig, rig->peer[0], PL_FRAME_WELCOME)->frame.value[1]);
    ps_close(rig);
}

static void ps_save_load_that_fails_ends_the_job(void **state)
{
    (void)state;
    ps_rig *rig = open_rig((pl_ps_core_opts) { 0 });
    ps_join(rig, 0, 0);
    ps_join(rig, 1, 0);
    ask(rig, PL_FRAME_LOAD, 7, 0, 0);
    stored(rig, PL_SAVED_FAILED, "no such folder");
    assert_fails(PL_CLOSED, "ps 0: no such folder",
                 pl_ps_core_outcome(rig->core));
    ps_close(rig);
}

/* Server 1 of two, joined at server 0, with its workers and parameters. */
static ps_rig *start_follower(pl_ps_mode mode)
{
    float zero[PS_FLOATS] = { 0 };
    ps_rig *rig =
        open_rig((pl_ps_core_opts) { .index = 1, .ps = 2, .mode = mode });
    pl_frame welcome = { .kind = PL_FRAME_WELCOME, .incarnation = 3 };
    ps_say_text(rig, PL_PEER_COORDINATOR, welcome, "{}");
    for (int32_t w = 0; w < 2; w++) {
        rig->peer[w] = PS_WORKER + w;
        rig->incarnation[w] = 4u + (uint32_t)w;
        char text[80];
        snprintf(text, sizeof text,
                 "{\"role\": \"worker\", \"index\": %d, \"job\": \"\"}", w);
        ps_say_text(rig, rig->peer[w],
                    (pl_frame) { .kind = PL_FRAME_JOIN,
                                 .incarnation = rig->incarnation[w] },
                    text);
        ps_expect(rig, rig->peer[w], PL_FRAME_WELCOME);
    }
    ps_init(rig, 0, zero);
    return rig;
}

/* The worker whose gradient is held dies: server 0 has applied it, so it is
 * applied here, before anything else happens to the parameters. */
static void ps_save_applies_the_held_gradient_of_one_that_died(void **state)
{
    (void)state;
    ps_rig *rig = start_follower(PL_PS_ASYNC);
    d.holds = true;
    ps_push(rig, 1, 0, -1.0f);
    ps_say(rig, PL_PEER_COORDINATOR,
           (pl_frame) { .kind = PL_FRAME_APPLY,
                        .sequence = rig->sequence[1],
                        .first = rig->incarnation[1],
                        .value = { 1, 1 } },
           NULL);
    ps_say_text(rig, rig->peer[1] + PS_LIFE,
                (pl_frame) { .kind = PL_FRAME_JOIN, .incarnation = 9 },
                "{\"role\": \"worker\", \"index\": 1, \"job\": \"\"}");
    ps_forget(rig);
    ps_pull(rig, 0, PL_PULL_FINAL, 0);
    ps_quiet(rig);
    d.holds = false;
    pl_ps_core_retry(rig->core, rig->now_ns);
    ps_answer_of(rig, 0, 0, 1, 1.0f);
    ps_answer(rig, 1, PL_ANSWER_STOP, 1);
    ps_close(rig);
}

/* K5 */
static void ps_save_part_is_resent_until_acknowledged(void **state)
{
    (void)state;
    ps_rig *rig = start_follower(PL_PS_SYNC);
    ask(rig, PL_FRAME_SAVE, 0, 0, 0);
    ps_done(rig, 0);
    stored(rig, PL_SAVED_FAILED, "full");
    for (int i = 0; i < 3; i++) {
        if (i > 0) {
            ps_tick(rig, 500);
            ps_expect(rig, PL_PEER_COORDINATOR, PL_FRAME_HEARTBEAT);
        }
        const ps_sent *sent =
            ps_expect(rig, PL_PEER_COORDINATOR, PL_FRAME_SAVED);
        assert_int_equal(NUMBER, sent->frame.value[0]);
        assert_int_equal(PL_SAVED_FAILED, sent->frame.flags);
        assert_string_equal("full", sent->bytes);
    }
    ps_say(rig, PL_PEER_COORDINATOR,
           (pl_frame) { .kind = PL_FRAME_SAVED, .value = { NUMBER } }, NULL);
    ps_tick(rig, 500);
    ps_expect(rig, PL_PEER_COORDINATOR, PL_FRAME_HEARTBEAT);
    ps_quiet(rig);
    ps_close(rig);
}

UNIT_TESTS(
    cmocka_unit_test(ps_save_is_complete_when_all_parts_are),
    cmocka_unit_test(ps_save_failure_of_any_part_is_reported_once),
    cmocka_unit_test(ps_save_takes_only_parts_of_its_own),
    cmocka_unit_test(ps_save_is_given_up_with_a_chief_that_began_it),
    cmocka_unit_test(ps_save_continues_without_a_chief_that_thawed),
    cmocka_unit_test(ps_save_is_for_the_chief_only),
    cmocka_unit_test(ps_save_waits_for_one_that_was_cancelled),
    cmocka_unit_test(ps_save_holds_a_step),
    cmocka_unit_test(ps_save_holds_gradients_one_by_one),
    cmocka_unit_test(ps_save_is_of_the_state_that_the_chief_froze),
    cmocka_unit_test(ps_save_is_forgotten_when_all_is_rolled_back),
    cmocka_unit_test(ps_save_load_sets_step_and_counts),
    cmocka_unit_test(ps_save_has_no_codec_residual),
    cmocka_unit_test(ps_save_that_is_being_completed_keeps_the_chief_out),
    cmocka_unit_test(ps_save_load_that_fails_ends_the_job),
    cmocka_unit_test(ps_save_applies_the_held_gradient_of_one_that_died),
    cmocka_unit_test(ps_save_part_is_resent_until_acknowledged))
