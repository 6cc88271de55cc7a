/* The upgrade of a connection between two tasks of one host: shared memory.
 *
 * Design.  Every peer of this host has a channel with two rings.  The rings
 * need no system call while both sides are awake.  A task with nothing to do
 * announces it in each of its rings, checks once more, and polls: its doorbell
 * and its peers' processes, besides the descriptors of the connection.  The
 * doorbell is one pipe for all peers; they opened it through /proc and write a
 * byte when a ring's reader sleeps.  So one thread waits for all routes at
 * once, and the end of a process wakes it, too.
 *
 * A channel whose peer has ended or closed it is no longer written to (messages
 * take the connection, to the restarted process).  Its remaining frames are
 * read; then it is closed, with its descriptors and mappings: a long-running
 * server sees many workers come and go.  Only the peer's area stays mapped
 * while a payload in it is in use (net/shm/lease.h). */
#include "base/assert.h"
#include "base/mem.h"
#include "net/endpoint_priv.h"
#include "net/shm/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* What is polled: the doorbell, then the process of each peer. */
enum {
    POLL_BELL,
    POLL_PEERS
};

typedef struct pl_shm {
    pl_route route;
    int bell[2];      /* a pipe that peers write to */
    pl_peer *sharing; /* the peers that have a channel */
    int32_t sharing_count;
    uint32_t turn;    /* whose channel is polled first */
    pl_channel *held; /* holds the message last received */
} pl_shm;

static pl_peer_entry *entry_of(const pl_shm *shm, pl_peer peer)
{
    const pl_peers *peers = &shm->route.endpoint->peers;
    PL_ASSERT(peer >= 0 && peer < peers->count);
    return &peers->entries[peer];
}

static pl_channel *channel_of(const pl_shm *shm, pl_peer peer)
{
    return entry_of(shm, peer)->link;
}

static void set_count(pl_shm *shm, int32_t count)
{
    shm->sharing_count = count;
    shm->route.polls = POLL_PEERS + count;
}

/* Make room for one more peer in the list. */
static pl_status need_room(pl_shm *shm)
{
    size_t count = (size_t)shm->sharing_count + 1;
    PL_TRY(PL_RESIZE(shm->sharing, count));
    return PL_OK;
}

static void put_channel(pl_shm *shm, pl_peer peer, pl_channel *channel)
{
    pl_peer_entry *entry = entry_of(shm, peer);
    entry->upgrade = &shm->route;
    entry->link = channel;
    shm->sharing[shm->sharing_count] = peer;
    set_count(shm, shm->sharing_count + 1);
}

static void drop(pl_shm *shm, pl_peer peer)
{
    pl_peer_entry *entry = entry_of(shm, peer);
    pl_channel *channel = entry->link;
    if (shm->held == channel)
        shm->held = NULL;
    int32_t at = 0;
    while (shm->sharing[at] != peer)
        at++;
    set_count(shm, shm->sharing_count - 1);
    shm->sharing[at] = shm->sharing[shm->sharing_count];
    entry->upgrade = NULL;
    entry->link = NULL;
    pl_channel_free(channel);
}

static void shm_drop(pl_route *route, pl_peer peer)
{
    drop((pl_shm *)route, peer);
}

static void shm_close(pl_route *route, int linger_ms)
{
    (void)linger_ms; /* written frames stay readable */
    pl_shm *shm = (pl_shm *)route;
    while (shm->sharing_count > 0)
        drop(shm, shm->sharing[0]);
    for (size_t i = 0; i < 2; i++)
        if (shm->bell[i] >= 0)
            close(shm->bell[i]);
    pl_mem_free(shm->sharing);
    pl_mem_free(shm);
}

static pl_status shm_open(pl_route **out, pl_endpoint *endpoint,
                          const pl_endpoint_opts *opts)
{
    (void)opts;
    pl_shm *shm;
    PL_TRY(PL_NEW(shm, 1));
    shm->route = (pl_route) { &pl_transport_shm, endpoint, 0 };
    set_count(shm, 0);
    if (pipe2(shm->bell, O_CLOEXEC | O_NONBLOCK) != 0) {
        pl_mem_free(shm);
        return PL_FAIL(PL_IO, "pipe: %s", strerror(errno));
    }
    *out = &shm->route;
    return PL_OK;
}

/* --- agreeing ------------------------------------------------------------- */

static pl_status make_offer(pl_route *route, char offer[PL_OFFER_BYTES])
{
    pl_shm *shm = (pl_shm *)route;
    pl_share_offer own;
    pl_channel *channel = NULL;
    PL_TRY(need_room(shm));
    PL_TRY(pl_share_init(&own, route->endpoint->area, shm->bell[0]));
    PL_TRY(pl_channel_new(&channel, &own));
    put_channel(shm, 0, channel);
    pl_share_write(&own, offer);
    return PL_OK;
}

/* Close the channels through which nothing more will arrive. */
static void reap(pl_shm *shm)
{
    for (int32_t i = shm->sharing_count - 1; i >= 0; i--) {
        const pl_channel *channel = channel_of(shm, shm->sharing[i]);
        if (channel != shm->held && pl_channel_over(channel))
            drop(shm, shm->sharing[i]);
    }
}

/* A server that is never idle does not sleep, so poll does not report ended
 * peers. */
static void notice_ends(pl_shm *shm)
{
    for (int32_t i = 0; i < shm->sharing_count; i++) {
        pl_channel *channel = channel_of(shm, shm->sharing[i]);
        struct pollfd ended = { channel->watch, POLLIN, 0 };
        if (!channel->dead && poll(&ended, 1, 0) > 0)
            channel->dead = true;
    }
    reap(shm);
}

static pl_status accept_offer(pl_route *route, pl_peer peer, const char *offer,
                              char answer[PL_OFFER_BYTES])
{
    pl_shm *shm = (pl_shm *)route;
    pl_endpoint *e = route->endpoint;
    pl_share_offer own, client;
    pl_channel *channel = NULL;
    notice_ends(shm);
    PL_TRY(pl_share_read(&client, offer));
    PL_TRY(pl_share_init(&own, e->area, shm->bell[0]));
    memcpy(own.nonce, client.nonce, sizeof own.nonce);
    /* The same offer again: the client missed the answer. */
    pl_channel *before = channel_of(shm, peer);
    if (before != NULL && pl_channel_is(before, &client)) {
        pl_share_write(&own, answer);
        return PL_OK;
    }
    if (before != NULL)
        drop(shm, peer);
    PL_TRY(need_room(shm));
    if (strcmp(own.host, client.host) != 0)
        return PL_FAIL(PL_UNSUPPORTED, "%s is on another host",
                       pl_endpoint_peer_text(e, peer));
    PL_TRY(pl_channel_open(&channel, &client));
    put_channel(shm, peer, channel);
    pl_share_write(&own, answer);
    return PL_OK;
}

static pl_status use_answer(pl_route *route, const char *answer)
{
    pl_share_offer server;
    PL_TRY(pl_share_read(&server, answer));
    return pl_channel_complete(channel_of((pl_shm *)route, 0), &server);
}

static bool serves(const pl_route *route, pl_peer peer)
{
    return pl_channel_live(channel_of((const pl_shm *)route, peer));
}

/* --- messages ------------------------------------------------------------- */

/* A peer with inconsistent rings is served by the connection from now on. */
static void give_up(pl_shm *shm, pl_peer peer)
{
    pl_endpoint *e = shm->route.endpoint;
    pl_endpoint_refuse(e, pl_endpoint_peer_text(e, peer), pl_error_message());
}

static pl_status shm_send(pl_route *route, pl_peer to, const pl_frame *frame,
                          const void *payload, bool lasting)
{
    pl_shm *shm = (pl_shm *)route;
    pl_channel *channel = channel_of(shm, to);
    if (!pl_channel_live(channel))
        return PL_AGAIN;
    pl_status status = pl_channel_send(channel, frame, payload, lasting,
                                       route->endpoint->area);
    if (status == PL_PEER)
        give_up(shm, to);
    return status == PL_PEER ? PL_AGAIN : status;
}

/* The next good frame of one channel. */
static pl_status take_from(pl_shm *shm, pl_peer peer, pl_message *out)
{
    pl_channel *channel = channel_of(shm, peer);
    for (;;) {
        pl_status status =
            pl_channel_peek(channel, &out->frame, &out->payload, &out->lease);
        if (status == PL_AGAIN)
            return PL_AGAIN;
        if (status == PL_OK) {
            out->from = peer;
            shm->held = channel;
            return PL_OK;
        }
        give_up(shm, peer);
        if (status == PL_PEER)
            return PL_AGAIN;
        pl_channel_advance(channel);
    }
}

static pl_status shm_take(pl_route *route, pl_message *out)
{
    pl_shm *shm = (pl_shm *)route;
    if (shm->held != NULL)
        pl_channel_advance(shm->held);
    shm->held = NULL;
    uint32_t count = (uint32_t)shm->sharing_count;
    for (uint32_t i = 0; i < count; i++) {
        pl_peer peer = shm->sharing[(shm->turn + i) % count];
        pl_status status = take_from(shm, peer, out);
        if (status != PL_AGAIN) {
            shm->turn = (shm->turn + i + 1) % count;
            return status;
        }
    }
    return PL_AGAIN;
}

/* Request a wake-up; false when there is a frame. */
static bool all_empty(pl_shm *shm)
{
    for (int32_t i = 0; i < shm->sharing_count; i++)
        pl_ring_sleep(&channel_of(shm, shm->sharing[i])->in);
    for (int32_t i = 0; i < shm->sharing_count; i++) {
        const pl_channel *channel = channel_of(shm, shm->sharing[i]);
        if (!channel->broken && !pl_ring_empty(&channel->in))
            return false;
    }
    return true;
}

static bool shm_sleep(pl_route *route, struct pollfd *polls, int64_t *until_ns)
{
    (void)until_ns;
    pl_shm *shm = (pl_shm *)route;
    polls[POLL_BELL] = (struct pollfd) { shm->bell[0], POLLIN, 0 };
    for (int32_t i = 0; i < shm->sharing_count; i++) {
        const pl_channel *channel = channel_of(shm, shm->sharing[i]);
        polls[POLL_PEERS + i] =
            (struct pollfd) { channel->dead ? -1 : channel->watch, POLLIN, 0 };
    }
    return all_empty(shm);
}

static void shm_wake(pl_route *route, const struct pollfd *polls)
{
    pl_shm *shm = (pl_shm *)route;
    char bytes[256];
    if ((polls[POLL_BELL].revents & POLLIN) != 0)
        while (read(shm->bell[0], bytes, sizeof bytes) == (ssize_t)sizeof bytes)
            ;
    for (int32_t i = 0; i < shm->sharing_count; i++) {
        pl_channel *channel = channel_of(shm, shm->sharing[i]);
        pl_ring_wake(&channel->in);
        if (polls[POLL_PEERS + i].revents != 0)
            channel->dead = true;
    }
    reap(shm);
}

static const pl_upgrade upgrade = {
    .mark = "plshm",
    .needs = "both tasks on one host, run by the same user",
    .offer = make_offer,
    .accept = accept_offer,
    .complete = use_answer,
    .serves = serves,
    .drop = shm_drop,
};

const pl_transport pl_transport_shm = {
    .name = "shm",
    .open = shm_open,
    .close = shm_close,
    .send = shm_send,
    .take = shm_take,
    .sleep = shm_sleep,
    .wake = shm_wake,
    .upgrade = &upgrade,
};
