/* When heartbeats are due, and what answers and silence mean.
 *
 * Invariants and the tests that check them:
 *   pulse P1  pulse_forgives_time_it_did_not_run
 *   pulse P2  pulse_keeps_its_first_verdict */
#include "sync/ps/worker/pulse.h"

#include "support/unit.h"

#define MS       INT64_C(1000000)
#define TIMEOUT  1000
#define EVERY_MS (TIMEOUT / PL_HEARTBEATS_PER_TIMEOUT)

static const pl_vital vital = { 3, PL_PHASE_COMPUTING, 1 };

static void start(pl_pulse *pulse)
{
    pl_pulse_init(pulse,
                  &(pl_pulse_opts) { .address = "node:1",
                                     .incarnation = 7,
                                     .generation = 2,
                                     .timeout_ms = TIMEOUT },
                  0);
}

/* An answer of server 0, as of this generation. */
static void answer(pl_pulse *pulse, uint32_t generation, bool failed,
                   const char *text, int64_t now_ns)
{
    pl_ps_heartbeat_ack ack = { .failed = failed };
    pl_frame frame = pl_ps_heartbeat_ack_encode(&ack);
    frame.generation = generation;
    frame.payload_bytes = (uint32_t)strlen(text);
    pl_pulse_receive(pulse, &(pl_message) { .frame = frame, .payload = text },
                     now_ns);
}

static void pulse_is_due_at_equal_intervals(void **state)
{
    (void)state;
    pl_pulse pulse;
    pl_frame frame;
    start(&pulse);
    for (int i = 0; i < 5; i++) {
        int64_t due = i * EVERY_MS * MS;
        if (i > 0)
            assert_false(pl_pulse_tick(&pulse, due - 1, &vital, &frame));
        assert_true(pl_pulse_tick(&pulse, due, &vital, &frame));
        assert_int_equal(PL_FRAME_HEARTBEAT, frame.kind);
        assert_int_equal(7, frame.incarnation);
        assert_int_equal(i + 1, pulse.number);
    }
}

static void pulse_takes_silence_for_a_loss(void **state)
{
    (void)state;
    pl_pulse pulse;
    pl_frame frame;
    start(&pulse);
    for (int64_t ms = 0; ms <= TIMEOUT; ms += EVERY_MS) {
        (void)pl_pulse_tick(&pulse, ms * MS, &vital, &frame);
        assert_ok(pl_pulse_check(&pulse, ms * MS));
    }
    assert_fails(PL_ROLLED, "ps 0 (node:1)",
                 pl_pulse_check(&pulse, (TIMEOUT + 1) * MS));
}

static void pulse_counts_any_message_as_a_sign_of_life(void **state)
{
    (void)state;
    pl_pulse pulse;
    start(&pulse);
    pl_pulse_heard(&pulse, TIMEOUT * MS);
    assert_ok(pl_pulse_check(&pulse, 2 * TIMEOUT * MS));
    answer(&pulse, 2, false, "", 2 * TIMEOUT * MS);
    assert_ok(pl_pulse_check(&pulse, 3 * TIMEOUT * MS));
}

static void pulse_forgives_time_it_did_not_run(void **state)
{
    (void)state;
    pl_pulse pulse;
    pl_frame frame;
    int64_t woken = 100 * TIMEOUT * MS;
    start(&pulse);
    assert_true(pl_pulse_tick(&pulse, 0, &vital, &frame));
    assert_true(pl_pulse_tick(&pulse, woken, &vital, &frame));
    assert_ok(pl_pulse_check(&pulse, woken));
    /* The rest of the timeout is server 0's. */
    assert_fails(PL_ROLLED, "ps 0",
                 pl_pulse_check(&pulse, woken + (TIMEOUT + 1) * MS));
}

static void pulse_learns_of_a_rollback_and_of_a_failure(void **state)
{
    (void)state;
    pl_pulse pulse;
    start(&pulse);
    answer(&pulse, 3, false, "", MS);
    assert_fails(PL_ROLLED, "last checkpoint", pl_pulse_check(&pulse, MS));
    start(&pulse);
    answer(&pulse, 2, true, "worker 1: no memory", MS);
    assert_fails(PL_CLOSED, "worker 1: no memory", pl_pulse_check(&pulse, MS));
}

static void pulse_keeps_its_first_verdict(void **state)
{
    (void)state;
    pl_pulse pulse;
    start(&pulse);
    answer(&pulse, 2, true, "the first", MS);
    answer(&pulse, 3, false, "", 2 * MS);
    answer(&pulse, 2, true, "another", 2 * MS);
    assert_fails(PL_CLOSED, "the first", pl_pulse_check(&pulse, 2 * MS));
    assert_fails(PL_CLOSED, "the first",
                 pl_pulse_check(&pulse, 9 * TIMEOUT * MS));
}

UNIT_TESTS(cmocka_unit_test(pulse_is_due_at_equal_intervals),
           cmocka_unit_test(pulse_takes_silence_for_a_loss),
           cmocka_unit_test(pulse_counts_any_message_as_a_sign_of_life),
           cmocka_unit_test(pulse_forgives_time_it_did_not_run),
           cmocka_unit_test(pulse_learns_of_a_rollback_and_of_a_failure),
           cmocka_unit_test(pulse_keeps_its_first_verdict))
