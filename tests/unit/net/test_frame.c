#include "net/frame.h"
#include "support/unit.h"

static const pl_frame sample = {
    .kind = PL_FRAME_PUSH,
    .flags = 0x81,
    .generation = 0x01020304,
    .incarnation = 5,
    .sequence = 0x1122334455667788,
    .step = -2,
    .first = 0x100000000,
    .count = 3,
    .key_count = 2,
    .value = { 7, INT64_MIN },
    .payload_bytes = 28,
};

/* The bytes of `sample` as docs/formats/wire.md lists them. */
static const uint8_t golden[PL_FRAME_BYTES] = {
    'P',  'L',  'N',  '1',  0x02, 0x00, 0x06, 0x81, /* version, kind, flags */
    0x04, 0x03, 0x02, 0x01, 0x05, 0x00, 0x00, 0x00, /* generation, inc. */
    0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, /* sequence */
    0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, /* step */
    0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, /* first */
    0x03, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, /* count, key_count */
    0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* value[0] */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, /* value[1] */
    0x1c, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* payload, reserved */
};

static void frame_has_the_bytes_of_version_2(void **state)
{
    (void)state;
    uint8_t bytes[PL_FRAME_BYTES];
    memset(bytes, 0xaa, sizeof bytes);
    pl_frame_write(&sample, bytes);
    assert_memory_equal(golden, bytes, sizeof bytes);
}

static void frame_reads_what_was_written(void **state)
{
    (void)state;
    pl_frame read;
    assert_ok(pl_frame_read(&read, golden, sizeof golden, 28));
    assert_int_equal(sample.kind, read.kind);
    assert_int_equal(sample.flags, read.flags);
    assert_int_equal(sample.generation, read.generation);
    assert_int_equal(sample.incarnation, read.incarnation);
    assert_true(sample.sequence == read.sequence);
    assert_true(sample.step == read.step && sample.first == read.first);
    assert_int_equal(sample.count, read.count);
    assert_int_equal(sample.key_count, read.key_count);
    assert_true(sample.value[0] == read.value[0]);
    assert_true(sample.value[1] == read.value[1]);
    assert_int_equal(sample.payload_bytes, read.payload_bytes);
}

/* Read `golden` with one byte changed and `payload` bytes after it. */
static pl_status read_changed(size_t at, uint8_t value, size_t payload)
{
    uint8_t bytes[PL_FRAME_BYTES];
    pl_frame frame;
    memcpy(bytes, golden, sizeof bytes);
    bytes[at] = value;
    return pl_frame_read(&frame, bytes, sizeof bytes, payload);
}

static void frame_refuses_foreign_bytes(void **state)
{
    (void)state;
    pl_frame frame;
    assert_fails(PL_FORMAT, "PLN1", read_changed(0, 'p', 28));
    assert_fails(PL_FORMAT, "kind 0", read_changed(6, 0, 28));
    assert_fails(PL_FORMAT, "kind 30", read_changed(6, PL_FRAME_KINDS, 28));
    assert_fails(PL_FORMAT, "reserved", read_changed(70, 1, 28));
    assert_fails(PL_FORMAT, "0 bytes", pl_frame_read(&frame, golden, 0, 0));
    assert_fails(PL_FORMAT, "71 bytes, expected 72",
                 pl_frame_read(&frame, golden, 71, 28));
}

static void frame_names_both_versions(void **state)
{
    (void)state;
    assert_fails(PL_UNSUPPORTED, "version 1 of the protocol",
                 read_changed(4, 1, 28));
    assert_fails(PL_UNSUPPORTED, "uses version 2", read_changed(5, 3, 28));
}

static void frame_refuses_lengths_that_do_not_fit(void **state)
{
    (void)state;
    assert_fails(PL_FORMAT, "announces 28 bytes of payload, but has 27",
                 read_changed(6, PL_FRAME_PUSH, 27));
    assert_fails(PL_FORMAT, "at most 16777216",
                 read_changed(67, 0x01, (size_t)0x0100001c));
}

static void frame_kinds_have_names(void **state)
{
    (void)state;
    assert_string_equal("none", pl_frame_kind_text(PL_FRAME_NONE));
    assert_string_equal("join", pl_frame_kind_text(PL_FRAME_JOIN));
    assert_string_equal("apply", pl_frame_kind_text(PL_FRAME_APPLY));
    assert_string_equal("unknown", pl_frame_kind_text(PL_FRAME_KINDS));
}

UNIT_TESTS(cmocka_unit_test(frame_has_the_bytes_of_version_2),
           cmocka_unit_test(frame_reads_what_was_written),
           cmocka_unit_test(frame_refuses_foreign_bytes),
           cmocka_unit_test(frame_names_both_versions),
           cmocka_unit_test(frame_refuses_lengths_that_do_not_fit),
           cmocka_unit_test(frame_kinds_have_names))
