/* The dialer, step by step on the thread of the test instead of the pump's.
 *
 * Invariants and the tests that check them:
 *   dialer D1, D4  dialer_ignores_links_it_does_not_own
 *   dialer D2  dialer_ends_an_attempt_that_hangs
 *   dialer D3  dialer_waits_longer_after_each_failure,
 *              dialer_counts_a_short_connection_as_a_failure
 *   dialer D5  endpoint_keeps_queued_messages_over_a_reconnect
 *              (test_endpoint.c) */
#include "net/tcp/dialer.h"

#include "support/net.h"

#include <arpa/inet.h>
#include <poll.h>

#define MS INT64_C(1000000)

typedef struct rig {
    pl_pump_user user;
    pl_connection link;
    pl_spares spares;
    pl_dialer dialer;
    struct pollfd poll;
    int64_t until_ns;
} rig;

static bool no_chore(void *context, struct pollfd *poll, int64_t *until_ns)
{
    (void)context, (void)poll, (void)until_ns;
    return false;
}

static void open_rig(rig *r, const char *address)
{
    *r = (rig) { .link = { .fd = -1 } };
    pl_dialer *d = &r->dialer;
    assert_ok(pl_address_split(&d->address, address));
    d->config.port = (uint16_t)atoi(strrchr(address, ':') + 1);
    assert_ok(pl_pump_join(&r->user, NULL, no_chore, r));
    assert_ok(pl_dialer_init(d, &r->user, &r->link, &r->spares));
}

static void close_rig(rig *r)
{
    pl_pump_finish(&r->user, net_now());
    pl_pump_withdraw(r->user.pump, &r->link);
    pl_connection_hang_up(&r->link);
    pl_decoder_close(&r->link.decoder);
    pl_outbox_close(&r->link.outbox);
    pl_dialer_close(&r->dialer);
    pl_pump_leave(&r->user);
    pl_spares_close(&r->spares);
}

static bool turn(rig *r)
{
    return pl_dialer_step(&r->dialer, &r->poll, &r->until_ns);
}

/* A port of this host; it refuses connections until someone listens. */
static int bind_port(char address[64])
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t size = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(0, bind(fd, (struct sockaddr *)&at, sizeof at));
    assert_int_equal(0, getsockname(fd, (struct sockaddr *)&at, &size));
    snprintf(address, 64, "127.0.0.1:%d", ntohs(at.sin_port));
    return fd;
}

static void dialer_waits_longer_after_each_failure(void **state)
{
    (void)state;
    char address[64];
    rig r;
    int port = bind_port(address);
    open_rig(&r, address);
    while (r.dialer.failures < 12) {
        int failures = r.dialer.failures;
        int64_t begin = 0;
        r.dialer.next_ns = 0; /* it is time */
        while (r.dialer.failures == failures) {
            begin = pl_clock_now_ns(pl_clock_real());
            assert_true(turn(&r));
        }
        /* More than one in a turn that took long. */
        failures = r.dialer.failures - 1;
        int64_t wait = failures < 7 ? (10 * MS) << failures : 1000 * MS;
        assert_true(r.dialer.next_ns >= begin + wait);
        assert_true(r.dialer.next_ns <=
                    pl_clock_now_ns(pl_clock_real()) + wait + wait / 2);
    }
    close(port);
    close_rig(&r);
}

static void dialer_ends_an_attempt_that_hangs(void **state)
{
    (void)state;
    char address[64];
    rig r;
    int port = bind_port(address);
    assert_int_equal(0, listen(port, 1));
    open_rig(&r, address);
    /* Connected by the kernel; no server answers the handshake. */
    do
        assert_true(turn(&r));
    while (r.poll.events != POLLIN);
    assert_int_equal(0, r.dialer.failures);
    assert_true(r.link.fd >= 0);
    assert_true(r.until_ns > pl_clock_now_ns(pl_clock_real()));
    r.dialer.deadline_ns = pl_clock_now_ns(pl_clock_real());
    assert_true(turn(&r));
    assert_true(r.dialer.failures > 0);
    close(port);
    close_rig(&r);
}

static void await_ready(rig *r, pl_endpoint *server)
{
    pl_message none;
    pl_deadline deadline = net_soon();
    while (turn(r)) {
        assert_int_equal(PL_AGAIN, pl_endpoint_poll(server, &none));
        assert_false(pl_deadline_passed(deadline));
    }
    assert_int_equal(PL_DIAL_READY, atomic_load(&r->dialer.state));
}

static void dialer_counts_a_short_connection_as_a_failure(void **state)
{
    (void)state;
    rig r;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    open_rig(&r, pl_endpoint_address(server));
    await_ready(&r, server);
    /* However long the test takes from here on. */
    r.dialer.arrived_ns = pl_clock_now_ns(pl_clock_real()) + 3600 * 1000 * MS;
    assert_ok(pl_dialer_again(&r.dialer));
    assert_true(turn(&r));
    assert_true(r.dialer.failures > 0);
    assert_true(r.dialer.next_ns > 0);
    /* A connection that lasted is restored at once, and no failure is counted.
     */
    r.dialer.next_ns = 0;
    await_ready(&r, server);
    r.dialer.arrived_ns = pl_clock_now_ns(pl_clock_real()) - 1000 * MS;
    assert_ok(pl_dialer_again(&r.dialer));
    assert_true(turn(&r));
    assert_int_equal(0, r.dialer.failures);
    assert_true(r.link.fd >= 0);
    close_rig(&r);
    pl_endpoint_free(server, 0);
}

static void dialer_ignores_links_it_does_not_own(void **state)
{
    (void)state;
    rig r;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    open_rig(&r, pl_endpoint_address(server));
    await_ready(&r, server);
    int fd = r.link.fd;
    assert_true(fd >= 0);
    assert_false(turn(&r));
    assert_int_equal(fd, r.link.fd);
    atomic_store(&r.dialer.state, PL_DIAL_REFUSED);
    assert_false(turn(&r));
    assert_int_equal(fd, r.link.fd);
    close_rig(&r);
    pl_endpoint_free(server, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dialer_waits_longer_after_each_failure),
        cmocka_unit_test(dialer_ends_an_attempt_that_hangs),
        cmocka_unit_test(dialer_counts_a_short_connection_as_a_failure),
        cmocka_unit_test(dialer_ignores_links_it_does_not_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
