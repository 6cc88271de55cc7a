/* Frames in shared memory: their room, and false counts.
 *
 * Invariants and the tests that check them:
 *   ring N1  ring_holds_frames_up_to_its_slots,
 *            ring_holds_payloads_up_to_its_room, ring_wraps_around
 *   ring N2  ring_notices_impossible_counts
 *   ring N3  ring_reports_when_its_reader_sleeps */
#include "net/shm/ring.h"
#include "support/unit.h"

#include <stdlib.h>

typedef struct pair {
    pl_ring_memory *memory;
    pl_ring_writer writer;
    pl_ring_reader reader;
} pair;

static int pair_make(void **state)
{
    pair *p = calloc(1, sizeof *p);
    p->memory = aligned_alloc(PL_CACHE_LINE, sizeof *p->memory);
    memset(p->memory, 0, sizeof *p->memory);
    p->writer.memory = p->reader.memory = p->memory;
    *state = p;
    return 0;
}

static int pair_free(void **state)
{
    pair *p = *state;
    free(p->memory);
    free(p);
    return 0;
}

/* Put a frame that carries `bytes` times the low byte of its number. */
static pl_status put(pair *p, uint64_t number, uint32_t bytes)
{
    static uint8_t payload[PL_RING_INLINE + 1];
    bool asleep = false;
    memset(payload, (int)(number & 0xff), bytes);
    pl_frame frame = { .kind = PL_FRAME_PUSH,
                       .sequence = number,
                       .payload_bytes = bytes };
    return pl_ring_put(&p->writer, &frame, PL_PAYLOAD_INLINE, payload, 0,
                       &asleep);
}

static void expect(pair *p, uint64_t number, uint32_t bytes)
{
    pl_ring_slot slot;
    pl_frame frame;
    assert_ok(pl_ring_peek(&p->reader, &slot));
    assert_ok(pl_frame_read(&frame, slot.frame, sizeof slot.frame, slot.bytes));
    assert_int_equal(number, frame.sequence);
    assert_int_equal(bytes, slot.bytes);
    assert_true(slot.offset + slot.bytes <= PL_RING_INLINE);
    assert_int_equal(0, slot.offset % 8);
    for (uint32_t i = 0; i < bytes; i++)
        assert_int_equal((uint8_t)number, p->memory->room[slot.offset + i]);
    pl_ring_advance(&p->reader);
}

static void ring_holds_frames_up_to_its_slots(void **state)
{
    pair *p = *state;
    pl_ring_slot slot;
    assert_int_equal(PL_AGAIN, pl_ring_peek(&p->reader, &slot));
    for (uint64_t i = 0; i < PL_RING_SLOTS; i++)
        assert_ok(put(p, i, 8));
    assert_int_equal(PL_AGAIN, put(p, 0, 8));
    expect(p, 0, 8);
    assert_ok(put(p, PL_RING_SLOTS, 8));
    for (uint64_t i = 1; i <= PL_RING_SLOTS; i++)
        expect(p, i, 8);
    assert_true(pl_ring_empty(&p->reader));
}

static void ring_holds_payloads_up_to_its_room(void **state)
{
    pair *p = *state;
    assert_int_equal(PL_AGAIN, put(p, 1, PL_RING_INLINE + 1));
    assert_ok(put(p, 1, PL_RING_INLINE));
    assert_int_equal(PL_AGAIN, put(p, 2, 1));
    expect(p, 1, PL_RING_INLINE);
    assert_ok(put(p, 2, 40000));
    /* Not in one piece behind it, and not before it yet. */
    assert_int_equal(PL_AGAIN, put(p, 3, 30000));
    assert_ok(put(p, 3, 20000));
    expect(p, 2, 40000);
    assert_ok(put(p, 4, 30000));
    expect(p, 3, 20000);
    expect(p, 4, 30000);
}

/* A frame without a payload here does not bring back room that was freed. */
static void ring_frees_its_room_before_a_frame_without_payload(void **state)
{
    pair *p = *state;
    bool asleep = false;
    pl_frame frame = { .kind = PL_FRAME_HEARTBEAT, .sequence = 2 };
    assert_ok(put(p, 1, 40000));
    expect(p, 1, 40000);
    assert_ok(
        pl_ring_put(&p->writer, &frame, PL_PAYLOAD_NONE, NULL, 0, &asleep));
    assert_ok(put(p, 3, PL_RING_INLINE));
    expect(p, 2, 0);
    expect(p, 3, PL_RING_INLINE);
}

/* Many rounds with all fills between, also across the wrap of the counts. */
static void ring_wraps_around(void **state)
{
    pair *p = *state;
    uint32_t start = UINT32_MAX - 3000;
    p->writer.written = p->writer.read_seen = p->reader.read = start;
    atomic_store(&p->memory->written, start);
    atomic_store(&p->memory->read, start);
    uint64_t written = 0, read = 0;
    while (read < 10000) {
        uint32_t bytes = (uint32_t)(written * 2654435761u % 5000);
        if (written % 97 != 96 && put(p, written, bytes) == PL_OK) {
            written++;
            continue;
        }
        for (; read < written; read++)
            expect(p, read, (uint32_t)(read * 2654435761u % 5000));
        assert_ok(put(p, written, (uint32_t)(written * 2654435761u % 5000)));
        written++;
    }
}

static void ring_reports_when_its_reader_sleeps(void **state)
{
    pair *p = *state;
    pl_frame frame = { .kind = PL_FRAME_HEARTBEAT };
    bool asleep = true;
    assert_ok(
        pl_ring_put(&p->writer, &frame, PL_PAYLOAD_NONE, NULL, 0, &asleep));
    assert_false(asleep);
    pl_ring_sleep(&p->reader);
    assert_ok(
        pl_ring_put(&p->writer, &frame, PL_PAYLOAD_NONE, NULL, 0, &asleep));
    assert_true(asleep);
    /* One bell is enough. */
    assert_ok(
        pl_ring_put(&p->writer, &frame, PL_PAYLOAD_NONE, NULL, 0, &asleep));
    assert_false(asleep);
}

static void ring_notices_impossible_counts(void **state)
{
    pair *p = *state;
    pl_ring_slot slot;
    assert_ok(put(p, 1, 8));
    assert_ok(put(p, 2, 8));
    expect(p, 1, 8);
    assert_ok(put(p, 3, 8));
    static const uint32_t wrong[] = { 0, 4, 1000, UINT32_MAX };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        atomic_store(&p->memory->read, wrong[i]);
        assert_fails(PL_PEER, "frames read", put(p, 4, 8));
    }
    static const uint32_t ahead[] = { 0, 514, 1u << 31, UINT32_MAX };
    for (size_t i = 0; i < sizeof ahead / sizeof *ahead; i++) {
        atomic_store(&p->memory->written, ahead[i]);
        assert_fails(PL_PEER, "frames written",
                     pl_ring_peek(&p->reader, &slot));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, pair_make, pair_free)
UNIT_TESTS(TEST(ring_holds_frames_up_to_its_slots),
           TEST(ring_holds_payloads_up_to_its_room),
           TEST(ring_frees_its_room_before_a_frame_without_payload),
           TEST(ring_wraps_around), TEST(ring_reports_when_its_reader_sleeps),
           TEST(ring_notices_impossible_counts))
