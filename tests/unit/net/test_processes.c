/* Endpoints in processes of their own: any order of start, servers that go
 * and come back, peers that are killed. */
#include "support/net.h"

#include "net/port.h"

/* A free port, as an address.  It is none that the system gives to who asks
 * for any: nobody takes it while no server has it. */
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

/* Ask again every 20 ms, as a requester does, until this is answered. */
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
    /* Sent before anyone listens, delivered when someone does. */
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
        ask(client, round, PL_FRAME_HEART);
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
    ask(client, 1, PL_FRAME_HEART);
    net_kill(server);
    net_send(client, 0, PL_FRAME_HEART, 2, NULL, 0, false);
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
        ask(client, 10 * round, PL_FRAME_HEART); /* over TCP, or old memory */
        share(client);
        ask(client, 10 * round + 1, PL_FRAME_HEART);
        net_kill(server);
        pl_message none;
        while (pl_endpoint_shared(client, 0))
            (void)!pl_endpoint_receive(client, &none,
                                       pl_deadline_in_ms(pl_clock_real(), 20));
    }
    pl_endpoint_free(client, 0);
}

UNIT_TESTS(cmocka_unit_test(processes_may_start_client_first),
           cmocka_unit_test(processes_exchange_1000_messages),
           cmocka_unit_test(processes_reconnect_when_the_server_comes_back),
           cmocka_unit_test(processes_time_out_on_a_killed_server),
           cmocka_unit_test(processes_share_again_after_a_killed_server))
