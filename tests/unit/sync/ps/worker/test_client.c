/* A task's side of the conversation, by frames in and frames out.
 *
 * Invariants and the tests that check them:
 *   client Q1  ps_client_plan_goes_to_all_servers
 *   client Q2  ps_client_plan_goes_to_all_servers
 *   client Q3  ps_client_ignores_messages_for_others,
 *              ps_client_ignores_the_welcome_to_an_earlier_join
 *   client Q4  ps_client_levels_servers_that_are_behind,
 *              ps_client_newer_step_replaces_an_older_half */
#include "base/log.h"
#include "support/unit.h"
#include "sync/ps/messages/messages.h"
#include "sync/ps/messages/pieces.h"
#include "sync/ps/worker/client.h"

#include <stdlib.h>

#define FLOATS 64
#define SENT   128
#define BYTES  512
#define MS     INT64_C(1000000)

typedef struct sent {
    int32_t ps;
    pl_frame frame;
    char bytes[BYTES + 1];
} sent;

typedef struct rig {
    pl_ps_client *client;
    float params[FLOATS], grad[FLOATS];
    int64_t now_ns;
    sent sent[SENT];
    int made, taken;
    uint64_t sequence[4]; /* of the last request seen, by server */
    uint64_t join;        /* of the last one seen */
    char answer[PL_OFFER_BYTES];
} rig;

static void on_send(void *context, int32_t ps, const pl_frame *frame,
                    const void *payload, bool lasting)
{
    (void)lasting;
    rig *r = context;
    assert_true(r->made < SENT && frame->payload_bytes <= BYTES);
    sent *s = &r->sent[r->made++];
    *s = (sent) { .ps = ps, .frame = *frame };
    if (frame->payload_bytes > 0)
        memcpy(s->bytes, payload, frame->payload_bytes);
    if (frame->kind == PL_FRAME_JOIN)
        r->join = frame->sequence;
    else if (frame->kind != PL_FRAME_ACK)
        r->sequence[ps] = frame->sequence;
}

static void on_offer(void *context, int32_t ps, char offer[PL_OFFER_BYTES])
{
    (void)context;
    snprintf(offer, PL_OFFER_BYTES, "memory for %d", ps);
}

static void on_shared(void *context, int32_t ps, const char *answer)
{
    (void)ps;
    snprintf(((rig *)context)->answer, PL_OFFER_BYTES, "%s", answer);
}

static const pl_ps_client_ops ops = { .send = on_send,
                                      .offer = on_offer,
                                      .shared = on_shared };

static const sent *expect(rig *r, int32_t ps, pl_frame_kind kind)
{
    if (r->taken == r->made)
        fail_msg("nothing was sent, expected %s", pl_frame_kind_text(kind));
    const sent *s = &r->sent[r->taken++];
    if (s->ps != ps || s->frame.kind != kind)
        fail_msg("%s to ps %d was sent, expected %s to ps %d",
                 pl_frame_kind_text(s->frame.kind), s->ps,
                 pl_frame_kind_text(kind), ps);
    return s;
}

static void quiet(const rig *r)
{
    if (r->taken != r->made)
        fail_msg("%s to ps %d was sent",
                 pl_frame_kind_text(r->sent[r->taken].frame.kind),
                 r->sent[r->taken].ps);
}

/* A message of server `ps`; the payload lies in memory of its size, and an
 * empty one is NULL, as in shared memory. */
static void say(rig *r, int32_t ps, pl_frame frame, const void *payload)
{
    void *exact = NULL;
    if (frame.payload_bytes > 0) {
        exact = malloc(frame.payload_bytes);
        assert_non_null(exact);
        memcpy(exact, payload, frame.payload_bytes);
    }
    if (frame.incarnation == 0)
        frame.incarnation = 7;
    if (frame.generation == 0)
        frame.generation = 1;
    pl_message message = { .frame = frame, .payload = exact };
    pl_ps_client_receive(r->client, ps, &message, r->now_ns);
    free(exact);
}

static void say_text(rig *r, int32_t ps, pl_frame frame, const char *text)
{
    frame.payload_bytes = (uint32_t)strlen(text);
    say(r, ps, frame, text);
}

static void ack(rig *r, int32_t ps, unsigned flags)
{
    say(r, ps,
        (pl_frame) { .kind = PL_FRAME_ACK,
                     .flags = (uint8_t)flags,
                     .sequence = r->sequence[ps] },
        NULL);
}

/* `count` floats from `first` on, all `value`, of parameters at `step`. */
static void send_params(rig *r, int32_t ps, int64_t step, unsigned flags,
                        int64_t first, uint32_t count, float value)
{
    float floats[FLOATS];
    for (int i = 0; i < FLOATS; i++)
        floats[i] = value;
    say(r, ps,
        (pl_frame) { .kind = PL_FRAME_PARAMS,
                     .flags = (uint8_t)flags,
                     .sequence = r->sequence[ps],
                     .step = step,
                     .first = first,
                     .count = count,
                     .value = { 0, step },
                     .payload_bytes = count * (uint32_t)sizeof(float) },
        floats);
}

static void tick(rig *r, int64_t ms)
{
    r->now_ns += ms * MS;
    pl_ps_client_tick(r->client, r->now_ns);
}

static rig *open_rig(pl_ps_client_opts opts)
{
    rig *r = calloc(1, sizeof *r);
    assert_non_null(r);
    opts.role = opts.role != NULL ? opts.role : "worker";
    opts.ps = opts.ps > 0 ? opts.ps : 1;
    opts.count = opts.count > 0 ? opts.count : 4;
    opts.params = r->params;
    opts.ops = &ops;
    opts.context = r;
    r->now_ns = MS;
    assert_ok(pl_ps_client_new(&r->client, &opts, r->now_ns));
    return r;
}

static void close_rig(rig *r)
{
    pl_ps_client_free(r->client);
    free(r);
    assert_int_equal(0, pl_mem_live());
}

static const char welcome_text[] =
    "{\"job\": \"000000000000002a\", \"shm\": \"yes\"}";

static void welcome(rig *r, int32_t ps, bool initialized)
{
    say_text(r, ps,
             (pl_frame) { .kind = PL_FRAME_WELCOME,
                          .sequence = r->join,
                          .value = { 0, initialized } },
             welcome_text);
}

/* A client that has joined. */
static rig *start(pl_ps_client_opts opts)
{
    rig *r = open_rig(opts);
    pl_ps_client_join(r->client);
    for (int32_t j = 0; j < (opts.ps > 0 ? opts.ps : 1); j++)
        welcome(r, j, true);
    assert_false(pl_ps_client_busy(r->client));
    r->taken = r->made = 0;
    return r;
}

static void push_all(rig *r, int64_t step)
{
    pl_ps_client_push(r->client, step, r->grad);
    pl_ps_client_ready(r->client, 0);
}

static void ps_client_new_survives_each_failed_allocation(void **state)
{
    (void)state;
    float params[FLOATS];
    pl_ps_client_opts opts = { .role = "worker",
                               .ps = 3,
                               .count = FLOATS,
                               .params = params,
                               .ops = &ops };
    pl_ps_client *client = NULL;
    assert_survives_failed_allocations(pl_ps_client_new(&client, &opts, 0),
                                       pl_ps_client_free(client));
    pl_ps_client_free(NULL);
}

static void ps_client_joins_server_0_then_the_others(void **state)
{
    (void)state;
    rig *r = open_rig((pl_ps_client_opts) {
        .ps = 2, .index = 3, .count = 32, .host = "node7", .process = 12 });
    pl_ps_client_join(r->client);
    const sent *join = expect(r, 0, PL_FRAME_JOIN);
    assert_int_equal(0, join->frame.incarnation);
    static const char *const parts[] = { "\"worker\"", "node7", "32",
                                         "memory for 0" };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_non_null(strstr(join->bytes, parts[i]));
    quiet(r);
    assert_int_equal(0, pl_ps_client_absent(r->client));
    tick(r, 199);
    quiet(r);
    tick(r, 1); /* no answer: once more */
    expect(r, 0, PL_FRAME_JOIN);
    welcome(r, 0, true);
    assert_string_equal("yes", r->answer);
    join = expect(r, 1, PL_FRAME_JOIN); /* with what server 0 gave it */
    assert_int_equal(7, join->frame.incarnation);
    assert_non_null(strstr(join->bytes, "000000000000002a"));
    assert_int_equal(1, pl_ps_client_absent(r->client));
    tick(r, 200);
    expect(
        r, 0,
        PL_FRAME_HEARTBEAT); /* it sends heartbeats while others are awaited */
    expect(r, 1, PL_FRAME_JOIN);
    assert_true(pl_ps_client_busy(r->client));
    welcome(r, 1, false); /* what all have, server 0 knows */
    assert_false(pl_ps_client_busy(r->client));
    assert_int_equal(-1, pl_ps_client_absent(r->client));
    pl_ps_client_view view = pl_ps_client_look(r->client);
    assert_int_equal(7, view.incarnation);
    assert_int_equal(42, view.job);
    assert_true(view.initialized);
    tick(r, 5000);
    quiet(r);
    close_rig(r);
}

/* Server 0 died while another server was awaited: the new one must be joined
 * before any other. */
static void ps_client_rejoins_a_restarted_server_0(void **state)
{
    (void)state;
    rig *r = open_rig((pl_ps_client_opts) { .ps = 2, .count = 32 });
    pl_ps_client_join(r->client);
    expect(r, 0, PL_FRAME_JOIN);
    pl_frame unknown = { .kind = PL_FRAME_REFUSE, .flags = PL_REFUSE_UNKNOWN };
    say_text(r, 0, unknown, ""); /* not joined yet: nothing to restart */
    quiet(r);
    welcome(r, 0, true);
    expect(r, 1, PL_FRAME_JOIN);
    tick(r, 200);
    expect(r, 0, PL_FRAME_HEARTBEAT);
    expect(r, 1, PL_FRAME_JOIN);
    say_text(r, 0, unknown, "");
    expect(r, 0, PL_FRAME_JOIN);
    quiet(r);
    assert_ok(pl_ps_client_outcome(r->client));
    welcome(r, 0, true);
    expect(r, 1, PL_FRAME_JOIN);
    close_rig(r);
}

/* What it received when it joined before may no longer hold. */
static void ps_client_ignores_the_welcome_to_an_earlier_join(void **state)
{
    (void)state;
    rig *r = open_rig((pl_ps_client_opts) { 0 });
    pl_ps_client_join(r->client);
    welcome(r, 0, false);
    uint64_t before = r->join;
    pl_ps_client_join(r->client);
    assert_true(r->join > before);
    say_text(r, 0, (pl_frame) { .kind = PL_FRAME_WELCOME, .sequence = before },
             welcome_text);
    assert_true(pl_ps_client_busy(r->client));
    welcome(r, 0, true);
    assert_true(pl_ps_client_look(r->client).initialized);
    close_rig(r);
}

static void ps_client_refusal_and_failure_end_it(void **state)
{
    (void)state;
    rig *r = open_rig((pl_ps_client_opts) { 0 });
    pl_ps_client_join(r->client);
    pl_frame refuse = { .kind = PL_FRAME_REFUSE };
    refuse.incarnation = 8; /* not ours: we have none yet */
    say_text(r, 0, refuse, "--batch is 50 here");
    assert_ok(pl_ps_client_outcome(r->client));
    pl_message message = { .frame = { .kind = PL_FRAME_REFUSE,
                                      .payload_bytes = 4 },
                           .payload = "--lr" };
    pl_ps_client_receive(r->client, 0, &message, r->now_ns);
    assert_fails(PL_CLOSED, "ps 0: --lr", pl_ps_client_outcome(r->client));
    close_rig(r);
    r = start((pl_ps_client_opts) { 0 });
    say_text(r, 0, (pl_frame) { .kind = PL_FRAME_OVER }, "");
    assert_ok(pl_ps_client_outcome(r->client));
    say_text(r, 0,
             (pl_frame) { .kind = PL_FRAME_OVER, .flags = PL_STOP_FAILED },
             "worker 2 was lost");
    assert_fails(PL_CLOSED, "the job ended: worker 2 was lost",
                 pl_ps_client_outcome(r->client));
    close_rig(r);
}

static void ps_client_init_sends_parameters(void **state)
{
    (void)state;
    rig *r = open_rig((pl_ps_client_opts) { 0 });
    pl_ps_client_join(r->client);
    welcome(r, 0, false);
    r->taken = r->made = 0;
    for (int i = 0; i < 4; i++)
        r->params[i] = 1.0f;
    pl_ps_client_init(r->client, 5);
    const sent *s = expect(r, 0, PL_FRAME_INIT);
    assert_int_equal(5, s->frame.step);
    assert_memory_equal(r->params, s->bytes, 16);
    quiet(r);
    ack(r, 0, PL_ACK_DONE);
    assert_false(pl_ps_client_busy(r->client));
    close_rig(r);
}

/* It admitted us, then it was restarted: what it gave us is void. */
static void ps_client_rejoins_server_0_restarted_during_the_join(void **state)
{
    (void)state;
    rig *r = open_rig((pl_ps_client_opts) { .ps = 2, .count = 32 });
    pl_ps_client_join(r->client);
    expect(r, 0, PL_FRAME_JOIN);
    welcome(r, 0, false);
    expect(r, 1, PL_FRAME_JOIN);
    say(r, 0,
        (pl_frame) { .kind = PL_FRAME_REFUSE, .flags = PL_REFUSE_UNKNOWN },
        NULL);
    expect(r, 0, PL_FRAME_JOIN);
    quiet(r);
    close_rig(r);
}

/* Counts, then the plan; a server that lost it gets it again. */
static void ps_client_plan_goes_to_all_servers(void **state)
{
    (void)state;
    static const char plan[] = "{\"folder\": \"f\"}";
    const int64_t counts[1] = { 9 };
    rig *r = start((pl_ps_client_opts) { .ps = 2, .count = 32, .workers = 1 });
    pl_ps_client_load(r->client, 5, counts, plan);
    for (int32_t ps = 0; ps < 2; ps++) {
        const sent *s = expect(r, ps, PL_FRAME_LOAD);
        assert_int_equal(5, s->frame.step);
        assert_int_equal(sizeof counts + strlen(plan), s->frame.payload_bytes);
        assert_memory_equal(counts, s->bytes, sizeof counts);
        assert_memory_equal(plan, s->bytes + sizeof counts, strlen(plan));
    }
    ack(r, 1, PL_ACK_DONE);
    tick(r, 2000);
    expect(r, 0, PL_FRAME_LOAD);
    expect(r, 1, PL_FRAME_HEARTBEAT);
    quiet(r);
    ack(r, 0, PL_ACK_DONE);
    assert_false(pl_ps_client_busy(r->client));
    int64_t before = 0;
    for (int i = 0; i < 2; i++) { /* each has a number of its own */
        pl_ps_client_save(r->client, 6, plan);
        int64_t number = expect(r, 0, PL_FRAME_SAVE)->frame.value[0];
        assert_int_equal(number, expect(r, 1, PL_FRAME_SAVE)->frame.value[0]);
        assert_true(number > before);
        before = number;
        ack(r, 0, PL_ACK_DONE);
        ack(r, 1, PL_ACK_DONE);
        assert_false(pl_ps_client_busy(r->client));
    }
    close_rig(r);
}

static void ps_client_receives_the_outcome_of_a_save(void **state)
{
    (void)state;
    rig *r = start((pl_ps_client_opts) { 0 });
    static const struct {
        int64_t told;
        pl_saved heard;
    } cases[] = {
        { PL_SAVED_GOOD, PL_SAVED_GOOD },
        { PL_SAVED_WRITING, PL_SAVED_WRITING },
        { PL_SAVED_NUMERIC, PL_SAVED_NUMERIC },
        { PL_SAVED_FAILED, PL_SAVED_FAILED },
        { 77, PL_SAVED_FAILED },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_ps_client_look_saved(r->client, i % 2 == 0);
        assert_int_equal(i % 2 == 0 ? PL_SAVE_WAIT : PL_SAVE_LOOK,
                         expect(r, 0, PL_FRAME_SAVE)->frame.flags);
        say_text(r, 0,
                 (pl_frame) { .kind = PL_FRAME_ACK,
                              .flags = PL_ACK_DONE,
                              .sequence = r->sequence[0],
                              .value = { cases[i].told } },
                 "why");
        assert_false(pl_ps_client_busy(r->client));
        pl_ps_client_view view = pl_ps_client_look(r->client);
        assert_int_equal(cases[i].heard, view.saved);
        assert_string_equal("why", view.why);
    }
    close_rig(r);
}

/* Gradients become ready from the end; each piece leaves as soon as it may. */
static void ps_client_push_sends_what_is_ready(void **state)
{
    (void)state;
    rig *r = start((pl_ps_client_opts) { .count = 16, .piece = 4 });
    pl_ps_client_push(r->client, 3, r->grad);
    quiet(r);
    tick(r, 2000); /* nothing was sent: there is nothing to ask about */
    quiet(r);
    pl_ps_client_ready(r->client, 9);
    assert_int_equal(12, expect(r, 0, PL_FRAME_PUSH)->frame.first);
    quiet(r);
    pl_ps_client_ready(r->client, 4);
    assert_int_equal(8, expect(r, 0, PL_FRAME_PUSH)->frame.first);
    assert_int_equal(4, expect(r, 0, PL_FRAME_PUSH)->frame.first);
    pl_ps_client_ready(r->client, 0);
    const sent *last = expect(r, 0, PL_FRAME_PUSH);
    assert_int_equal(0, last->frame.first);
    assert_int_equal(3, last->frame.step);
    assert_int_equal(1, last->frame.sequence);
    quiet(r);
    close_rig(r);
}

static void ps_client_keeps_to_the_window(void **state)
{
    (void)state;
    rig *r = start((pl_ps_client_opts) { .count = 48, .piece = 4 });
    assert_true(pl_ps_client_windowed(r->client));
    push_all(r, 0);
    for (int p = 0; p < PL_PIECE_WINDOW; p++)
        assert_int_equal(44 - 4 * p, expect(r, 0, PL_FRAME_PUSH)->frame.first);
    quiet(r);
    pl_frame got = {
        .kind = PL_FRAME_ACK, .sequence = 1, .first = 40, .value = { 0, 4 }
    };
    say(r, 0, got, NULL);
    assert_int_equal(12, expect(r, 0, PL_FRAME_PUSH)->frame.first);
    say(r, 0, got, NULL);
    quiet(r);
    got.first = 41; /* no piece of ours */
    say(r, 0, got, NULL);
    quiet(r);
    ack(r, 0, PL_ACK_NEED); /* all that was not acknowledged, again */
    static const int64_t again[] = { 44, 36, 32, 28, 24, 20, 16, 12 };
    for (int i = 0; i < 8; i++)
        assert_int_equal(again[i], expect(r, 0, PL_FRAME_PUSH)->frame.first);
    quiet(r);
    close_rig(r);
}

static void ps_client_probes_after_a_second_of_silence(void **state)
{
    (void)state;
    rig *r = start((pl_ps_client_opts) { 0 });
    push_all(r, 0);
    expect(r, 0, PL_FRAME_PUSH);
    tick(r, 999);
    quiet(r);
    tick(r, 1);
    const sent *probe = expect(r, 0, PL_FRAME_PUSH);
    assert_int_equal(0, probe->frame.count);
    assert_int_equal(1, probe->frame.sequence);
    quiet(r);
    ack(r, 0, PL_ACK_COMPLETE); /* it is there; keep waiting */
    tick(r, 999);
    quiet(r);
    tick(r, 1);
    expect(r, 0, PL_FRAME_PUSH);
    ack(r, 0, PL_ACK_COMPLETE);
    ack(r, 0, PL_ACK_NEED); /* reordered: what is complete is not resent */
    quiet(r);
    send_params(r, 0, 1, 0, 0, 4, 5.0f);
    assert_false(pl_ps_client_busy(r->client));
    assert_true(r->params[3] == 5.0f);
    tick(r, 5000);
    quiet(r);
    close_rig(r);
}

/* Server 0 cannot say that a checkpoint is complete: server 1 was restarted
 * while no request of ours was waiting for it. */
static void ps_client_finds_a_restarted_server_it_does_not_wait_for(
    void **state)
{
    (void)state;
    rig *r = start((pl_ps_client_opts) { .ps = 2, .count = 32 });
    tick(r, 5000);
    quiet(r); /* without a request nothing is probed */
    pl_ps_client_look_saved(r->client, true);
    expect(r, 0, PL_FRAME_SAVE);
    tick(r, 1000);
    expect(r, 0, PL_FRAME_SAVE);
    const sent *probe = expect(r, 1, PL_FRAME_HEARTBEAT);
    pl_frame unknown = pl_ps_refuse_encode(true, probe->frame.sequence);
    unknown.incarnation = probe->frame.incarnation;
    say(r, 1, unknown, NULL);
    expect(r, 1, PL_FRAME_JOIN);
    quiet(r);
    close_rig(r);
}

/* Q3 */
static void ps_client_ignores_messages_for_others(void **state)
{
    (void)state;
    rig *r = start((pl_ps_client_opts) { 0 });
    push_all(r, 0);
    r->taken = r->made;
    pl_frame params = { .kind = PL_FRAME_PARAMS,
                        .incarnation = 6,
                        .sequence = 1,
                        .count = 4,
                        .payload_bytes = 16 };
    say(r, 0, params, r->grad); /* of an earlier life */
    params.incarnation = 7;
    params.sequence = 2; /* of no request of ours */
    say(r, 0, params, r->grad);
    params.sequence = 0;
    say(r, 0, params, r->grad);
    assert_false(pl_ps_client_answered(r->client));
    assert_true(pl_ps_client_busy(r->client));
    assert_ok(pl_ps_client_outcome(r->client));
    quiet(r);
    close_rig(r);
}

static void ps_client_refuses_parameters_that_do_not_fit(void **state)
{
    (void)state;
    static const struct {
        int64_t first;
        uint32_t count;
    } wrong[] = { { 0, 3 }, { 1, 3 }, { -4, 4 }, { 4, 4 }, { INT64_MAX, 4 } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        rig *r = start((pl_ps_client_opts) { 0 });
        push_all(r, 0);
        say(r, 0,
            (pl_frame) { .kind = PL_FRAME_PARAMS,
                         .sequence = 1,
                         .first = wrong[i].first,
                         .count = wrong[i].count,
                         .payload_bytes = wrong[i].count * 4 },
            r->grad);
        assert_fails(PL_CLOSED, "ps 0 sent parameters that are not its own",
                     pl_ps_client_outcome(r->client));
        close_rig(r);
    }
}

/* The worker would train on with the parameters of an earlier answer. */
static void ps_client_refuses_an_answer_without_parameters(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        bool pull = i % 2 == 1, acked = i >= 2;
        rig *r = start((pl_ps_client_opts) { 0 });
        if (pull)
            pl_ps_client_pull(r->client, 0, 0);
        else
            push_all(r, 7);
        r->sequence[0] = 1;
        if (acked)
            ack(r, 0, PL_ACK_DONE);
        else
            send_params(r, 0, 8, pull ? PL_ANSWER_STOP : 0, 0, 0, 0.0f);
        assert_fails(PL_CLOSED,
                     !acked ? "ps 0 sent parameters that are not its own"
                     : pull ? "ps 0 ended a pull without its parameters"
                            : "ps 0 ended a push without its parameters",
                     pl_ps_client_outcome(r->client));
        close_rig(r);
    }
}

static void ps_client_takes_reports_from_server_0_alone(void **state)
{
    (void)state;
    rig *r = start((pl_ps_client_opts) { .ps = 2, .count = 32 });
    pl_ps_client_save(r->client, 1, "{}");
    ack(r, 0, PL_ACK_DONE);
    ack(r, 1, PL_ACK_DONE);
    pl_ps_client_bye(r->client, "{}");
    for (int32_t ps = 1; ps >= 0; ps--) {
        assert_true(pl_ps_client_busy(r->client));
        say(r, ps,
            (pl_frame) { .kind = PL_FRAME_REPORT, .sequence = r->sequence[ps] },
            NULL);
    }
    assert_false(pl_ps_client_busy(r->client));
    assert_string_equal("", pl_ps_client_look(r->client).report);
    close_rig(r);
}

/* 12 pieces; those of a newer step replace what came of an older one. */
static void ps_client_newer_step_replaces_an_older_half(void **state)
{
    (void)state;
    rig *r = start((pl_ps_client_opts) { .count = 48, .piece = 4 });
    pl_ps_client_pull(r->client, 0, 0);
    expect(r, 0, PL_FRAME_PULL);
    for (int p = 0; p < 8; p++)
        send_params(r, 0, 1, 0, 4 * p, 4, 1.0f);
    assert_true(pl_ps_client_have(r->client, 0, 32));
    assert_false(pl_ps_client_have(r->client, 0, 33));
    send_params(r, 0, 2, 0, 0, 4, 2.0f);
    assert_true(pl_ps_client_have(r->client, 0, 4));
    assert_false(pl_ps_client_have(r->client, 0, 5));
    send_params(r, 0, 1, 0, 4, 4, 1.0f); /* late: of the older one */
    assert_false(pl_ps_client_have(r->client, 4, 1));
    for (int p = 1; p < 12; p++)
        send_params(r, 0, 2, 0, 4 * p, 4, 2.0f);
    assert_false(pl_ps_client_busy(r->client));
    for (int i = 0; i < 48; i++)
        assert_true(r->params[i] == 2.0f);
    assert_int_equal(2, pl_ps_client_look(r->client).step);
    /* Each piece was acknowledged, with the step it is of; not the late one. */
    for (int i = 0; i < 20; i++)
        assert_int_equal(i < 8 ? 1 : 2, expect(r, 0, PL_FRAME_ACK)->frame.step);
    quiet(r);
    /* One that comes twice is acknowledged again, or the server waits. */
    send_params(r, 0, 2, 0, 0, 4, 2.0f);
    expect(r, 0, PL_FRAME_ACK);
    close_rig(r);
}

/* Server 1 answered with an older step: it is asked for the newer one. (Q4) */
static void ps_client_levels_servers_that_are_behind(void **state)
{
    (void)state;
    rig *r = start((pl_ps_client_opts) { .ps = 2, .count = 32 });
    push_all(r, 4);
    expect(r, 1, PL_FRAME_PUSH); /* from the end */
    expect(r, 0, PL_FRAME_PUSH);
    send_params(r, 1, 4, PL_ANSWER_DROPPED, 16, 16, 4.0f);
    send_params(r, 0, 5, 0, 0, 16, 5.0f);
    const sent *pull = expect(r, 1, PL_FRAME_PULL);
    assert_int_equal(5, pull->frame.value[0]);
    assert_int_equal(2, pull->frame.sequence);
    quiet(r);
    assert_true(pl_ps_client_busy(r->client));
    assert_true(pl_ps_client_have(r->client, 0, 16));
    assert_int_equal(1, pl_ps_client_missing(r->client, 0, 32));
    send_params(r, 1, 5, 0, 16, 16, 5.0f);
    assert_false(pl_ps_client_busy(r->client));
    assert_true(r->params[31] == 5.0f);
    assert_int_equal(0, pl_ps_client_look(r->client).answer);
    close_rig(r);
}

static void ps_client_async_takes_what_each_server_has(void **state)
{
    (void)state;
    rig *r = start(
        (pl_ps_client_opts) { .ps = 2, .count = 32, .mode = PL_PS_ASYNC });
    push_all(r, 4);
    r->taken = r->made;
    send_params(r, 1, 9, 0, 16, 16, 9.0f);
    assert_false(pl_ps_client_answered(r->client)); /* server 0 decides */
    send_params(r, 0, 5, 0, 0, 16, 5.0f);
    assert_true(pl_ps_client_answered(r->client));
    assert_false(pl_ps_client_busy(r->client));
    assert_int_equal(5, pl_ps_client_look(r->client).step);
    quiet(r);
    close_rig(r);
}

/* A pull that goes to server 0 first gets no newer part from it than from the
 * others. */
static void ps_client_pull_goes_to_server_0_first(void **state)
{
    (void)state;
    rig *r = start((pl_ps_client_opts) { .ps = 2, .count = 32 });
    pl_ps_client_pull(r->client, PL_PULL_FINAL, 3);
    const sent *pull = expect(r, 0, PL_FRAME_PULL);
    assert_int_equal(PL_PULL_FINAL, pull->frame.flags);
    assert_int_equal(3, pull->frame.value[0]);
    quiet(r);
    assert_false(pl_ps_client_have(r->client, 0, 1));
    send_params(r, 0, 6, PL_ANSWER_STOP, 0, 16, 6.0f);
    pull = expect(r, 1, PL_FRAME_PULL);
    assert_int_equal(6, pull->frame.value[0]); /* of the same step */
    assert_int_equal(1, pl_ps_client_awaited(r->client));
    send_params(r, 1, 6, 0, 16, 16, 6.0f);
    assert_false(pl_ps_client_busy(r->client));
    assert_int_equal(PL_ANSWER_STOP, pl_ps_client_look(r->client).answer);
    close_rig(r);
}

static void ps_client_answer_without_parameters_ends_a_push(void **state)
{
    (void)state;
    rig *r = start((pl_ps_client_opts) { 0 });
    push_all(r, 7);
    send_params(r, 0, 8, PL_ANSWER_STOP | PL_ANSWER_DROPPED, 0, 0, 0.0f);
    assert_false(pl_ps_client_busy(r->client));
    pl_ps_client_view view = pl_ps_client_look(r->client);
    assert_int_equal(PL_ANSWER_STOP | PL_ANSWER_DROPPED, view.answer);
    assert_int_equal(8, view.step);
    close_rig(r);
}

static void ps_client_small_requests_are_repeated_until_done(void **state)
{
    (void)state;
    rig *r = start((pl_ps_client_opts) { .ps = 2, .count = 32 });
    pl_ps_client_pause(r->client);
    expect(r, 0, PL_FRAME_PAUSE);
    quiet(r); /* server 0 alone */
    tick(r, 1000);
    assert_int_equal(1, expect(r, 0, PL_FRAME_PAUSE)->frame.sequence);
    expect(r, 1, PL_FRAME_HEARTBEAT); /* is it still the same? */
    ack(r, 0, PL_ACK_DONE);
    assert_false(pl_ps_client_busy(r->client));
    pl_ps_client_stop(r->client, false, "stop_loss");
    assert_string_equal("stop_loss", expect(r, 0, PL_FRAME_STOP)->bytes);
    tick(r, 1000);
    assert_string_equal("stop_loss", expect(r, 0, PL_FRAME_STOP)->bytes);
    expect(r, 1, PL_FRAME_HEARTBEAT);
    ack(r, 0, PL_ACK_DONE);
    pl_ps_client_bye(r->client, "{\"steps\": 3}");
    assert_string_equal("{\"steps\": 3}", expect(r, 0, PL_FRAME_BYE)->bytes);
    pl_frame report = { .kind = PL_FRAME_REPORT,
                        .sequence = r->sequence[0],
                        .step = 12,
                        .value = { 4, 5000 } };
    say_text(r, 0, report, "{\"workers\": []}");
    assert_int_equal(report.sequence,
                     expect(r, 0, PL_FRAME_ACK)->frame.sequence);
    pl_ps_client_view view = pl_ps_client_look(r->client);
    assert_string_equal("{\"workers\": []}", view.report);
    assert_int_equal(12, view.step);
    assert_int_equal(4, view.dropped);
    assert_int_equal(5000, view.update_ns);
    assert_false(pl_ps_client_busy(r->client));
    say_text(r, 0, report, "{}"); /* doubled */
    assert_string_equal("{\"workers\": []}",
                        pl_ps_client_look(r->client).report);
    close_rig(r);
}

static void ps_client_abort_reaches_server_0_during_a_request(void **state)
{
    (void)state;
    rig *r = start((pl_ps_client_opts) { 0 });
    push_all(r, 0);
    expect(r, 0, PL_FRAME_PUSH);
    pl_ps_client_abort(r->client, "out of memory");
    const sent *stop = expect(r, 0, PL_FRAME_STOP);
    assert_int_equal(PL_STOP_FAILED, stop->frame.flags);
    assert_int_equal(2, stop->frame.sequence); /* newer than the push */
    assert_int_equal(7, stop->frame.incarnation);
    assert_string_equal("out of memory", stop->bytes);
    quiet(r);
    close_rig(r);
}

UNIT_TESTS(
    cmocka_unit_test(ps_client_new_survives_each_failed_allocation),
    cmocka_unit_test(ps_client_joins_server_0_then_the_others),
    cmocka_unit_test(ps_client_rejoins_a_restarted_server_0),
    cmocka_unit_test(ps_client_ignores_the_welcome_to_an_earlier_join),
    cmocka_unit_test(ps_client_refusal_and_failure_end_it),
    cmocka_unit_test(ps_client_init_sends_parameters),
    cmocka_unit_test(ps_client_rejoins_server_0_restarted_during_the_join),
    cmocka_unit_test(ps_client_plan_goes_to_all_servers),
    cmocka_unit_test(ps_client_receives_the_outcome_of_a_save),
    cmocka_unit_test(ps_client_push_sends_what_is_ready),
    cmocka_unit_test(ps_client_keeps_to_the_window),
    cmocka_unit_test(ps_client_probes_after_a_second_of_silence),
    cmocka_unit_test(ps_client_finds_a_restarted_server_it_does_not_wait_for),
    cmocka_unit_test(ps_client_ignores_messages_for_others),
    cmocka_unit_test(ps_client_refuses_parameters_that_do_not_fit),
    cmocka_unit_test(ps_client_refuses_an_answer_without_parameters),
    cmocka_unit_test(ps_client_takes_reports_from_server_0_alone),
    cmocka_unit_test(ps_client_newer_step_replaces_an_older_half),
    cmocka_unit_test(ps_client_levels_servers_that_are_behind),
    cmocka_unit_test(ps_client_async_takes_what_each_server_has),
    cmocka_unit_test(ps_client_pull_goes_to_server_0_first),
    cmocka_unit_test(ps_client_answer_without_parameters_ends_a_push),
    cmocka_unit_test(ps_client_small_requests_are_repeated_until_done),
    cmocka_unit_test(ps_client_abort_reaches_server_0_during_a_request))
