#include "net/address.h"
#include "support/unit.h"

#include <string.h>

static void address_is_a_host_and_a_port(void **state)
{
    (void)state;
    pl_address address;
    assert_ok(pl_address_split(&address, "node0:2222"));
    assert_string_equal("node0", address.host);
    assert_string_equal("2222", address.port);
    assert_ok(pl_address_split(&address, "[fe80::1]:65535"));
    assert_string_equal("fe80::1", address.host);
    assert_string_equal("65535", address.port);
}

static void invalid_address_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = { "",      "node0",    ":1",
                                         "a:",    "a:65536",  "a:1x",
                                         "a:-1",  "::1:4711", "[]:1",
                                         "a:1 2", "a:000001" };
    pl_address address;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(PL_USAGE, pl_address_split(&address, wrong[i]));
}

static bool is_loopback(const char *text)
{
    pl_address address;
    assert_ok(pl_address_split(&address, text));
    return pl_address_resolve(&address) == PL_OK &&
           pl_address_is_loopback(&address);
}

static void address_of_this_host_alone_is_loopback(void **state)
{
    (void)state;
    assert_true(is_loopback("127.0.0.1:1"));
    assert_true(is_loopback("127.9.8.7:0"));
    assert_true(is_loopback("[::1]:1"));
    assert_true(is_loopback("localhost:1"));
    assert_false(is_loopback("0.0.0.0:1"));
    assert_false(is_loopback("[::]:1"));
    assert_false(is_loopback("10.0.0.7:1"));
    assert_false(is_loopback("[::ffff:10.0.0.7]:1"));
}

/* Without a name server to ask: the name itself cannot be one. */
static void address_of_an_unknown_name_is_not_loopback(void **state)
{
    (void)state;
    pl_address address;
    assert_ok(pl_address_split(&address, "127.no..host:1"));
    assert_int_equal(PL_IO, pl_address_resolve(&address));
    assert_string_equal("", address.numeric);
    assert_false(pl_address_is_loopback(&address));
}

UNIT_TESTS(cmocka_unit_test(address_is_a_host_and_a_port),
           cmocka_unit_test(invalid_address_is_refused),
           cmocka_unit_test(address_of_this_host_alone_is_loopback),
           cmocka_unit_test(address_of_an_unknown_name_is_not_loopback))
