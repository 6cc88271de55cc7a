#include "proto/wire.h"
#include "support/unit.h"

static void assert_bytes(const pl_wire *wire, const char *expected,
                         size_t bytes)
{
    assert_int_equal(PL_OK, pl_wire_status(wire));
    assert_int_equal(bytes, wire->bytes);
    assert_memory_equal(expected, wire->data, bytes);
}

/* The examples of the protocol buffer documentation. */
static void wire_writes_the_documented_examples(void **state)
{
    (void)state;
    pl_wire wire = { 0 };
    pl_wire_int(&wire, 1, 150);
    assert_bytes(&wire, "\x08\x96\x01", 3);
    pl_wire_clear(&wire);
    pl_wire_text(&wire, 2, "testing");
    assert_bytes(&wire, "\x12\x07testing", 9);
    pl_wire_clear(&wire);
    size_t inside = pl_wire_begin(&wire, 3);
    pl_wire_int(&wire, 1, 150);
    pl_wire_end(&wire, inside);
    assert_bytes(&wire, "\x1a\x03\x08\x96\x01", 5);
    pl_wire_close(&wire);
}

static void wire_writes_fixed_and_packed_numbers(void **state)
{
    (void)state;
    pl_wire wire = { 0 };
    const double two[] = { 1, 2 };
    pl_wire_float(&wire, 2, 1);
    pl_wire_double(&wire, 1, 1);
    pl_wire_doubles(&wire, 6, two, 2);
    pl_wire_int(&wire, 2, -1);
    assert_bytes(&wire,
                 "\x15\0\0\x80\x3f"
                 "\x09\0\0\0\0\0\0\xf0\x3f"
                 "\x32\x10\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\x40"
                 "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                 5 + 9 + 18 + 11);
    pl_wire_close(&wire);
}

static void wire_lengths_take_as_many_bytes_as_they_need(void **state)
{
    (void)state;
    pl_wire wire = { 0 };
    char text[301];
    memset(text, 'x', 300);
    text[300] = '\0';
    size_t outer = pl_wire_begin(&wire, 1);
    size_t inner = pl_wire_begin(&wire, 16);
    pl_wire_text(&wire, 1, text);
    pl_wire_end(&wire, inner);
    pl_wire_end(&wire, outer);
    /* 303 in the inner one, 307 in the outer. */
    assert_int_equal(310, wire.bytes);
    assert_memory_equal("\x0a\xb3\x02\x82\x01\xaf\x02\x0a\xac\x02xxx",
                        wire.data, 13);
    pl_wire_close(&wire);
}

static pl_status write_some(pl_wire *wire)
{
    char text[600];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    size_t begin = pl_wire_begin(wire, 1);
    pl_wire_text(wire, 1, text);
    pl_wire_end(wire, begin);
    pl_wire_skip(wire, 1000);
    pl_status status = pl_wire_status(wire);
    if (status != PL_OK)
        pl_wire_close(wire);
    return status;
}

static void wire_survives_each_failed_allocation(void **state)
{
    (void)state;
    pl_wire wire = { 0 };
    assert_survives_failed_allocations(write_some(&wire), pl_wire_close(&wire));
}

UNIT_TESTS(cmocka_unit_test(wire_writes_the_documented_examples),
           cmocka_unit_test(wire_writes_fixed_and_packed_numbers),
           cmocka_unit_test(wire_lengths_take_as_many_bytes_as_they_need),
           cmocka_unit_test(wire_survives_each_failed_allocation))
