#include "job/member/messages.h"

#include "support/unit.h"

static pl_message sent(pl_frame frame, const void *payload)
{
    uint8_t bytes[PL_FRAME_BYTES];
    pl_message message = { .payload = payload };
    pl_frame_write(&frame, bytes);
    assert_ok(pl_frame_read(&message.frame, bytes, sizeof bytes,
                            frame.payload_bytes));
    return message;
}

static void messages_of_membership_survive_the_wire(void **state)
{
    (void)state;
    pl_join_message join = { .member = 3,
                             .incarnation = 77,
                             .generation = 5,
                             .attempt = 9,
                             .ready = true,
                             .fact_bytes = 4 },
                    join_out;
    pl_message message = sent(pl_join_encode(&join), "fact");
    assert_true(pl_join_decode(&join_out, &message));
    assert_int_equal(3, join_out.member);
    assert_int_equal(77, join_out.incarnation);
    assert_int_equal(5, join_out.generation);
    assert_int_equal(9, join_out.attempt);
    assert_true(join_out.ready);
    assert_memory_equal("fact", join_out.facts, join_out.fact_bytes);

    pl_heartbeat_message beat = { .member = 2,
                                  .incarnation = 8,
                                  .generation = 1,
                                  .number = 12,
                                  .vital = { 100, PL_PHASE_SAVING, 55 },
                                  .transfers = 66 },
                         beat_out;
    message = sent(pl_heartbeat_encode(&beat), NULL);
    assert_true(pl_heartbeat_decode(&beat_out, &message));
    assert_int_equal(55, beat_out.vital.progress);
    assert_int_equal(PL_PHASE_SAVING, beat_out.vital.phase);
    assert_int_equal(100, beat_out.vital.step);
    assert_int_equal(66, beat_out.transfers);
    assert_int_equal(12, beat_out.number);
    assert_int_equal(2, beat_out.member);

    pl_note_message note = { .kind = PL_FRAME_OVER,
                             .member = 1,
                             .failed = true,
                             .text_bytes = 3 },
                    note_out;
    message = sent(pl_note_encode(&note), "why");
    assert_true(pl_note_decode(&note_out, &message));
    assert_true(note_out.failed);
    assert_false(note_out.usage);
    assert_int_equal(3, note_out.text_bytes);
}

static void impossible_messages_are_refused(void **state)
{
    (void)state;
    pl_join_message join = { .member = 1, .incarnation = 1, .attempt = 1 }, out;
    pl_message message = { .frame = pl_join_encode(&join) };
    assert_true(pl_join_decode(&out, &message));
    message.frame.value[0] = -1;
    assert_false(pl_join_decode(&out, &message));
    message.frame.value[0] = (int64_t)1 << 40;
    assert_false(pl_join_decode(&out, &message));
    message.frame.value[0] = 1;
    message.frame.value[1] = 0;
    assert_false(pl_join_decode(&out, &message));
    message.frame.value[1] = 1;
    message.frame.incarnation = 0;
    assert_false(pl_join_decode(&out, &message));

    pl_heartbeat_message beat;
    message = (pl_message) { .frame = { .kind = PL_FRAME_HEARTBEAT,
                                        .flags = PL_PHASES } };
    assert_false(pl_heartbeat_decode(&beat, &message));
    pl_welcome_message welcome;
    message = (pl_message) { .frame = { .kind = PL_FRAME_WELCOME } };
    assert_false(pl_welcome_decode(&welcome, &message)); /* no generation */
}

UNIT_TESTS(cmocka_unit_test(messages_of_membership_survive_the_wire),
           cmocka_unit_test(impossible_messages_are_refused))
