#include "net/endpoint_priv.h"
#include "net/tcp/tcp.h"
#include "support/net.h"

#include <dirent.h>

static void endpoint_carries_messages_both_ways(void **state)
{
    (void)state;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    pl_endpoint *client = net_connect(pl_endpoint_address(server));
    net_send(client, 0, PL_FRAME_JOIN, 1, "hello", 5, false);
    pl_message got = net_expect(server, PL_FRAME_JOIN, 1, "hello", 5);
    assert_int_equal(0, got.from);
    assert_null(got.lease);
    assert_non_null(strstr(pl_endpoint_peer_text(server, 0), "127.0.0.1:"));
    net_send(server, got.from, PL_FRAME_WELCOME, 1, NULL, 0, false);
    got = net_expect(client, PL_FRAME_WELCOME, 1, NULL, 0);
    assert_int_equal(0, got.from);
    assert_string_equal(pl_endpoint_address(server),
                        pl_endpoint_peer_text(client, 0));
    pl_endpoint_counts counts = pl_endpoint_count(server);
    assert_int_equal(1, counts.received_messages);
    assert_int_equal(PL_FRAME_BYTES + 5, counts.received_bytes);
    assert_int_equal(1, counts.sent_messages);
    assert_int_equal(PL_FRAME_BYTES, counts.sent_bytes);
    pl_endpoint_free(client, 0);
    pl_endpoint_free(server, 0);
}

static void endpoint_keeps_the_order_of_1000_messages(void **state)
{
    (void)state;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    pl_endpoint *client = net_connect(pl_endpoint_address(server));
    /* Sizes around those of filling and of the input buffer. */
    static const size_t sizes[] = { 0, 1, 29, 33, 34, 257, 8190, 8200, 40000 };
    const size_t kinds = sizeof sizes / sizeof *sizes;
    uint8_t *bytes = net_bytes(40000, 1);
    for (uint64_t i = 0; i < 1000; i++)
        net_send(client, 0, PL_FRAME_PUSH, i, bytes, sizes[i % kinds], i % 2);
    for (uint64_t i = 0; i < 1000; i++)
        net_expect(server, PL_FRAME_PUSH, i, bytes, sizes[i % kinds]);
    for (uint64_t i = 0; i < 1000; i++)
        net_send(server, 0, PL_FRAME_ACK, i, bytes, sizes[i % kinds], i % 2);
    for (uint64_t i = 0; i < 1000; i++)
        net_expect(client, PL_FRAME_ACK, i, bytes, sizes[i % kinds]);
    pl_endpoint_free(client, 0);
    pl_endpoint_free(server, 0);
    free(bytes);
}

static void endpoint_carries_the_largest_payload(void **state)
{
    (void)state;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    pl_endpoint *client = net_connect(pl_endpoint_address(server));
    uint8_t *bytes = net_bytes(PL_FRAME_PAYLOAD_MAX, 2);
    net_send(client, 0, PL_FRAME_PUSH, 1, bytes, PL_FRAME_PAYLOAD_MAX, true);
    net_expect(server, PL_FRAME_PUSH, 1, bytes, PL_FRAME_PAYLOAD_MAX);
    net_send(server, 0, PL_FRAME_PARAMS, 2, bytes, PL_FRAME_PAYLOAD_MAX, false);
    net_expect(client, PL_FRAME_PARAMS, 2, bytes, PL_FRAME_PAYLOAD_MAX);
    pl_endpoint_free(client, 0);
    pl_endpoint_free(server, 0);
    free(bytes);
}

static void endpoint_copies_short_lived_payloads(void **state)
{
    (void)state;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    pl_endpoint *client = net_connect(pl_endpoint_address(server));
    uint8_t *bytes = net_bytes(100000, 3), *same = net_bytes(100000, 3);
    net_send(client, 0, PL_FRAME_PUSH, 1, bytes, 100000, false);
    memset(bytes, 0, 100000);
    net_expect(server, PL_FRAME_PUSH, 1, same, 100000);
    pl_endpoint_free(client, 0);
    pl_endpoint_free(server, 0);
    free(bytes);
    free(same);
}

static void endpoint_distinguishes_its_peers(void **state)
{
    (void)state;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    pl_endpoint *clients[3];
    for (uint64_t i = 0; i < 3; i++) {
        clients[i] = net_connect(pl_endpoint_address(server));
        net_send(clients[i], 0, PL_FRAME_JOIN, i, NULL, 0, false);
        assert_int_equal(i, net_receive(server).from);
    }
    for (pl_peer i = 0; i < 3; i++)
        net_send(server, i, PL_FRAME_WELCOME, (uint64_t)i, NULL, 0, false);
    for (uint64_t i = 0; i < 3; i++) {
        net_expect(clients[i], PL_FRAME_WELCOME, i, NULL, 0);
        pl_endpoint_free(clients[i], 0);
    }
    pl_endpoint_free(server, 0);
}

/* Each read of a connection brings many messages; none stays behind when the
 * other connections have had their turn. */
static void endpoint_receives_from_several_peers_at_once(void **state)
{
    (void)state;
    enum {
        PEERS = 5,
        EACH = 200
    };
    pl_endpoint *server = net_listen("127.0.0.1:0"), *clients[PEERS];
    for (uint64_t i = 0; i < PEERS; i++) {
        clients[i] = net_connect(pl_endpoint_address(server));
        net_send(clients[i], 0, PL_FRAME_JOIN, 0, NULL, 0, false);
        assert_int_equal(i, net_receive(server).from);
    }
    for (uint64_t n = 1; n <= EACH; n++)
        for (int i = 0; i < PEERS; i++)
            net_send(clients[i], 0, PL_FRAME_PUSH, n, "12345678", 8, false);
    uint64_t last[PEERS] = { 0 };
    for (int n = 0; n < PEERS * EACH; n++) {
        pl_message got = net_receive(server);
        assert_int_equal(last[got.from] + 1, got.frame.sequence);
        last[got.from] = got.frame.sequence;
    }
    for (int i = 0; i < PEERS; i++)
        pl_endpoint_free(clients[i], 0);
    pl_endpoint_free(server, 0);
}

static void endpoint_ignores_a_dropped_peer(void **state)
{
    (void)state;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    pl_endpoint *first = net_connect(pl_endpoint_address(server));
    pl_endpoint *second = net_connect(pl_endpoint_address(server));
    net_send(first, 0, PL_FRAME_JOIN, 1, NULL, 0, false);
    pl_peer dropped = net_expect(server, PL_FRAME_JOIN, 1, NULL, 0).from;
    pl_endpoint_drop(server, dropped);
    pl_endpoint_drop(server, dropped); /* twice is fine */
    net_send(first, 0, PL_FRAME_HEARTBEAT, 2, NULL, 0, false);
    pl_message none;
    while (pl_endpoint_count(server).refused_messages == 0)
        assert_int_equal(
            PL_TIMEOUT,
            pl_endpoint_receive(server, &none,
                                pl_deadline_in_ms(pl_clock_real(), 1)));
    net_send(second, 0, PL_FRAME_JOIN, 3, NULL, 0, false);
    assert_int_not_equal(dropped,
                         net_expect(server, PL_FRAME_JOIN, 3, NULL, 0).from);
    pl_endpoint_free(first, 0);
    pl_endpoint_free(second, 0);
    pl_endpoint_free(server, 0);
}

static void endpoint_reuses_the_number_of_a_dropped_peer(void **state)
{
    (void)state;
    pl_endpoint *server = NULL;
    assert_ok(pl_endpoint_listen(&server,
                                 &(pl_endpoint_opts) { .address = "127.0.0.1:0",
                                                       .name = "ps 0",
                                                       .peers_max = 2 }));
    pl_endpoint *clients[4];
    for (uint64_t i = 0; i < 4; i++)
        clients[i] = net_connect(pl_endpoint_address(server));
    for (uint64_t i = 0; i < 2; i++) {
        net_send(clients[i], 0, PL_FRAME_JOIN, i, NULL, 0, false);
        assert_int_equal(i, net_receive(server).from);
    }
    pl_endpoint_drop(server, 1);
    net_send(clients[3], 0, PL_FRAME_JOIN, 3, NULL, 0, false);
    assert_int_equal(1, net_expect(server, PL_FRAME_JOIN, 3, NULL, 0).from);
    net_send(server, 1, PL_FRAME_WELCOME, 3, NULL, 0, false);
    net_expect(clients[3], PL_FRAME_WELCOME, 3, NULL, 0);
    for (uint64_t i = 0; i < 4; i++)
        pl_endpoint_free(clients[i], 0);
    pl_endpoint_free(server, 0);
}

/* More clients than numbers: peers that need not be kept are dropped first,
 * then the one silent for longest. */
static void endpoint_takes_new_peers_when_all_numbers_are_taken(void **state)
{
    (void)state;
    pl_endpoint *server = NULL;
    assert_ok(pl_endpoint_listen(&server,
                                 &(pl_endpoint_opts) { .address = "127.0.0.1:0",
                                                       .name = "ps 0",
                                                       .peers_max = 3 }));
    pl_endpoint *clients[6];
    static const pl_peer expected[] = { 0, 1, 2, 1, 1, 0 };
    for (uint64_t i = 0; i < 6; i++) {
        clients[i] = net_connect(pl_endpoint_address(server));
        net_send(clients[i], 0, PL_FRAME_JOIN, i, NULL, 0, false);
        pl_message message = net_expect(server, PL_FRAME_JOIN, i, NULL, 0);
        assert_int_equal(expected[i], message.from);
        assert_true(message.first);
        if (i == 2) { /* 0 and 2 are tasks */
            pl_endpoint_keep(server, 0);
            pl_endpoint_keep(server, 2);
        }
        if (i == 4) /* now all are; 0 was silent longest */
            pl_endpoint_keep(server, 1);
        if (i == 2)
            continue;
        net_send(clients[i], 0, PL_FRAME_HEARTBEAT, i, NULL, 0, false);
        assert_false(net_expect(server, PL_FRAME_HEARTBEAT, i, NULL, 0).first);
    }
    for (uint64_t i = 0; i < 6; i++)
        pl_endpoint_free(clients[i], 0);
    pl_endpoint_free(server, 0);
}

static void endpoint_speaks_ipv6_and_names(void **state)
{
    (void)state;
    static const char *const addresses[] = { "[::1]:0", "localhost:0" };
    for (size_t i = 0; i < 2; i++) {
        pl_endpoint *server = net_listen(addresses[i]);
        char address[64];
        snprintf(address, sizeof address, "%.*s%s",
                 (int)strlen(addresses[i]) - 2, addresses[i],
                 strrchr(pl_endpoint_address(server), ':'));
        pl_endpoint *client = net_connect(address);
        net_send(client, 0, PL_FRAME_JOIN, i, NULL, 0, false);
        net_expect(server, PL_FRAME_JOIN, i, NULL, 0);
        pl_endpoint_free(client, 0);
        pl_endpoint_free(server, 0);
    }
}

static void endpoint_refuses_bad_addresses(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",         "host",  "host:",   ":1",      "host:x", "host:65536",
        "::1:5000", "[::1]", "host:-1", "host:1 ", "[]:1",   "host:123456"
    };
    pl_endpoint *e = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pl_endpoint_opts opts = { .address = bad[i], .name = "ps 0" };
        assert_fails(PL_USAGE, bad[i], pl_endpoint_listen(&e, &opts));
        assert_fails(PL_USAGE, "ps 0: ", pl_endpoint_connect(&e, &opts));
    }
    pl_endpoint_opts zero = { .address = "127.0.0.1:0", .name = "worker 1" };
    assert_fails(PL_USAGE, "0 is not a valid port",
                 pl_endpoint_connect(&e, &zero));
    pl_endpoint_opts far = { .address = "192.0.2.1:4711", .name = "ps 0" };
    assert_fails(PL_IO, "does not have that address",
                 pl_endpoint_listen(&e, &far));
}

static void endpoint_names_a_port_in_use(void **state)
{
    (void)state;
    pl_endpoint *server = net_listen("127.0.0.1:0"), *second = NULL;
    const char *address = pl_endpoint_address(server);
    pl_endpoint_opts opts = { .address = address, .name = "ps 1" };
    assert_fails(PL_IO, address, pl_endpoint_listen(&second, &opts));
    assert_fails(PL_IO, "choose another port",
                 pl_endpoint_listen(&second, &opts));
    pl_endpoint_free(server, 0);
}

/* A second message comes after the read that brought the first: the look that
 * would have found nothing without it costs no system call, the next one takes
 * it. */
static void endpoint_reads_once_after_a_sleep(void **state)
{
    (void)state;
    pl_message got;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    pl_endpoint *client = net_connect(pl_endpoint_address(server));
    net_send(client, 0, PL_FRAME_JOIN, 1, NULL, 0, false);
    net_expect(server, PL_FRAME_JOIN, 1, NULL, 0);
    net_send(server, 0, PL_FRAME_WELCOME, 1, NULL, 0, false);
    net_expect(client, PL_FRAME_WELCOME, 1, NULL, 0);
    net_send(server, 0, PL_FRAME_PARAMS, 2, "12345678", 8, false);
    struct pollfd there = { pl_tcp_of(client)->link.fd, POLLIN, 0 };
    assert_int_equal(1, poll(&there, 1, 60000));
    assert_int_equal(PL_AGAIN, pl_endpoint_poll(client, &got));
    assert_ok(pl_endpoint_poll(client, &got));
    assert_int_equal(2, got.frame.sequence);
    pl_endpoint_free(client, 0);
    pl_endpoint_free(server, 0);
}

static void endpoint_times_out(void **state)
{
    (void)state;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    pl_message none;
    assert_fails(PL_TIMEOUT, pl_endpoint_address(server),
                 pl_endpoint_receive(server, &none, net_now()));
    pl_clock clock;
    pl_clock_init_fake(&clock, 0);
    pl_deadline past = pl_deadline_in_ms(&clock, 0);
    assert_int_equal(PL_TIMEOUT, pl_endpoint_receive(server, &none, past));
    pl_endpoint_free(server, 0);
}

static void endpoint_sends_to_lost_peers_without_waiting(void **state)
{
    (void)state;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    char address[64];
    strcpy(address, pl_endpoint_address(server));
    pl_endpoint *client = net_connect(address);
    net_send(client, 0, PL_FRAME_JOIN, 1, NULL, 0, false);
    net_expect(server, PL_FRAME_JOIN, 1, NULL, 0);
    pl_endpoint_free(client, 0);
    /* The server notices eventually, and counts instead of failing. */
    uint8_t *bytes = net_bytes(100000, 4);
    while (pl_endpoint_count(server).dropped_messages < 10)
        net_send(server, 0, PL_FRAME_PARAMS, 2, bytes, 100000, true);
    pl_endpoint_free(server, 0);
    client = net_connect(address); /* the server is gone */
    while (pl_endpoint_count(client).dropped_messages < 10)
        net_send(client, 0, PL_FRAME_PUSH, 3, bytes, 100000, true);
    pl_endpoint_free(client, 0);
    free(bytes);
}

/* A worker of a job with more than 64 servers. */
static void endpoint_waits_for_many_endpoints_at_once(void **state)
{
    (void)state;
    enum {
        MANY = 200
    };
    pl_endpoint *server = net_listen("127.0.0.1:0"), *clients[MANY];
    for (uint64_t i = 0; i < MANY; i++) {
        clients[i] = net_connect(pl_endpoint_address(server));
        net_send(clients[i], 0, PL_FRAME_JOIN, i, NULL, 0, false);
        net_expect(server, PL_FRAME_JOIN, i, NULL, 0);
    }
    net_send(server, MANY - 1, PL_FRAME_WELCOME, 7, NULL, 0, false);
    pl_message got;
    pl_deadline soon = net_soon();
    while (pl_endpoint_poll(clients[MANY - 1], &got) != PL_OK) {
        assert_false(pl_deadline_passed(soon));
        pl_endpoint_wait(clients, MANY, soon);
    }
    assert_int_equal(7, got.frame.sequence);
    for (int i = 0; i < MANY; i++)
        pl_endpoint_free(clients[i], 0);
    pl_endpoint_free(server, 0);
}

/* Messages queued while no server ran arrive, in order, at the next one. */
static void endpoint_keeps_queued_messages_over_a_reconnect(void **state)
{
    (void)state;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    char address[64];
    strcpy(address, pl_endpoint_address(server));
    pl_endpoint *client = net_connect(address);
    net_send(client, 0, PL_FRAME_JOIN, 1, NULL, 0, false);
    net_expect(server, PL_FRAME_JOIN, 1, NULL, 0);
    pl_endpoint_free(server, 0);
    pl_message none;
    while (atomic_load(&pl_tcp_of(client)->dialer.state) == PL_DIAL_READY)
        assert_int_equal(
            PL_TIMEOUT,
            pl_endpoint_receive(client, &none,
                                pl_deadline_in_ms(pl_clock_real(), 1)));
    for (uint64_t i = 10; i < 20; i++)
        net_send(client, 0, PL_FRAME_PUSH, i, "12345678", 8, false);
    server = net_listen(address);
    for (uint64_t i = 10; i < 20; i++)
        net_expect(server, PL_FRAME_PUSH, i, "12345678", 8);
    pl_endpoint_free(client, 0);
    pl_endpoint_free(server, 0);
}

/* Closed connections leave nothing behind. */
static void endpoint_leaks_no_thread_and_no_connection(void **state)
{
    (void)state;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    uint8_t *bytes = net_bytes(200000, 1);
    int64_t live = -1;
    for (uint64_t i = 0; i < 40; i++) {
        pl_endpoint *client = net_connect(pl_endpoint_address(server));
        net_send(client, 0, PL_FRAME_PUSH, i, bytes, 200000, false);
        pl_message got = net_expect(server, PL_FRAME_PUSH, i, bytes, 200000);
        net_send(server, got.from, PL_FRAME_PARAMS, i, bytes, 200000, false);
        net_expect(client, PL_FRAME_PARAMS, i, bytes, 200000);
        pl_endpoint_free(client, 0);
        while (pl_tcp_of(server)->links[got.from] != NULL)
            assert_int_equal(
                PL_TIMEOUT,
                pl_endpoint_receive(server, &got,
                                    pl_deadline_in_ms(pl_clock_real(), 1)));
        if (i == 10)
            live = pl_mem_live();
        if (i > 10)
            assert_true(pl_mem_live() <= live + 2); /* the pump's */
    }
    pl_endpoint_free(server, 0);
    free(bytes);
}

static void endpoint_new_survives_failed_allocations(void **state)
{
    (void)state;
    pl_endpoint *e = NULL;
    pl_endpoint_opts opts = { .address = "127.0.0.1:0", .name = "ps 0" };
    assert_survives_failed_allocations(pl_endpoint_listen(&e, &opts),
                                       pl_endpoint_free(e, 0));
    opts.address = "127.0.0.1:9";
    assert_survives_failed_allocations(pl_endpoint_connect(&e, &opts),
                                       pl_endpoint_free(e, 0));
    pl_endpoint_free(NULL, 0);
}

static int count_threads(void)
{
    int count = -2; /* "." and ".." */
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    while (readdir(tasks) != NULL)
        count++;
    closedir(tasks);
    return count;
}

#define BESIDE 64

/* A task has as many connections as it has peers, but not as many threads:
 * while all connect, while all write what the kernel does not take at once,
 * and when those that came first are gone. */
static void endpoints_beside_each_other_share_a_thread(void **state)
{
    (void)state;
    const size_t large = (size_t)512 << 10;
    uint8_t *bytes = net_bytes(large, 4);
    pl_endpoint *server = net_listen("127.0.0.1:0");
    pl_endpoint *clients[BESIDE] = { NULL };
    int one = 0, most = 0;
    for (int i = 0; i < BESIDE; i++) {
        assert_ok(pl_endpoint_connect(
            &clients[i], &(pl_endpoint_opts) {
                             .address = pl_endpoint_address(server),
                             .name = "worker 0",
                             .beside = clients[0],
                         }));
        if (i > 0)
            continue;
        net_send(clients[0], 0, PL_FRAME_JOIN, 1, NULL, 0, false);
        net_expect(server, PL_FRAME_JOIN, 1, NULL, 0);
        one = count_threads(); /* with the one that connected it, perhaps */
    }
    for (int i = 0; i < BESIDE; i++)
        net_send(clients[i], 0, PL_FRAME_PUSH, (uint64_t)i, bytes, large, true);
    for (int i = 0; i < BESIDE / 2; i++) /* they have not written it all */
        pl_endpoint_free(clients[i], i % 2 == 0 ? 0 : 1);
    for (int got = 0; got < BESIDE / 2;) {
        pl_message message = net_receive(server);
        assert_int_equal(large, message.frame.payload_bytes);
        got += message.frame.sequence >= BESIDE / 2;
        int threads = count_threads();
        most = threads > most ? threads : most;
    }
    assert_in_range(most, 1, one + 1);
    for (int i = BESIDE / 2; i < BESIDE; i++)
        pl_endpoint_free(clients[i], 0);
    assert_in_range(count_threads(), 1, one);
    pl_endpoint_free(server, 0);
    free(bytes);
}

/* A server, too: one thread writes to all peers what the kernel does not take
 * at once. */
static void endpoint_of_a_server_has_one_thread_for_all_peers(void **state)
{
    (void)state;
    const size_t large = (size_t)512 << 10;
    uint8_t *bytes = net_bytes(large, 4);
    pl_endpoint *server = net_listen("127.0.0.1:0");
    pl_endpoint *clients[BESIDE] = { NULL };
    int before = count_threads(), most = 0;
    for (int i = 0; i < BESIDE; i++) {
        assert_ok(pl_endpoint_connect(
            &clients[i], &(pl_endpoint_opts) {
                             .address = pl_endpoint_address(server),
                             .name = "worker 0",
                             .beside = clients[0],
                         }));
        net_send(clients[i], 0, PL_FRAME_JOIN, (uint64_t)i, NULL, 0, false);
        net_receive(server);
    }
    for (int round = 0; round < 4; round++)
        for (pl_peer peer = 0; peer < BESIDE; peer++)
            net_send(server, peer, PL_FRAME_PARAMS, 1, bytes, large, true);
    for (int i = 0; i < 4 * BESIDE; i++) {
        net_expect(clients[i % BESIDE], PL_FRAME_PARAMS, 1, bytes, large);
        int threads = count_threads();
        most = threads > most ? threads : most;
    }
    /* One more for the server, one that connected all clients. */
    assert_in_range(most, before, before + 2);
    for (int i = 0; i < BESIDE; i++)
        pl_endpoint_free(clients[i], 0);
    pl_endpoint_free(server, 0);
    free(bytes);
}

UNIT_TESTS(
    cmocka_unit_test(endpoints_beside_each_other_share_a_thread),
    cmocka_unit_test(endpoint_of_a_server_has_one_thread_for_all_peers),
    cmocka_unit_test(endpoint_carries_messages_both_ways),
    cmocka_unit_test(endpoint_keeps_the_order_of_1000_messages),
    cmocka_unit_test(endpoint_carries_the_largest_payload),
    cmocka_unit_test(endpoint_copies_short_lived_payloads),
    cmocka_unit_test(endpoint_distinguishes_its_peers),
    cmocka_unit_test(endpoint_receives_from_several_peers_at_once),
    cmocka_unit_test(endpoint_ignores_a_dropped_peer),
    cmocka_unit_test(endpoint_reuses_the_number_of_a_dropped_peer),
    cmocka_unit_test(endpoint_takes_new_peers_when_all_numbers_are_taken),
    cmocka_unit_test(endpoint_speaks_ipv6_and_names),
    cmocka_unit_test(endpoint_refuses_bad_addresses),
    cmocka_unit_test(endpoint_names_a_port_in_use),
    cmocka_unit_test(endpoint_reads_once_after_a_sleep),
    cmocka_unit_test(endpoint_times_out),
    cmocka_unit_test(endpoint_sends_to_lost_peers_without_waiting),
    cmocka_unit_test(endpoint_waits_for_many_endpoints_at_once),
    cmocka_unit_test(endpoint_keeps_queued_messages_over_a_reconnect),
    cmocka_unit_test(endpoint_leaks_no_thread_and_no_connection),
    cmocka_unit_test(endpoint_new_survives_failed_allocations))
