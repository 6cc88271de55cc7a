#include "net/port.h"
#include "net/probe/probe_priv.h"
#include "support/unit.h"

#include "base/mem.h"

#include "base/bytes.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define STRANGERS 20
#define TOKEN     "0123456789abcdef0123456789abcdef"
#define OTHER     "0123456789abcdef0123456789abcdeX"

static void probe_measures_the_path_to_it(void **state)
{
    (void)state;
    pl_probe *probe;
    pl_probe_result result;
    char address[64];
    assert_ok(pl_probe_new(&probe, "127.0.0.1:0", TOKEN));
    snprintf(address, sizeof address, "127.0.0.1:%d", pl_probe_port(probe));
    assert_ok(pl_probe_measure(&result, address, TOKEN, 50));
    assert_true(result.round_trip_us > 0);
    assert_true(result.bytes_per_s > 0);
    /* All of it came before the path is warm, as from a busy host. */
    assert_ok(pl_probe_measure(&result, address, TOKEN, 0));
    assert_true(result.bytes_per_s > 0);
    assert_fails(PL_PEER, "something else listens there",
                 pl_probe_measure(&result, address, OTHER, 50));
    assert_fails(PL_IO, "Address already in use",
                 pl_probe_new(&(pl_probe *) { NULL }, address, TOKEN));
    pl_probe_free(probe);
    assert_fails(PL_IO, "nothing listens there",
                 pl_probe_measure(&result, address, TOKEN, 50));
    assert_int_equal(0, pl_mem_live());
}

static int connect_to(int port)
{
    struct sockaddr_in there = { .sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)port),
                                 .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(0, connect(fd, (struct sockaddr *)&there, sizeof there));
    return fd;
}

/* Connections that stay open and never say the whole token. */
static void probe_measures_while_strangers_stay(void **state)
{
    (void)state;
    pl_probe *probe;
    pl_probe_result result;
    char address[64], answer;
    int strangers[STRANGERS];
    assert_ok(pl_probe_new(&probe, "127.0.0.1:0", TOKEN));
    snprintf(address, sizeof address, "127.0.0.1:%d", pl_probe_port(probe));
    for (int i = 0; i < STRANGERS; i++) {
        strangers[i] = connect_to(pl_probe_port(probe));
        assert_int_equal(1, send(strangers[i], TOKEN, 1, MSG_NOSIGNAL));
    }
    assert_ok(pl_probe_measure(&result, address, TOKEN, 0));
    /* The first was closed to make room; the last is still served. */
    assert_true(recv(strangers[0], &answer, 1, 0) <= 0);
    assert_int_equal(-1,
                     recv(strangers[STRANGERS - 1], &answer, 1, MSG_DONTWAIT));
    pl_probe_free(probe);
    for (int i = 0; i < STRANGERS; i++)
        close(strangers[i]);
    assert_int_equal(0, pl_mem_live());
}

static void probe_impossible_answers_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes, ns;
    } wrong[] = { { 1001, 5 }, { 1000, 0 }, { UINT64_MAX, UINT64_MAX } };
    uint8_t answer[PL_PROBE_ANSWER];
    double speed = -1;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pl_put_u64(answer, wrong[i].bytes);
        pl_put_u64(answer + 8, wrong[i].ns);
        assert_fails(PL_PEER, "a:1 reports that ",
                     pl_probe_speed(&speed, answer, 1000, "a:1"));
    }
    pl_put_u64(answer, 1000);
    pl_put_u64(answer + 8, 500);
    assert_ok(pl_probe_speed(&speed, answer, 1000, "a:1"));
    assert_true(speed == 2e9);
}

static void free_ports_are_distinct_and_local(void **state)
{
    (void)state;
    int ports[8];
    assert_ok(pl_port_find("127.0.0.1", 8, ports));
    for (int i = 0; i < 8; i++) {
        assert_in_range(ports[i], 1024, 32767);
        for (int k = 0; k < i; k++)
            assert_int_not_equal(ports[k], ports[i]);
    }
    assert_fails(PL_IO, "not an address of this host",
                 pl_port_find("192.0.2.1", 1, ports));
}

static void probe_survives_each_failed_allocation(void **state)
{
    (void)state;
    bool failed = true;
    for (long nth = 0; failed; nth++) {
        pl_probe *probe = NULL;
        pl_mem_fail_at(nth);
        pl_status status = pl_probe_new(&probe, "127.0.0.1:0", TOKEN);
        failed = pl_mem_fail_off();
        assert_int_equal(failed ? PL_NOMEM : PL_OK, status);
        pl_probe_free(probe);
    }
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(cmocka_unit_test(probe_measures_the_path_to_it),
           cmocka_unit_test(probe_measures_while_strangers_stay),
           cmocka_unit_test(probe_impossible_answers_are_refused),
           cmocka_unit_test(free_ports_are_distinct_and_local),
           cmocka_unit_test(probe_survives_each_failed_allocation))
