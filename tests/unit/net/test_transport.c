/* Two transports that exist only here, a connection and an upgrade, both a
 * queue inside this process, carry messages through the endpoint's own code. */
#include "net/endpoint_priv.h"
#include "support/net.h"

#include <sys/eventfd.h>

#define CLIENTS    3
#define QUEUE_MOST 1024
#define LARGE      1000 /* bytes; more does not fit the upgrade */

typedef struct item {
    pl_peer from;
    pl_frame frame;
    uint64_t payload[(LARGE + 7) / 8];
} item;

typedef struct queue {
    pl_route route;
    struct queue *others[CLIENTS]; /* by peer; a client has one */
    pl_peer number;                /* of a client at its server */
    int fd;                        /* readable while messages wait */
    size_t taken, put;
    item items[QUEUE_MOST];
} queue;

static queue *listening; /* the one server of the connection */
static queue *offered;   /* the client whose offer is on its way */

static pl_status queue_new(queue **out, const pl_transport *transport,
                           pl_endpoint *endpoint)
{
    PL_TRY(PL_NEW(*out, 1));
    (*out)->route = (pl_route) { transport, endpoint, 1 };
    (*out)->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return PL_OK;
}

static void queue_link(queue *server, pl_peer number, queue *client)
{
    server->others[number] = client;
    client->others[0] = server;
    client->number = number;
}

static void queue_close(pl_route *route, int linger_ms)
{
    (void)linger_ms;
    queue *q = (queue *)route;
    for (size_t i = 0; i < CLIENTS; i++)
        if (q->others[i] != NULL)
            q->others[i]->others[q->number] = NULL;
    if (listening == q)
        listening = NULL;
    close(q->fd);
    pl_mem_free(q);
}

static pl_status queue_send(pl_route *route, pl_peer to, const pl_frame *frame,
                            const void *payload, bool lasting)
{
    (void)lasting;
    queue *other = ((queue *)route)->others[to];
    if (other == NULL || frame->payload_bytes > LARGE ||
        other->put - other->taken == QUEUE_MOST)
        return PL_AGAIN;
    item *next = &other->items[other->put++ % QUEUE_MOST];
    *next = (item) { .from = ((queue *)route)->number, .frame = *frame };
    if (frame->payload_bytes > 0)
        memcpy(next->payload, payload, frame->payload_bytes);
    eventfd_write(other->fd, 1);
    return PL_OK;
}

static pl_status queue_take(pl_route *route, pl_message *out)
{
    queue *q = (queue *)route;
    if (q->taken == q->put)
        return PL_AGAIN;
    const item *next = &q->items[q->taken++ % QUEUE_MOST];
    out->from = next->from;
    out->frame = next->frame;
    out->payload = next->payload;
    return PL_OK;
}

static bool queue_sleep(pl_route *route, struct pollfd *polls,
                        int64_t *until_ns)
{
    (void)until_ns;
    const queue *q = (queue *)route;
    polls[0] = (struct pollfd) { q->fd, POLLIN, 0 };
    return q->taken == q->put;
}

static void queue_wake(pl_route *route, const struct pollfd *polls)
{
    eventfd_t count;
    if (polls[0].revents != 0)
        eventfd_read(((queue *)route)->fd, &count);
}

/* --- a connection --------------------------------------------------------- */

static const pl_transport connection;

static pl_status connection_open(pl_route **out, pl_endpoint *endpoint,
                                 const pl_endpoint_opts *opts)
{
    queue *q;
    if (!endpoint->server && listening == NULL)
        return PL_FAIL(PL_IO, "no server at %s", opts->address);
    PL_TRY(queue_new(&q, &connection, endpoint));
    if (endpoint->server)
        listening = q;
    else
        queue_link(listening,
                   pl_peers_add(&listening->route.endpoint->peers,
                                endpoint->peers.entries[0].identity),
                   q);
    *out = &q->route;
    return PL_OK;
}

static const pl_transport connection = {
    .name = "queue",
    .open = connection_open,
    .close = queue_close,
    .send = queue_send,
    .take = queue_take,
    .sleep = queue_sleep,
    .wake = queue_wake,
};

static pl_endpoint *open_end(const pl_transport *transport, const char *server)
{
    pl_endpoint *e = NULL;
    pl_endpoint_opts opts = { .address =
                                  server != NULL ? server : "127.0.0.1:0",
                              .name = server != NULL ? "worker 0" : "ps 0",
                              .transport = transport };
    assert_ok(server != NULL ? pl_endpoint_connect(&e, &opts)
                             : pl_endpoint_listen(&e, &opts));
    return e;
}

static void transport_connects_through_the_same_endpoint(void **state)
{
    (void)state;
    pl_endpoint *clients[CLIENTS], *server = open_end(&connection, NULL);
    assert_string_equal("127.0.0.1:0", pl_endpoint_address(server));
    for (size_t c = 0; c < CLIENTS; c++) {
        clients[c] = open_end(&connection, "queue");
        net_send(clients[c], 0, PL_FRAME_JOIN, c, "hello", 5, false);
    }
    for (size_t c = 0; c < CLIENTS; c++) {
        pl_message got = net_expect(server, PL_FRAME_JOIN, c, "hello", 5);
        assert_int_equal(c, got.from);
        assert_true(got.first);
        net_send(server, got.from, PL_FRAME_WELCOME, c, NULL, 0, false);
        net_expect(clients[c], PL_FRAME_WELCOME, c, NULL, 0);
    }
    for (uint64_t i = 0; i < 1000; i++)
        net_send(clients[1], 0, PL_FRAME_PUSH, i, &i, sizeof i, true);
    for (uint64_t i = 0; i < 1000; i++)
        assert_false(net_expect(server, PL_FRAME_PUSH, i, &i, sizeof i).first);
    pl_message none;
    assert_int_equal(PL_TIMEOUT, pl_endpoint_receive(server, &none, net_now()));
    assert_int_equal(CLIENTS + 1000,
                     pl_endpoint_count(server).received_messages);
    /* There is nothing to agree on, and messages to a lost peer are dropped. */
    char offer[PL_OFFER_BYTES] = "unchanged";
    assert_ok(pl_endpoint_offer(clients[0], offer));
    assert_string_equal("", offer);
    assert_ok(pl_endpoint_check(clients[0], 0, "ps 0"));
    pl_endpoint_free(clients[0], 0);
    net_send(server, 0, PL_FRAME_STOP, 1, NULL, 0, false);
    assert_int_equal(1, pl_endpoint_count(server).dropped_messages);
    for (size_t c = 1; c < CLIENTS; c++)
        pl_endpoint_free(clients[c], 0);
    pl_endpoint_free(server, 0);
}

static void transport_that_cannot_open_leaves_nothing(void **state)
{
    (void)state;
    pl_endpoint *client = NULL;
    long live = pl_mem_live();
    pl_endpoint_opts opts = { .address = "queue",
                              .name = "worker 0",
                              .transport = &connection };
    assert_fails(PL_IO, "worker 0: no server at queue",
                 pl_endpoint_connect(&client, &opts));
    assert_int_equal(live, pl_mem_live());
}

/* --- an upgrade ----------------------------------------------------------- */

static const pl_transport upgraded;

static pl_status upgrade_open(pl_route **out, pl_endpoint *endpoint,
                              const pl_endpoint_opts *opts)
{
    queue *q;
    assert_null(opts);
    PL_TRY(queue_new(&q, &upgraded, endpoint));
    *out = &q->route;
    return PL_OK;
}

static void take_peer(pl_route *route, pl_peer peer)
{
    route->endpoint->peers.entries[peer].upgrade = route;
}

static pl_status upgrade_offer(pl_route *route, char offer[PL_OFFER_BYTES])
{
    offered = (queue *)route;
    take_peer(route, 0);
    strcpy(offer, "queue, please");
    return PL_OK;
}

static pl_status upgrade_accept(pl_route *route, pl_peer peer,
                                const char *offer, char answer[PL_OFFER_BYTES])
{
    if (strcmp(offer, "queue, please") != 0)
        return PL_FAIL(PL_FORMAT, "not an offer: %s", offer);
    queue_link((queue *)route, peer, offered);
    take_peer(route, peer);
    strcpy(answer, "queue it is");
    return PL_OK;
}

static pl_status upgrade_complete(pl_route *route, const char *answer)
{
    (void)route;
    return strcmp(answer, "queue it is") == 0
               ? PL_OK
               : PL_FAIL(PL_FORMAT, "not an answer: %s", answer);
}

static bool upgrade_serves(const pl_route *route, pl_peer peer)
{
    return ((const queue *)route)->others[peer] != NULL;
}

static void upgrade_drop(pl_route *route, pl_peer peer)
{
    queue *q = (queue *)route;
    if (q->others[peer] != NULL)
        q->others[peer]->others[q->number] = NULL;
    q->others[peer] = NULL;
    route->endpoint->peers.entries[peer].upgrade = NULL;
}

static const pl_upgrade upgrade = {
    .mark = "queue",
    .needs = "one process",
    .offer = upgrade_offer,
    .accept = upgrade_accept,
    .complete = upgrade_complete,
    .serves = upgrade_serves,
    .drop = upgrade_drop,
};

static const pl_transport upgraded = {
    .name = "queue",
    .open = upgrade_open,
    .close = queue_close,
    .send = queue_send,
    .take = queue_take,
    .sleep = queue_sleep,
    .wake = queue_wake,
    .upgrade = &upgrade,
};

/* A client and a server over TCP; the first message has arrived. */
static void couple_open(pl_endpoint **server, pl_endpoint **client)
{
    *server = open_end(&upgraded, NULL);
    *client = open_end(&upgraded, pl_endpoint_address(*server));
    net_send(*client, 0, PL_FRAME_JOIN, 1, NULL, 0, false);
    net_expect(*server, PL_FRAME_JOIN, 1, NULL, 0);
}

static void couple_agree(pl_endpoint *server, pl_endpoint *client)
{
    char offer[PL_OFFER_BYTES], answer[PL_OFFER_BYTES];
    assert_ok(pl_endpoint_offer(client, offer));
    assert_ok(pl_endpoint_accept(server, 0, offer, answer));
    assert_ok(pl_endpoint_complete(client, answer));
    assert_true(pl_endpoint_shared(client, 0));
    assert_true(pl_endpoint_shared(server, 0));
    assert_ok(pl_endpoint_check(client, 0, "ps 0"));
}

static void transport_upgrades_a_connection(void **state)
{
    (void)state;
    pl_endpoint *server, *client;
    couple_open(&server, &client);
    assert_fails(PL_USAGE,
                 "--transport queue does not reach ps 0: it needs one process",
                 pl_endpoint_check(client, 0, "ps 0"));
    couple_agree(server, client);
    const queue *there = (queue *)server->routes[1];
    net_send(client, 0, PL_FRAME_PUSH, 2, "small", 5, false);
    assert_int_equal(1, there->put);
    net_expect(server, PL_FRAME_PUSH, 2, "small", 5);
    /* What does not fit takes the connection, both ways, and wakes as well. */
    uint8_t *bytes = net_bytes(LARGE + 1, 1);
    net_send(client, 0, PL_FRAME_PUSH, 3, bytes, LARGE + 1, true);
    assert_int_equal(1, there->put);
    net_expect(server, PL_FRAME_PUSH, 3, bytes, LARGE + 1);
    net_send(server, 0, PL_FRAME_ACK, 4, bytes, LARGE, false);
    net_expect(client, PL_FRAME_ACK, 4, bytes, LARGE);
    net_send(server, 0, PL_FRAME_ACK, 5, bytes, LARGE + 1, true);
    net_expect(client, PL_FRAME_ACK, 5, bytes, LARGE + 1);
    pl_endpoint_free(client, 0);
    pl_endpoint_free(server, 0);
    free(bytes); /* what lasts may be read until the endpoint is gone */
}

static void transport_refused_upgrade_keeps_the_connection(void **state)
{
    (void)state;
    pl_endpoint *server, *client;
    char offer[PL_OFFER_BYTES], answer[PL_OFFER_BYTES];
    couple_open(&server, &client);
    static const char *const others[] = { "", "plshm1 not allowed here",
                                          "queue, or not" };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        couple_agree(server, client);
        assert_ok(pl_endpoint_offer(client, offer));
        assert_ok(pl_endpoint_accept(server, 0, others[i], answer));
        assert_string_equal("", answer);
        assert_ok(pl_endpoint_complete(client, i == 0 ? answer : "wrong"));
        assert_false(pl_endpoint_shared(client, 0));
        assert_false(pl_endpoint_shared(server, 0));
        net_send(client, 0, PL_FRAME_PUSH, i, "12345678", 8, false);
        net_expect(server, PL_FRAME_PUSH, i, "12345678", 8);
    }
    pl_endpoint_free(client, 0);
    pl_endpoint_free(server, 0);
}

/* A busy upgrade does not starve the connection, where heartbeats are. */
static void transport_upgrade_does_not_starve_the_connection(void **state)
{
    (void)state;
    pl_endpoint *server, *client;
    uint8_t *bytes = net_bytes(LARGE + 1, 1);
    couple_open(&server, &client);
    couple_agree(server, client);
    net_send(client, 0, PL_FRAME_HEARTBEAT, 0, bytes, LARGE + 1, true);
    struct pollfd there = { 0 };
    int64_t until = INT64_MAX;
    server->rows[0]->sleep(server->routes[0], &there, &until);
    assert_int_equal(1, poll(&there, 1, 60000)); /* the heartbeat has come */
    for (uint64_t i = 0; i < 100; i++)
        net_send(client, 0, PL_FRAME_PUSH, i, NULL, 0, false);
    int before = 0;
    while (net_receive(server).frame.kind == PL_FRAME_PUSH)
        before++;
    assert_in_range(before, 0, 16);
    pl_endpoint_free(client, 0);
    pl_endpoint_free(server, 0);
    free(bytes);
}

static void transport_rows_are_the_choices_of_a_flag(void **state)
{
    (void)state;
    char choices[64] = "auto";
    assert_null(pl_transport_chosen(0));
    for (int i = 0; pl_transports()[i] != NULL; i++) {
        assert_ptr_equal(pl_transports()[i], pl_transport_chosen(i + 1));
        strcat(strcat(choices, "|"), pl_transports()[i]->name);
    }
    assert_string_equal(PL_TRANSPORT_CHOICES, choices);
    assert_null(pl_transports()[0]->upgrade);
}

UNIT_TESTS(cmocka_unit_test(transport_connects_through_the_same_endpoint),
           cmocka_unit_test(transport_that_cannot_open_leaves_nothing),
           cmocka_unit_test(transport_upgrades_a_connection),
           cmocka_unit_test(transport_refused_upgrade_keeps_the_connection),
           cmocka_unit_test(transport_upgrade_does_not_starve_the_connection),
           cmocka_unit_test(transport_rows_are_the_choices_of_a_flag))
