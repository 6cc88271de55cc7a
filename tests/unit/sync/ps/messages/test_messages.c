#include "sync/ps/messages/messages.h"

#include "support/unit.h"

#include <string.h>

/* A message as it arrives. */
static pl_message sent(pl_frame frame, const void *payload)
{
    uint8_t bytes[PL_FRAME_BYTES];
    pl_message message = { .payload = payload };
    pl_frame_write(&frame, bytes);
    assert_ok(pl_frame_read(&message.frame, bytes, sizeof bytes,
                            frame.payload_bytes));
    return message;
}

static void assert_same(pl_frame a, pl_frame b)
{
    uint8_t left[PL_FRAME_BYTES], right[PL_FRAME_BYTES];
    pl_frame_write(&a, left);
    pl_frame_write(&b, right);
    assert_memory_equal(left, right, sizeof left);
}

static const struct {
    pl_ps_request request;
    uint32_t bytes;
} requests[] = {
    { { .kind = PL_REQUEST_INIT, .init = { 3, 40, 2 } }, 8 },
    { { .kind = PL_REQUEST_LOAD, .load = { 7 } }, 24 },
    { { .kind = PL_REQUEST_PULL,
        .pull = { .flags = PL_PULL_FINAL, .step = 9 } },
      0 },
    { { .kind = PL_REQUEST_PULL,
        .pull = { .flags = PL_PULL_PEEK, .list = 4, .key_count = 30 } },
      40 },
    { { .kind = PL_REQUEST_PULL,
        .pull = { .flags = PL_PULL_PEEK | PL_PULL_RANGE,
                  .first = 100,
                  .count = 50 } },
      0 },
    { { .kind = PL_REQUEST_PUSH,
        .push = { .step = 5, .first = 64, .count = 3, .has_data = true } },
      12 },
    { { .kind = PL_REQUEST_PUSH, .push = { .step = 5 } }, 0 },
    { { .kind = PL_REQUEST_PUSH,
        .push = { .step = 5,
                  .count = 2,
                  .has_data = true,
                  .with_list = true,
                  .of = 11,
                  .want = 12,
                  .key_count = 6 } },
      32 },
    { { .kind = PL_REQUEST_PAUSE }, 0 },
    { { .kind = PL_REQUEST_FREEZE }, 0 },
    { { .kind = PL_REQUEST_THAW }, 0 },
    { { .kind = PL_REQUEST_SAVE, .save = { 8, (int64_t)3 << 32 | 1 } }, 24 },
    { { .kind = PL_REQUEST_SAVE_STATUS, .save_status = { false } }, 0 },
    { { .kind = PL_REQUEST_SAVE_STATUS, .save_status = { true } }, 0 },
    { { .kind = PL_REQUEST_SHARE, .share = { 17, 2, true } }, 0 },
    { { .kind = PL_REQUEST_SHARE, .share = { 17, 2, false } }, 0 },
    { { .kind = PL_REQUEST_DEAL, .deal = { -1, 4 } }, 0 },
    { { .kind = PL_REQUEST_STOP, .stop = { true } }, 3 },
    { { .kind = PL_REQUEST_STOP, .stop = { false } }, 3 },
    { { .kind = PL_REQUEST_BYE }, 4 },
};

static void ps_messages_requests_survive_the_wire(void **state)
{
    (void)state;
    static const uint8_t payload[64];
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        const pl_ps_request *request = &requests[i].request;
        pl_frame frame =
            pl_ps_request_encode(request, 21 + i, requests[i].bytes);
        pl_message message = sent(frame, payload);
        pl_ps_request out;
        assert_true(pl_ps_request_decode(&out, &message));
        assert_int_equal(request->kind, out.kind);
        assert_int_equal(21 + i, message.frame.sequence);
        assert_same(frame,
                    pl_ps_request_encode(&out, 21 + i, requests[i].bytes));
    }
}

/* What a decoded request says, field by field, of the kinds that have many. */
static void ps_messages_push_and_pull_keep_their_fields(void **state)
{
    (void)state;
    static const uint8_t payload[64];
    pl_ps_request push = { .kind = PL_REQUEST_PUSH,
                           .push = { .step = 5,
                                     .count = 2,
                                     .has_data = true,
                                     .with_list = true,
                                     .of = 11,
                                     .want = 12,
                                     .key_count = 6 } },
                  pull = { .kind = PL_REQUEST_PULL,
                           .pull = { .flags = PL_PULL_RANGE,
                                     .step = 9,
                                     .first = 100,
                                     .count = 50 } },
                  out;
    pl_message message = sent(pl_ps_request_encode(&push, 1, 32), payload);
    assert_true(pl_ps_request_decode(&out, &message));
    assert_int_equal(5, out.push.step);
    assert_int_equal(11, out.push.of);
    assert_int_equal(12, out.push.want);
    assert_int_equal(6, out.push.key_count);
    assert_true(out.push.with_list && pl_ps_request_has_data(&out));
    message = sent(pl_ps_request_encode(&pull, 1, 0), NULL);
    assert_true(pl_ps_request_decode(&out, &message));
    assert_int_equal(9, out.pull.step);
    assert_int_equal(100, out.pull.first);
    assert_int_equal(50, out.pull.count);
    assert_int_equal(0, out.pull.list);
    assert_false(pl_ps_request_has_data(&out));
}

static void ps_messages_malformed_requests_are_refused(void **state)
{
    (void)state;
    static const pl_frame frames[] = {
        { .kind = PL_FRAME_ACK },
        { .kind = PL_FRAME_INIT, .step = -1 },
        { .kind = PL_FRAME_INIT, .step = INT64_MAX },
        { .kind = PL_FRAME_INIT, .value = { 1 } },
        { .kind = PL_FRAME_LOAD, .step = -1 },
        { .kind = PL_FRAME_SAVE, .step = INT64_MAX },
        { .kind = PL_FRAME_PUSH, .value = { -1 } },
        { .kind = PL_FRAME_PUSH, .value = { 0, -1 } },
        { .kind = PL_FRAME_PULL, .value = { 0, -1 } },
        { .kind = PL_FRAME_PAUSE, .flags = PL_PAUSE_FREEZE | PL_PAUSE_THAW },
        { .kind = PL_FRAME_SHARE, .value = { -1 } },
        { .kind = PL_FRAME_SHARE, .value = { 0, -1 } },
        { .kind = PL_FRAME_SHARE, .value = { 0, INT64_C(1) << 32 } },
        { .kind = PL_FRAME_SHARE, .flags = PL_SHARE_DEAL, .value = { -2 } },
        { .kind = PL_FRAME_SHARE, .flags = PL_SHARE_DEAL, .value = { 0, -1 } },
    };
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
        pl_message message = { .frame = frames[i] };
        pl_ps_request out;
        assert_false(pl_ps_request_decode(&out, &message));
    }
}

static void ps_messages_answers_survive_the_wire(void **state)
{
    (void)state;
    static const uint8_t payload[64];
    pl_ps_params params = { PL_ANSWER_STOP, 4, 32, 2, 5, 6, 0 }, params_out;
    pl_frame frame = pl_ps_params_encode(&params);
    pl_message message = sent(frame, payload);
    assert_true(pl_ps_params_decode(&params_out, &message));
    assert_int_equal(5, params_out.made);
    assert_int_equal(6, params_out.own);
    assert_int_equal(2 * sizeof(float), params_out.bytes);
    assert_same(frame, pl_ps_params_encode(&params_out));
    params.bytes = 5; /* encoded */
    pl_message encoded = sent(pl_ps_params_encode(&params), payload);
    assert_true(pl_ps_params_decode(&params_out, &encoded));
    assert_int_equal(5, params_out.bytes);
    message.frame.payload_bytes++; /* more than its floats */
    assert_false(pl_ps_params_decode(&params_out, &message));

    for (int kind = PL_ACKED_PIECE; kind <= PL_ACKED_DONE; kind++) {
        pl_ps_ack ack = { (pl_ps_ack_kind)kind, 8, 4, 3 }, ack_out;
        message = sent(pl_ps_ack_encode(&ack), NULL);
        assert_true(pl_ps_ack_decode(&ack_out, &message));
        assert_int_equal(kind, ack_out.kind);
        assert_int_equal(8, ack_out.first);
        assert_int_equal(4, ack_out.count);
        assert_int_equal(3, ack_out.step);
    }

    pl_ps_share_answer share = { 2, 33 }, share_out;
    message = sent(pl_ps_share_answer_encode(&share), NULL);
    assert_true(pl_ps_share_answer_decode(&share_out, &message));
    assert_int_equal(2, share_out.worker);
    assert_int_equal(33, share_out.own);

    pl_ps_report report = { 9, 2, 77 }, report_out;
    message = sent(pl_ps_report_encode(&report), NULL);
    assert_true(pl_ps_report_decode(&report_out, &message));
    assert_int_equal(77, report_out.update_ns);
    assert_int_equal(2, report_out.dropped);
}

static void ps_messages_deals_name_workers_of_the_job(void **state)
{
    (void)state;
    uint8_t payload[PL_DEAL_ANSWER_MOST];
    pl_ps_deal_answer answer = { .deal = { .step = 6, .epoch = 2 } }, out;
    pl_workers_add(&answer.deal.workers, 0);
    pl_workers_add(&answer.deal.workers, 69);
    pl_workers_add(&answer.present, 69);
    pl_frame frame = pl_ps_deal_answer_encode(&answer, 70, payload);
    pl_message message = sent(frame, payload);
    assert_true(pl_ps_deal_answer_decode(&out, &message, 70));
    assert_int_equal(6, out.deal.step);
    assert_int_equal(2, out.deal.epoch);
    assert_true(pl_workers_equal(&answer.deal.workers, &out.deal.workers));
    assert_true(pl_workers_equal(&answer.present, &out.present));
    assert_false(pl_ps_deal_answer_decode(&out, &message, 69)); /* not one */
    assert_false(pl_ps_deal_answer_decode(&out, &message, 64));
}

static void ps_messages_of_servers_survive_the_wire(void **state)
{
    (void)state;
    pl_ps_have have = { 3, 14, 0xffff0001u, 99 }, have_out;
    pl_message message = sent(pl_ps_have_encode(&have), NULL);
    assert_true(pl_ps_have_decode(&have_out, &message));
    assert_int_equal(0xffff0001u, have_out.incarnation);
    assert_int_equal(99, have_out.push);
    assert_int_equal(14, have_out.step);
    message.frame.value[0] = -1;
    assert_false(pl_ps_have_decode(&have_out, &message));

    pl_ps_verdict verdict = { 3, 7, 99, true, 1 }, verdict_out;
    message = sent(pl_ps_verdict_encode(&verdict), NULL);
    assert_true(pl_ps_verdict_decode(&verdict_out, &message));
    assert_same(pl_ps_verdict_encode(&verdict),
                pl_ps_verdict_encode(&verdict_out));
    message.frame.value[1] = INT64_MAX;
    assert_false(pl_ps_verdict_decode(&verdict_out, &message));

    pl_ps_saved saved = { 12, PL_SAVED_NUMERIC, 3, 4096, 0xfedcba98u },
                saved_out;
    message = sent(pl_ps_saved_encode(&saved), NULL);
    assert_true(pl_ps_saved_decode(&saved_out, &message));
    assert_same(pl_ps_saved_encode(&saved), pl_ps_saved_encode(&saved_out));
    message.frame.flags = PL_SAVED_WRITING; /* a reported part is not */
    assert_true(pl_ps_saved_decode(&saved_out, &message));
    assert_int_equal(PL_SAVED_FAILED, saved_out.outcome);
    message.frame.value[1] = -1;
    assert_false(pl_ps_saved_decode(&saved_out, &message));

    pl_ps_heartbeat heartbeat = { 6, true, { 5, PL_PHASE_SAVING, 8 } },
                    heartbeat_out;
    message = sent(pl_ps_heartbeat_encode(&heartbeat), NULL);
    assert_true(pl_ps_heartbeat_decode(&heartbeat_out, &message));
    assert_int_equal(PL_PHASE_SAVING, heartbeat_out.vital.phase);
    assert_int_equal(8, heartbeat_out.vital.progress);
    assert_true(heartbeat_out.final);
    message.frame.value[0] = PL_PHASES;
    assert_false(pl_ps_heartbeat_decode(&heartbeat_out, &message));
}

static void ps_messages_plan_follows_the_counts(void **state)
{
    (void)state;
    char payload[2 * sizeof(int64_t) + 4];
    int64_t counts[2] = { 5, ~INT64_C(6) };
    pl_ps_plan plan;
    memcpy(payload, counts, sizeof counts);
    memcpy(payload + sizeof counts, "plan", 4);
    pl_message message = { .frame = { .kind = PL_FRAME_SAVE,
                                      .payload_bytes = sizeof payload },
                           .payload = payload };
    assert_true(pl_ps_plan_decode(&plan, &message, 2));
    assert_memory_equal(counts, plan.counts, sizeof counts);
    assert_int_equal(4, plan.text_bytes);
    assert_memory_equal("plan", plan.text, 4);
    message.frame.payload_bytes = sizeof counts; /* no plan */
    assert_false(pl_ps_plan_decode(&plan, &message, 2));
}

UNIT_TESTS(cmocka_unit_test(ps_messages_requests_survive_the_wire),
           cmocka_unit_test(ps_messages_push_and_pull_keep_their_fields),
           cmocka_unit_test(ps_messages_malformed_requests_are_refused),
           cmocka_unit_test(ps_messages_answers_survive_the_wire),
           cmocka_unit_test(ps_messages_deals_name_workers_of_the_job),
           cmocka_unit_test(ps_messages_of_servers_survive_the_wire),
           cmocka_unit_test(ps_messages_plan_follows_the_counts))
