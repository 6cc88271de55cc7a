#include "net/endpoint_priv.h"
#include "net/shm/channel.h"
#include "net/tcp/tcp.h"
#include "support/net.h"

#include <dirent.h>
#include <sched.h>
#include <sys/ioctl.h>

#define AREA_BYTES ((size_t)1 << 20)

/* A server and a client in this process that share memory. */
typedef struct couple {
    pl_area *server_area, *client_area;
    pl_endpoint *server, *client;
} couple;

static pl_area *net_area(uint8_t seed)
{
    pl_area *area = NULL;
    assert_ok(pl_area_new(&area, AREA_BYTES));
    uint8_t *bytes = net_bytes(AREA_BYTES, seed);
    memcpy(pl_area_data(area), bytes, AREA_BYTES);
    free(bytes);
    return area;
}

/* The client's part of joining: JOIN with the offer, WELCOME, complete. */
static void join(pl_endpoint *client)
{
    char offer[PL_OFFER_BYTES], answer[PL_OFFER_BYTES];
    assert_ok(pl_endpoint_offer(client, offer));
    net_send(client, 0, PL_FRAME_JOIN, 1, offer, strlen(offer) + 1, false);
    pl_message welcome = net_receive(client);
    assert_int_equal(PL_FRAME_WELCOME, welcome.frame.kind);
    strcpy(answer, welcome.payload);
    assert_ok(pl_endpoint_complete(client, answer));
}

/* The server's part; returns who joined. */
static pl_peer answer_join(pl_endpoint *server, const pl_message *message)
{
    assert_int_equal(PL_FRAME_JOIN, message->frame.kind);
    char answer[PL_OFFER_BYTES];
    pl_peer from = message->from; /* the message goes with the next one */
    assert_ok(pl_endpoint_accept(server, from, message->payload, answer));
    net_send(server, from, PL_FRAME_WELCOME, 1, answer, strlen(answer) + 1,
             false);
    return from;
}

static pl_peer welcome(pl_endpoint *server)
{
    pl_message message = net_receive(server);
    return answer_join(server, &message);
}

static void couple_open(couple *c, bool server_tcp, bool client_tcp)
{
    c->server_area = net_area(1);
    c->client_area = net_area(2);
    assert_ok(pl_endpoint_listen(
        &c->server, &(pl_endpoint_opts) {
                        .address = "127.0.0.1:0",
                        .name = "ps 0",
                        .area = c->server_area,
                        .transport = server_tcp ? &pl_transport_tcp : NULL }));
    assert_ok(pl_endpoint_connect(
        &c->client, &(pl_endpoint_opts) {
                        .address = pl_endpoint_address(c->server),
                        .name = "worker 0",
                        .area = c->client_area,
                        .transport = client_tcp ? &pl_transport_tcp : NULL }));
    char offer[PL_OFFER_BYTES], answer[PL_OFFER_BYTES];
    assert_ok(pl_endpoint_offer(c->client, offer));
    net_send(c->client, 0, PL_FRAME_JOIN, 0, NULL, 0, false);
    net_expect(c->server, PL_FRAME_JOIN, 0, NULL, 0);
    assert_ok(pl_endpoint_accept(c->server, 0, offer, answer));
    assert_false(pl_endpoint_shared(c->server, 0));
    assert_ok(pl_endpoint_complete(c->client, answer));
}

static int couple_make(void **state)
{
    couple *c = calloc(1, sizeof *c);
    couple_open(c, false, false);
    *state = c;
    return pl_endpoint_shared(c->client, 0) && pl_endpoint_shared(c->server, 0)
               ? 0
               : -1;
}

static int couple_free(void **state)
{
    couple *c = *state;
    pl_endpoint_free(c->client, 0);
    pl_endpoint_free(c->server, 0);
    pl_area_free(c->client_area);
    pl_area_free(c->server_area);
    free(c);
    return 0;
}

static void shared_payloads_in_an_area_are_not_moved(void **state)
{
    couple *c = *state;
    uint8_t *pushed = (uint8_t *)pl_area_data(c->client_area) + 4096;
    net_send(c->client, 0, PL_FRAME_PUSH, 1, pushed, 500000, true);
    pl_message got = net_expect(c->server, PL_FRAME_PUSH, 1, pushed, 500000);
    assert_non_null(got.lease);
    assert_ptr_not_equal(pushed, got.payload);
    const uint8_t *seen = got.payload;
    pushed[77] ^= 0xff; /* the same memory */
    assert_int_equal(pushed[77], seen[77]);

    const uint8_t *params = pl_area_data(c->server_area);
    net_send(c->server, 0, PL_FRAME_PARAMS, 2, params, AREA_BYTES, true);
    got = net_expect(c->client, PL_FRAME_PARAMS, 2, params, AREA_BYTES);
    assert_non_null(got.lease);
    /* It stays where it is after further messages. */
    const void *kept = got.payload;
    net_send(c->server, 0, PL_FRAME_ACK, 3, NULL, 0, false);
    net_expect(c->client, PL_FRAME_ACK, 3, NULL, 0);
    assert_memory_equal(params, kept, AREA_BYTES);
}

static void shared_small_payloads_are_copied(void **state)
{
    couple *c = *state;
    uint8_t text[] = "not in the area", same[] = "not in the area";
    net_send(c->client, 0, PL_FRAME_BYE, 1, text, sizeof text, true);
    memset(text, 0, sizeof text);
    pl_message got = net_expect(c->server, PL_FRAME_BYE, 1, same, sizeof same);
    assert_null(got.lease);
    /* In the area, but it may change: a copy too. */
    uint8_t *own = pl_area_data(c->client_area);
    uint8_t *before = net_bytes(31000, 2);
    net_send(c->client, 0, PL_FRAME_PUSH, 2, own, 31000, false);
    memset(own, 0, 31000);
    got = net_expect(c->server, PL_FRAME_PUSH, 2, before, 31000);
    assert_null(got.lease);
    /* Askew in the area: the receiver still gets it aligned. */
    net_send(c->client, 0, PL_FRAME_PUSH, 3, own + 31003, 100, true);
    net_expect(c->server, PL_FRAME_PUSH, 3, own + 31003, 100);
    free(before);
}

static void shared_large_payloads_outside_go_over_tcp(void **state)
{
    couple *c = *state;
    static uint8_t bytes[200000]; /* lasts longer than the endpoints */
    memset(bytes, 9, sizeof bytes);
    net_send(c->client, 0, PL_FRAME_PUSH, 1, bytes, 200000, false);
    net_expect(c->server, PL_FRAME_PUSH, 1, bytes, 200000);
    net_send(c->server, 0, PL_FRAME_PARAMS, 2, bytes, 200000, true);
    net_expect(c->client, PL_FRAME_PARAMS, 2, bytes, 200000);
}

static void shared_rings_overflow_into_tcp(void **state)
{
    couple *c = *state;
    const uint64_t count = 1000; /* the room is for 64 of them */
    bool seen[1000] = { false };
    uint8_t *bytes = net_bytes(1000, 5);
    for (uint64_t i = 0; i < count; i++)
        net_send(c->client, 0, PL_FRAME_PUSH, i, bytes, 1000, false);
    for (uint64_t i = 0; i < count; i++) {
        pl_message got = net_receive(c->server);
        assert_memory_equal(bytes, got.payload, 1000);
        assert_false(seen[got.frame.sequence]);
        seen[got.frame.sequence] = true;
    }
    assert_int_equal(0, pl_endpoint_count(c->client).dropped_messages);
    free(bytes);
}

/* All that the connection delivers has arrived at this host. */
static void await_bytes(const pl_endpoint *server, pl_peer peer, int bytes)
{
    pl_deadline deadline = net_soon();
    int there = 0;
    while (there < bytes) {
        assert_false(pl_deadline_passed(deadline));
        assert_int_equal(
            0, ioctl(pl_tcp_of(server)->links[peer]->fd, FIONREAD, &there));
        sched_yield();
    }
}

/* Heartbeats do not queue behind the gradients of others. */
static void shared_messages_do_not_delay_tcp_messages(void **state)
{
    couple *c = *state;
    const int heartbeats = 32, pushes = 400;
    pl_endpoint *other = net_connect(pl_endpoint_address(c->server));
    net_send(other, 0, PL_FRAME_HEARTBEAT, 0, NULL, 0, false);
    pl_peer peer = net_expect(c->server, PL_FRAME_HEARTBEAT, 0, NULL, 0).from;
    for (int i = 0; i < heartbeats; i++)
        net_send(other, 0, PL_FRAME_HEARTBEAT, 1, NULL, 0, false);
    await_bytes(c->server, peer, heartbeats * PL_FRAME_BYTES);
    for (int i = 0; i < pushes; i++)
        net_send(c->client, 0, PL_FRAME_PUSH, 2, NULL, 0, false);
    int pushed = 0;
    for (int heard = 0; heard < heartbeats;) {
        pl_message message = net_receive(c->server);
        if (message.frame.kind == PL_FRAME_HEARTBEAT)
            heard++;
        else
            pushed++;
    }
    assert_true(pushed <= 16);
    for (; pushed < pushes; pushed++)
        net_expect(c->server, PL_FRAME_PUSH, 2, NULL, 0);
    pl_endpoint_free(other, 0);
}

/* Malformed frames of a peer are refused; good frames after them still arrive.
 */
static void shared_offsets_out_of_range_are_refused(void **state)
{
    couple *c = *state;
    static const struct {
        uint32_t place, bytes;
        uint64_t offset;
    } wrong[] = {
        { PL_PAYLOAD_AREA, 64, AREA_BYTES - 56 },
        { PL_PAYLOAD_AREA, 64, UINT64_MAX - 7 },
        { PL_PAYLOAD_AREA, 64, 4 },
        { PL_PAYLOAD_INLINE, 64, PL_RING_INLINE - 56 },
        { PL_PAYLOAD_INLINE, 64, (uint64_t)1 << 40 },
        { PL_PAYLOAD_AREA, 72, 0 }, /* not what the frame says */
        { PL_PAYLOAD_NONE, 64, 0 },
        { 3, 64, 0 },
    };
    const size_t count = sizeof wrong / sizeof *wrong;
    pl_ring_memory *ring =
        ((pl_channel *)c->client->peers.entries[0].link)->out.memory;
    const uint8_t *own = pl_area_data(c->client_area);
    for (size_t i = 0; i < count; i++) {
        net_send(c->client, 0, PL_FRAME_PUSH, i, own, 64, true);
        pl_ring_slot *slot = &ring->slots[i];
        slot->place = wrong[i].place;
        slot->bytes = wrong[i].bytes;
        slot->offset = wrong[i].offset;
    }
    net_send(c->client, 0, PL_FRAME_PUSH, 99, own, 64, true);
    ring->slots[count].frame[0] = 'X';
    net_send(c->client, 0, PL_FRAME_PUSH, 100, own, 64, true);
    net_expect(c->server, PL_FRAME_PUSH, 100, own, 64);
    assert_int_equal(count + 1, pl_endpoint_count(c->server).refused_messages);
}

static void shared_rings_with_impossible_counts_are_abandoned(void **state)
{
    couple *c = *state;
    pl_channel *channel = c->client->peers.entries[0].link;
    atomic_store(&channel->out.memory->written, 100000);
    pl_message none;
    assert_int_equal(PL_TIMEOUT,
                     pl_endpoint_receive(c->server, &none, net_now()));
    assert_false(pl_endpoint_shared(c->server, 0));
    assert_int_equal(1, pl_endpoint_count(c->server).refused_messages);
    /* TCP still works. */
    net_send(c->server, 0, PL_FRAME_ACK, 1, NULL, 0, false);
    net_expect(c->client, PL_FRAME_ACK, 1, NULL, 0);
    atomic_store(&channel->in.memory->read, 7);
    channel = c->server->peers.entries[0].link;
    channel->dead = false;
    net_send(c->server, 0, PL_FRAME_ACK, 2, NULL, 0, false);
    net_expect(c->client, PL_FRAME_ACK, 2, NULL, 0);
    assert_true(channel->dead);
}

static void shared_peers_notice_when_one_closes(void **state)
{
    couple *c = *state;
    net_send(c->client, 0, PL_FRAME_BYE, 1, "bye", 3, false);
    pl_endpoint_free(c->client, 0);
    c->client = NULL;
    assert_false(pl_endpoint_shared(c->server, 0));
    net_expect(c->server, PL_FRAME_BYE, 1, "bye", 3);
    pl_endpoint_drop(c->server, 0);
}

static void shared_memory_can_be_offered_again(void **state)
{
    couple *c = *state;
    char offer[PL_OFFER_BYTES], answer[PL_OFFER_BYTES];
    for (int i = 0; i < 3; i++) {
        assert_ok(pl_endpoint_offer(c->client, offer));
        assert_false(pl_endpoint_shared(c->client, 0));
        assert_ok(pl_endpoint_accept(c->server, 0, offer, answer));
        assert_ok(pl_endpoint_complete(c->client, answer));
        assert_true(pl_endpoint_shared(c->client, 0));
        net_send(c->client, 0, PL_FRAME_HEARTBEAT, 5, NULL, 0, false);
        net_expect(c->server, PL_FRAME_HEARTBEAT, 5, NULL, 0);
    }
}

/* A waiting client repeats its offer, even when the answer is on its way. */
static void shared_memory_offered_twice_is_accepted_once(void **state)
{
    couple *c = *state;
    char offer[PL_OFFER_BYTES], answer[PL_OFFER_BYTES], again[PL_OFFER_BYTES];
    assert_ok(pl_endpoint_offer(c->client, offer));
    assert_ok(pl_endpoint_accept(c->server, 0, offer, answer));
    assert_ok(pl_endpoint_accept(c->server, 0, offer, again));
    assert_string_equal(answer, again);
    assert_ok(pl_endpoint_complete(c->client, answer));
    assert_ok(pl_endpoint_accept(c->server, 0, offer, again));
    assert_string_equal(answer, again);
    assert_true(pl_endpoint_shared(c->client, 0));
    assert_true(pl_endpoint_shared(c->server, 0));
    net_send(c->client, 0, PL_FRAME_HEARTBEAT, 5, NULL, 0, false);
    net_expect(c->server, PL_FRAME_HEARTBEAT, 5, NULL, 0);
}

static void shared_memory_can_be_declined(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        couple c = { 0 };
        couple_open(&c, i == 0, i == 1);
        assert_false(pl_endpoint_shared(c.server, 0));
        assert_false(pl_endpoint_shared(c.client, 0));
        net_send(c.client, 0, PL_FRAME_HEARTBEAT, 1, NULL, 0, false);
        net_expect(c.server, PL_FRAME_HEARTBEAT, 1, NULL, 0);
        pl_endpoint_free(c.client, 0);
        pl_endpoint_free(c.server, 0);
        pl_area_free(c.client_area);
        pl_area_free(c.server_area);
    }
}

static void shared_false_offers_stay_with_tcp(void **state)
{
    couple *c = *state;
    char offer[PL_OFFER_BYTES], answer[PL_OFFER_BYTES];
    assert_ok(pl_endpoint_offer(c->client, offer));
    size_t length = strlen(offer);
    /* Each place of the text changed, and each beginning of it. */
    for (size_t i = 0; i < length; i++) {
        char changed[PL_OFFER_BYTES];
        strcpy(changed, offer);
        changed[i] = changed[i] == '1' ? '2' : '1';
        assert_ok(pl_endpoint_accept(c->server, 0, changed, answer));
        if (answer[0] != 0)
            fail_msg("accepted with a change at %zu: %s", i, changed);
        changed[i] = 0;
        assert_ok(pl_endpoint_accept(c->server, 0, changed, answer));
        assert_int_equal(0, answer[0]);
    }
    assert_ok(pl_endpoint_accept(c->server, 0, offer, answer));
    assert_int_not_equal(0, answer[0]);
    answer[strlen(answer) - 1] ^= 1;
    assert_ok(pl_endpoint_complete(c->client, answer));
    assert_false(pl_endpoint_shared(c->client, 0));
    assert_false(pl_endpoint_shared(c->server, 0));
}

static void shared_calls_survive_failed_allocations(void **state)
{
    couple *c = *state;
    char offer[PL_OFFER_BYTES], answer[PL_OFFER_BYTES];
    bool failed = true;
    for (long nth = 0; failed; nth++) {
        pl_mem_fail_at(nth);
        pl_status status = pl_endpoint_offer(c->client, offer);
        failed = pl_mem_fail_off();
        assert_int_equal(failed ? PL_NOMEM : PL_OK, status);
    }
    failed = true;
    for (long nth = 0; failed; nth++) {
        pl_mem_fail_at(nth);
        pl_status status = pl_endpoint_accept(c->server, 0, offer, answer);
        failed = pl_mem_fail_off();
        assert_int_equal(failed ? PL_NOMEM : PL_OK, status);
    }
    assert_ok(pl_endpoint_complete(c->client, answer));
    assert_true(pl_endpoint_shared(c->client, 0));
}

static int open_files(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

/* A worker that joins over shared memory, then sends request after request. */
static int ask_for_ever(void *arg)
{
    pl_endpoint *client = NULL;
    pl_endpoint_opts opts = { .address = arg,
                              .name = "worker 0",
                              .area = net_area(3) };
    assert_ok(pl_endpoint_connect(&client, &opts));
    join(client);
    for (uint64_t i = 0; i < UINT64_MAX; i++) {
        net_send(client, 0, PL_FRAME_PULL, i, NULL, 0, false);
        net_receive(client);
    }
    return 1;
}

static void shared_peer_killed_is_noticed_and_leaves_nothing(void **state)
{
    (void)state;
    NET_SKIP_FORKS();
    pl_endpoint *server = net_listen("127.0.0.1:0");
    int files = open_files();
    for (int round = 0; round < 3; round++) {
        pid_t child = net_fork(ask_for_ever,
                               (void *)(uintptr_t)pl_endpoint_address(server));
        pl_peer peer = welcome(server);
        for (uint64_t i = 0; i < 200; i++) {
            pl_message got = net_expect(server, PL_FRAME_PULL, i, NULL, 0);
            net_send(server, got.from, PL_FRAME_PARAMS, i, "abc", 3, false);
        }
        assert_true(pl_endpoint_shared(server, peer));
        net_expect(server, PL_FRAME_PULL, 200, NULL, 0);
        net_kill(child);
        /* Waiting for it ends at the deadline and not before. */
        pl_message none;
        pl_deadline soon = net_soon();
        do
            assert_int_equal(
                PL_TIMEOUT,
                pl_endpoint_receive(server, &none,
                                    pl_deadline_in_ms(pl_clock_real(), 20)));
        while (pl_endpoint_shared(server, peer) && !pl_deadline_passed(soon));
        assert_false(pl_endpoint_shared(server, peer));
        net_send(server, peer, PL_FRAME_OVER, 1, NULL, 0, false);
        pl_endpoint_drop(server, peer);
    }
    /* The bell stays, connections of the dead go when the server looks. */
    pl_message none;
    while (open_files() > files + 2)
        assert_int_equal(
            PL_TIMEOUT,
            pl_endpoint_receive(server, &none,
                                pl_deadline_in_ms(pl_clock_real(), 1)));
    pl_endpoint_free(server, 0);
}

static int lines_of(const char *path)
{
    int count = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (int c = getc(file); c != EOF; c = getc(file))
        count += c == '\n';
    fclose(file);
    return count;
}

/* Joins, pushes from its area, and dies without a goodbye. */
static int push_and_die(void *arg)
{
    pl_endpoint *client = NULL;
    pl_area *area = NULL;
    assert_ok(pl_area_new(&area, 4096));
    pl_endpoint_opts opts = { .address = arg,
                              .name = "worker 0",
                              .area = area };
    assert_ok(pl_endpoint_connect(&client, &opts));
    join(client);
    net_send(client, 0, PL_FRAME_PUSH, 1, pl_area_data(area), 4096, true);
    return pl_endpoint_shared(client, 0) ? 0 : 1;
}

/* After this many deaths: as many descriptors as `files` again, sooner or later
 * (the transport closes connections of the dead). */
static void wait_for_files(pl_endpoint *server, int files)
{
    pl_deadline soon = net_soon();
    pl_message none;
    while (open_files() > files && !pl_deadline_passed(soon))
        assert_int_equal(
            PL_TIMEOUT,
            pl_endpoint_receive(server, &none,
                                pl_deadline_in_ms(pl_clock_real(), 1)));
    assert_true(open_files() <= files);
}

enum {
    FEW = 10,
    MANY = 1000
};

/* One client after the other.  They are made by a process without threads:
 * what a sanitizer's allocator has locked in another would stay locked. */
static int let_many_die(void *arg)
{
    const int *address_pipe = arg;
    char address[64] = "";
    if (read(*address_pipe, address, sizeof address - 1) <= 0)
        return 1;
    for (int i = 0; i < MANY; i++)
        net_wait(net_fork(push_and_die, address));
    return 0;
}

/* They are not dropped: a server does not know which of its peers is gone. */
static void shared_a_thousand_deaths_leave_no_more_than_ten(void **state)
{
    (void)state;
    NET_SKIP_FORKS();
    int pipes[2];
    assert_int_equal(0, pipe(pipes));
    pid_t maker = net_fork(let_many_die, &pipes[0]);
    pl_endpoint *server = NULL;
    assert_ok(pl_endpoint_listen(&server,
                                 &(pl_endpoint_opts) { .address = "127.0.0.1:0",
                                                       .name = "ps 0",
                                                       .peers_max = 8 }));
    int files = open_files(), maps = 0;
    const char *address = pl_endpoint_address(server);
    assert_int_equal(strlen(address),
                     write(pipes[1], address, strlen(address)));
    /* A client may join before the gradient of the one before it is read. */
    for (int pushes = 0; pushes < MANY;) {
        pl_message got = net_receive(server);
        if (got.frame.kind == PL_FRAME_JOIN) {
            pl_endpoint_keep(server, answer_join(server, &got));
            continue; /* it is a task of the job */
        }
        assert_int_equal(PL_FRAME_PUSH, got.frame.kind);
        assert_non_null(got.lease);
        if (++pushes == FEW)
            maps = lines_of("/proc/self/maps");
    }
    net_wait(maker);
    wait_for_files(server, files + 2); /* the bell */
    /* What the C library takes for itself; each death would leave two. */
    assert_true(lines_of("/proc/self/maps") < maps + MANY / 10);
    pl_endpoint_free(server, 0);
    close(pipes[0]);
    close(pipes[1]);
}

/* Eight malformed messages drop a peer, at any time. */
static void shared_payloads_stay_while_they_are_held(void **state)
{
    couple *c = *state;
    char offer[PL_OFFER_BYTES], answer[PL_OFFER_BYTES];
    const uint8_t *pushed = pl_area_data(c->client_area);
    pl_lease *leases[2];
    const void *seen[2];
    for (int round = 0; round < 2; round++) {
        net_send(c->client, 0, PL_FRAME_PUSH, 1, pushed, AREA_BYTES, true);
        pl_message got =
            net_expect(c->server, PL_FRAME_PUSH, 1, pushed, AREA_BYTES);
        leases[round] = pl_lease_hold(got.lease);
        seen[round] = got.payload;
        assert_true(pl_lease_covers(got.lease, got.payload, AREA_BYTES));
        assert_false(pl_lease_covers(got.lease, got.payload, AREA_BYTES + 1));
        if (round == 0) { /* the worker shares again */
            assert_ok(pl_endpoint_offer(c->client, offer));
            assert_ok(pl_endpoint_accept(c->server, 0, offer, answer));
            assert_ok(pl_endpoint_complete(c->client, answer));
        } else {
            pl_endpoint_drop(c->server, 0);
        }
        assert_memory_equal(pushed, seen[round], AREA_BYTES);
    }
    for (int round = 0; round < 2; round++) {
        assert_memory_equal(pushed, seen[round], AREA_BYTES);
        pl_lease_release(leases[round]);
    }
}

static void shared_memory_between_processes_keeps_the_order(void **state)
{
    (void)state;
    NET_SKIP_FORKS();
    pl_endpoint *server = net_listen("127.0.0.1:0");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        pl_endpoint *client = NULL;
        pl_area *area = net_area(3);
        pl_endpoint_opts opts = { .address = pl_endpoint_address(server),
                                  .name = "worker 0",
                                  .area = area };
        assert_ok(pl_endpoint_connect(&client, &opts));
        join(client);
        const uint8_t *data = pl_area_data(area);
        for (uint64_t i = 0; i < 2000; i++) {
            bool in_area = i % 3 == 0;
            net_send(client, 0, PL_FRAME_PUSH, i, data + 8 * i,
                     in_area ? 50000 : 300, in_area);
            if (i % 7 == 0)
                net_receive(client);
        }
        net_send(client, 0, PL_FRAME_BYE, 0, NULL, 0, false);
        pl_endpoint_free(client, 1000);
        pl_area_free(area);
        _exit(0);
    }
    uint8_t *same = net_bytes(AREA_BYTES, 3);
    pl_peer peer = welcome(server);
    for (uint64_t i = 0; i < 2000; i++) {
        net_expect(server, PL_FRAME_PUSH, i, same + 8 * i,
                   i % 3 == 0 ? 50000 : 300);
        if (i % 7 == 0)
            net_send(server, peer, PL_FRAME_ACK, i, same, 1000, false);
    }
    net_expect(server, PL_FRAME_BYE, 0, NULL, 0);
    net_wait(child);
    pl_endpoint_free(server, 0);
    free(same);
}

#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, couple_make, couple_free)
UNIT_TESTS(TEST(shared_payloads_in_an_area_are_not_moved),
           TEST(shared_payloads_stay_while_they_are_held),
           cmocka_unit_test(shared_a_thousand_deaths_leave_no_more_than_ten),
           TEST(shared_small_payloads_are_copied),
           TEST(shared_large_payloads_outside_go_over_tcp),
           TEST(shared_rings_overflow_into_tcp),
           TEST(shared_messages_do_not_delay_tcp_messages),
           TEST(shared_offsets_out_of_range_are_refused),
           TEST(shared_rings_with_impossible_counts_are_abandoned),
           TEST(shared_peers_notice_when_one_closes),
           TEST(shared_memory_can_be_offered_again),
           TEST(shared_memory_offered_twice_is_accepted_once),
           cmocka_unit_test(shared_memory_can_be_declined),
           TEST(shared_false_offers_stay_with_tcp),
           TEST(shared_calls_survive_failed_allocations),
           cmocka_unit_test(shared_peer_killed_is_noticed_and_leaves_nothing),
           cmocka_unit_test(shared_memory_between_processes_keeps_the_order))
