/* Endpoints in processes of their own: any order of start, servers that go
 * and come back, peers that are killed. */
#include "support/wire.h"

#include "net/endpoint_priv.h"
#include "net/port.h"
#include "net/tcp/owner.h"
#include "net/tcp/tcp.h"

/* A free port, as an address.  It is outside of the system's ephemeral range:
 * no other program takes it while no server has it. */
static void free_address(char out[64])
{
    int port;
    assert_ok(pl_port_find("127.0.0.1", 1, &port));
    snprintf(out, 64, "127.0.0.1:%d", port);
}

static int serve(void *arg)
{
    pl_endpoint *server = net_listen(arg);
    net_echo(server);
    pl_endpoint_free(server, 10000);
    return 0;
}

/* Repeat the request every 20 ms until it is answered. */
static void ask(pl_endpoint *client, uint64_t sequence, pl_frame_kind kind)
{
    pl_deadline deadline = net_soon();
    for (;;) {
        pl_message got;
        assert_false(pl_deadline_passed(deadline));
        net_send(client, 0, kind, sequence, "12345678", 8, false);
        pl_status status = pl_endpoint_receive(
            client, &got, pl_deadline_in_ms(pl_clock_real(), 20));
        while (status == PL_OK && got.frame.sequence != sequence)
            status = pl_endpoint_receive(client, &got, net_now());
        if (status == PL_OK)
            return;
        assert_int_equal(PL_TIMEOUT, status);
    }
}

static void processes_may_start_client_first(void **state)
{
    (void)state;
    NET_SKIP_FORKS();
    char address[64];
    free_address(address);
    pl_endpoint *client = net_connect(address);
    /* Sent before a server listens, delivered once one does. */
    net_send(client, 0, PL_FRAME_JOIN, 1, NULL, 0, false);
    pid_t server = net_fork(serve, address);
    net_expect(client, PL_FRAME_ACK, 1, NULL, 0);
    ask(client, 2, PL_FRAME_STOP);
    net_wait(server);
    pl_endpoint_free(client, 0);
}

static void processes_exchange_1000_messages(void **state)
{
    (void)state;
    NET_SKIP_FORKS();
    char address[64];
    free_address(address);
    pid_t server = net_fork(serve, address);
    pl_endpoint *client = net_connect(address);
    uint8_t *bytes = net_bytes(31000, 1);
    for (uint64_t i = 0; i < 1000; i++) {
        net_send(client, 0, PL_FRAME_PUSH, i, bytes, 31 * i, true);
        if (i >= 8)
            net_expect(client, PL_FRAME_ACK, i - 8, bytes, 31 * (i - 8));
    }
    for (uint64_t i = 992; i < 1000; i++)
        net_expect(client, PL_FRAME_ACK, i, bytes, 31 * i);
    ask(client, 1000, PL_FRAME_STOP);
    net_wait(server);
    pl_endpoint_free(client, 0);
    free(bytes);
}

static void processes_reconnect_when_the_server_comes_back(void **state)
{
    (void)state;
    NET_SKIP_FORKS();
    char address[64];
    free_address(address);
    pl_endpoint *client = net_connect(address);
    for (uint64_t round = 1; round <= 3; round++) {
        pid_t server = net_fork(serve, address);
        ask(client, round, PL_FRAME_HEARTBEAT);
        net_kill(server);
    }
    pid_t server = net_fork(serve, address);
    ask(client, 99, PL_FRAME_STOP);
    net_wait(server);
    pl_endpoint_free(client, 0);
}

static void processes_time_out_on_a_killed_server(void **state)
{
    (void)state;
    NET_SKIP_FORKS();
    char address[64];
    free_address(address);
    pid_t server = net_fork(serve, address);
    pl_endpoint *client = net_connect(address);
    ask(client, 1, PL_FRAME_HEARTBEAT);
    net_kill(server);
    net_send(client, 0, PL_FRAME_HEARTBEAT, 2, NULL, 0, false);
    pl_message none;
    pl_status status;
    do /* answers to what was asked twice may still lie here */
        status = pl_endpoint_receive(client, &none,
                                     pl_deadline_in_ms(pl_clock_real(), 50));
    while (status == PL_OK && none.frame.sequence == 1);
    assert_int_equal(PL_TIMEOUT, status);
    pl_endpoint_free(client, 0);
}

/* A worker that shares memory must go back to TCP when its server dies, and
 * may share again with the next one. */
static int serve_sharing(void *arg)
{
    pl_endpoint *server = net_listen(arg);
    for (;;) {
        pl_message got = net_receive(server);
        pl_frame answer = { .kind = PL_FRAME_ACK,
                            .sequence = got.frame.sequence };
        char text[PL_OFFER_BYTES] = "";
        if (got.frame.kind == PL_FRAME_JOIN) {
            assert_ok(pl_endpoint_accept(server, got.from, got.payload, text));
            answer.kind = PL_FRAME_WELCOME;
            answer.payload_bytes = (uint32_t)strlen(text) + 1;
        }
        assert_ok(pl_endpoint_send(server, got.from, &answer, text, false));
    }
    return 0;
}

static void share(pl_endpoint *client)
{
    char offer[PL_OFFER_BYTES], answer[PL_OFFER_BYTES];
    pl_message got;
    assert_ok(pl_endpoint_offer(client, offer));
    net_send(client, 0, PL_FRAME_JOIN, 1, offer, strlen(offer) + 1, false);
    do
        got = net_receive(client);
    while (got.frame.kind != PL_FRAME_WELCOME);
    strcpy(answer, got.payload);
    assert_ok(pl_endpoint_complete(client, answer));
    assert_true(pl_endpoint_shared(client, 0));
}

static void processes_share_again_after_a_killed_server(void **state)
{
    (void)state;
    NET_SKIP_FORKS();
    char address[64];
    free_address(address);
    pl_endpoint *client = net_connect(address);
    for (uint64_t round = 1; round <= 3; round++) {
        pid_t server = net_fork(serve_sharing, address);
        ask(client, 10 * round,
            PL_FRAME_HEARTBEAT); /* over TCP, or old memory */
        share(client);
        ask(client, 10 * round + 1, PL_FRAME_HEARTBEAT);
        net_kill(server);
        pl_message none;
        while (pl_endpoint_shared(client, 0))
            (void)!pl_endpoint_receive(client, &none,
                                       pl_deadline_in_ms(pl_clock_real(), 20));
    }
    pl_endpoint_free(client, 0);
}

/* --- other users ---------------------------------------------------------- */

#define NOBODY 65534

static void skip_unless_root(void)
{
    if (geteuid() != 0) {
        print_message("only root can be another user\n");
        skip();
    }
}

/* As another user: the answer of our server to a client. */
static int knock_as_nobody(void *arg)
{
    pl_message none;
    if (setresuid(NOBODY, NOBODY, NOBODY) != 0)
        return 2;
    pl_endpoint *client = net_connect(arg);
    net_send(client, 0, PL_FRAME_JOIN, 1, NULL, 0, false);
    pl_status status = pl_endpoint_receive(client, &none, net_soon());
    bool told = strstr(pl_error_message(), "another user of this host: give "
                                           "all tasks of the job one key file "
                                           "with --keys") != NULL;
    return status == PL_CLOSED && told ? 0 : 1;
}

static void processes_of_another_user_are_refused(void **state)
{
    (void)state;
    NET_SKIP_FORKS();
    skip_unless_root();
    static const char *const addresses[] = { "127.0.0.1:0", "[::1]:0" };
    for (size_t i = 0; i < 2; i++) {
        pl_endpoint *server = net_listen(addresses[i]);
        pid_t stranger =
            net_fork(knock_as_nobody, (void *)pl_endpoint_address(server));
        pl_message none;
        while (pl_endpoint_count(server).refused_messages == 0)
            assert_int_equal(
                PL_TIMEOUT,
                pl_endpoint_receive(server, &none,
                                    pl_deadline_in_ms(pl_clock_real(), 10)));
        net_wait(stranger);
        assert_int_equal(0, pl_endpoint_count(server).received_messages);
        pl_endpoint *client = net_connect(pl_endpoint_address(server));
        net_send(client, 0, PL_FRAME_JOIN, 1, NULL, 0, false);
        net_expect(server, PL_FRAME_JOIN, 1, NULL, 0);
        pl_endpoint_free(client, 0);
        pl_endpoint_free(server, 0);
    }
}

/* A server that is old or false admits it: the client refuses. */
static int serve_as_nobody(void *arg)
{
    uint8_t hello[PL_HANDSHAKE_BYTES], out[PL_HANDSHAKE_BYTES];
    pl_handshake_config config = { .server = true };
    pl_handshake handshake = { .step = 0 };
    bool answer;
    int listener = *(int *)arg;
    if (setresuid(NOBODY, NOBODY, NOBODY) != 0)
        return 2;
    int fd = accept(listener, NULL, NULL);
    if (fd < 0 || recv(fd, hello, sizeof hello, MSG_WAITALL) != sizeof hello)
        return 3;
    pl_handshake_take(&handshake, &config, PL_VERDICT_WELCOME, hello, out,
                      &answer);
    wire_send(fd, out, sizeof out);
    return recv(fd, hello, sizeof hello, 0) == 0 ? 0 : 4; /* it hung up */
}

static void processes_refuse_a_server_of_another_user(void **state)
{
    (void)state;
    NET_SKIP_FORKS();
    skip_unless_root();
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t size = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(0, bind(listener, (struct sockaddr *)&at, sizeof at));
    assert_int_equal(0, listen(listener, 1));
    assert_int_equal(0, getsockname(listener, (struct sockaddr *)&at, &size));
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%d", ntohs(at.sin_port));
    pid_t server = net_fork(serve_as_nobody, &listener);
    pl_endpoint *client = net_connect(address);
    pl_message none;
    assert_fails(PL_CLOSED, "runs as another user of this host",
                 pl_endpoint_receive(client, &none, net_soon()));
    pl_endpoint_free(client, 0);
    net_wait(server);
    close(listener);
}

/* The two ways to ask the kernel agree. */
static void processes_owners_are_the_same_in_proc(void **state)
{
    (void)state;
    static const char *const addresses[] = { "127.0.0.1:0", "[::1]:0" };
    for (size_t i = 0; i < 2; i++) {
        pl_endpoint *server = net_listen(addresses[i]);
        pl_endpoint *client = net_connect(pl_endpoint_address(server));
        net_send(client, 0, PL_FRAME_JOIN, 1, NULL, 0, false);
        net_expect(server, PL_FRAME_JOIN, 1, NULL, 0);
        int fd = pl_tcp_of(server)->links[0]->fd;
        uid_t asked = 1, read = 2;
        assert_ok(pl_owner_of_peer(fd, &asked));
        assert_ok(pl_owner_from_proc(fd, "/proc/net", &read));
        assert_int_equal(geteuid(), asked);
        assert_int_equal(geteuid(), read);
        assert_fails(PL_UNSUPPORTED, "nowhere",
                     pl_owner_from_proc(fd, "/nowhere", &read));
        pl_endpoint_free(client, 0);
        net_send(server, 0, PL_FRAME_WELCOME, 1, NULL, 0, false);
        assert_int_equal(PL_NOTFOUND, pl_owner_of_peer(fd, &asked));
        pl_endpoint_free(server, 0);
    }
}

UNIT_TESTS(cmocka_unit_test(processes_may_start_client_first),
           cmocka_unit_test(processes_exchange_1000_messages),
           cmocka_unit_test(processes_reconnect_when_the_server_comes_back),
           cmocka_unit_test(processes_time_out_on_a_killed_server),
           cmocka_unit_test(processes_share_again_after_a_killed_server),
           cmocka_unit_test(processes_of_another_user_are_refused),
           cmocka_unit_test(processes_refuse_a_server_of_another_user),
           cmocka_unit_test(processes_owners_are_the_same_in_proc))
