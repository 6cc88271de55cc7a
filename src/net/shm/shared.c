/* The part of an endpoint that shares memory.
 *
 * Design.  Every peer of this host has a channel with two rings.  The rings
 * need no system call while both sides are awake.  Who finds nothing to do
 * says so in each of its rings, looks once more, and polls: TCP's
 * descriptor, its doorbell, and its peers' processes.  The doorbell is one
 * pipe for all peers; they opened it through /proc and write a byte when a
 * ring says that its reader sleeps.  So one thread waits for both ways at
 * once, and the end of a process wakes it too.
 *
 * A channel whose peer has ended or closed it is not written to any more
 * (messages go over TCP, to whoever is there next).  What it still holds is
 * read; then it is closed, with its descriptors and mappings: a server that
 * runs for long sees many workers come and go.  Only the peer's area stays
 * while a payload in it is in use (net/shm/lease.h). */
#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/endpoint_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pl_channel *channel_of(const pl_endpoint *e, pl_peer peer)
{
    PL_ASSERT(peer >= 0 && peer < e->peers.count);
    return e->peers.entries[peer].channel;
}

/* The first peer that shares makes us need a doorbell. */
static pl_status need_bell(pl_endpoint *e)
{
    if (e->bell[0] >= 0 || pipe2(e->bell, O_CLOEXEC | O_NONBLOCK) == 0)
        return PL_OK;
    e->bell[0] = e->bell[1] = -1;
    return PL_FAIL(PL_IO, "pipe: %s", strerror(errno));
}

/* Room for one peer more in the lists. */
static pl_status need_room(pl_endpoint *e)
{
    size_t count = (size_t)e->sharing_count + 1;
    pl_peer *sharing = pl_mem_resize(e->sharing, count, sizeof *sharing);
    PL_TRY(pl_mem_check(sharing, count, sizeof *sharing));
    e->sharing = sharing;
    struct pollfd *polls =
        pl_mem_resize(e->polls, POLL_PEERS + count, sizeof *polls);
    PL_TRY(pl_mem_check(polls, POLL_PEERS + count, sizeof *polls));
    e->polls = polls;
    return PL_OK;
}

static void put_channel(pl_endpoint *e, pl_peer peer, pl_channel *channel)
{
    e->peers.entries[peer].channel = channel;
    e->sharing[e->sharing_count++] = peer;
}

void pl_shared_drop(pl_endpoint *e, pl_peer peer)
{
    pl_channel *channel = channel_of(e, peer);
    if (channel == NULL)
        return;
    if (e->held == channel)
        e->held = NULL;
    int32_t at = 0;
    while (e->sharing[at] != peer)
        at++;
    e->sharing[at] = e->sharing[--e->sharing_count];
    e->peers.entries[peer].channel = NULL;
    pl_channel_free(channel);
}

void pl_shared_close(pl_endpoint *e)
{
    while (e->sharing_count > 0)
        pl_shared_drop(e, e->sharing[0]);
    for (size_t i = 0; i < 2; i++)
        if (e->bell[i] >= 0)
            close(e->bell[i]);
    pl_mem_free(e->sharing);
    pl_mem_free(e->polls);
}

/* Not sharing is no failure, but worth knowing when one looks for it. */
static pl_status stay_with_tcp(const pl_endpoint *e, pl_status status)
{
    if (status == PL_OK || status == PL_NOMEM)
        return status;
    pl_log(PL_LOG_DEBUG, "%s: no shared memory: %s", e->name,
           pl_error_message());
    return PL_OK;
}

static pl_status make_offer(pl_endpoint *client, char offer[PL_OFFER_BYTES])
{
    pl_share_offer own;
    pl_channel *channel = NULL;
    PL_TRY(need_bell(client));
    PL_TRY(need_room(client));
    PL_TRY(pl_share_init(&own, client->area, client->bell[0]));
    PL_TRY(pl_channel_new(&channel, &own));
    put_channel(client, 0, channel);
    pl_share_write(&own, offer);
    return PL_OK;
}

pl_status pl_endpoint_offer(pl_endpoint *client, char offer[PL_OFFER_BYTES])
{
    PL_ASSERT(!client->server);
    offer[0] = 0;
    pl_shared_drop(client, 0);
    if (client->no_shm)
        return PL_OK;
    return stay_with_tcp(client, make_offer(client, offer));
}

/* Close the channels through which nothing will come any more. */
static void reap(pl_endpoint *e)
{
    for (int32_t i = e->sharing_count - 1; i >= 0; i--) {
        const pl_channel *channel = channel_of(e, e->sharing[i]);
        if (channel != e->held && pl_channel_over(channel))
            pl_shared_drop(e, e->sharing[i]);
    }
}

/* A server that is never idle does not sleep, and is not told who has ended.
 */
static void notice_ends(pl_endpoint *e)
{
    for (int32_t i = 0; i < e->sharing_count; i++) {
        pl_channel *channel = channel_of(e, e->sharing[i]);
        struct pollfd ended = { channel->watch, POLLIN, 0 };
        if (!channel->dead && poll(&ended, 1, 0) > 0)
            channel->dead = true;
    }
    reap(e);
}

static pl_status accept_offer(pl_endpoint *server, pl_peer peer,
                              const char *offer, char answer[PL_OFFER_BYTES])
{
    pl_share_offer own, client;
    pl_channel *channel = NULL;
    PL_TRY(pl_share_read(&client, offer));
    PL_TRY(need_bell(server));
    PL_TRY(pl_share_init(&own, server->area, server->bell[0]));
    memcpy(own.nonce, client.nonce, sizeof own.nonce);
    /* The same once more, from one who did not hear the answer. */
    pl_channel *before = channel_of(server, peer);
    if (before != NULL && pl_channel_is(before, &client)) {
        pl_share_write(&own, answer);
        return PL_OK;
    }
    pl_shared_drop(server, peer);
    PL_TRY(need_room(server));
    if (strcmp(own.host, client.host) != 0)
        return PL_FAIL(PL_UNSUPPORTED, "%s is on another host",
                       pl_endpoint_peer_text(server, peer));
    PL_TRY(pl_channel_open(&channel, &client));
    put_channel(server, peer, channel);
    pl_share_write(&own, answer);
    return PL_OK;
}

pl_status pl_endpoint_accept(pl_endpoint *server, pl_peer peer,
                             const char *offer, char answer[PL_OFFER_BYTES])
{
    PL_ASSERT(server->server);
    answer[0] = 0;
    notice_ends(server);
    if (!server->no_shm && offer[0] != 0) {
        pl_status status = accept_offer(server, peer, offer, answer);
        if (status == PL_OK)
            return PL_OK;
        pl_shared_drop(server, peer);
        return stay_with_tcp(server, status);
    }
    pl_shared_drop(server, peer);
    return PL_OK;
}

static pl_status use_answer(pl_endpoint *client, const char *answer)
{
    pl_share_offer server;
    PL_TRY(pl_share_read(&server, answer));
    return pl_channel_complete(channel_of(client, 0), &server);
}

pl_status pl_endpoint_complete(pl_endpoint *client, const char *answer)
{
    PL_ASSERT(!client->server);
    if (channel_of(client, 0) == NULL)
        return PL_OK;
    pl_status status = PL_AGAIN;
    if (answer[0] != 0)
        status = use_answer(client, answer);
    if (status != PL_OK)
        pl_shared_drop(client, 0);
    return status == PL_AGAIN ? PL_OK : stay_with_tcp(client, status);
}

bool pl_endpoint_shared(const pl_endpoint *e, pl_peer peer)
{
    pl_channel *channel = channel_of(e, peer);
    return channel != NULL && pl_channel_live(channel);
}

/* A peer whose rings make no sense is served over TCP from here on. */
static void give_up(pl_endpoint *e, pl_peer peer)
{
    pl_endpoint_refuse(e, pl_endpoint_peer_text(e, peer), pl_error_message());
}

pl_status pl_shared_send(pl_endpoint *e, pl_peer to, const pl_frame *frame,
                         const void *payload, bool lasting)
{
    pl_channel *channel = channel_of(e, to);
    if (channel == NULL || !pl_channel_live(channel))
        return PL_AGAIN;
    pl_status status =
        pl_channel_send(channel, frame, payload, lasting, e->area);
    if (status == PL_PEER)
        give_up(e, to);
    return status == PL_PEER ? PL_AGAIN : status;
}

/* The next good frame of one channel. */
static pl_status take_from(pl_endpoint *e, pl_peer peer, pl_message *out)
{
    pl_channel *channel = channel_of(e, peer);
    for (;;) {
        pl_status status =
            pl_channel_peek(channel, &out->frame, &out->payload, &out->lease);
        if (status == PL_AGAIN)
            return PL_AGAIN;
        if (status == PL_OK) {
            out->from = peer;
            out->first = false;
            e->held = channel;
            e->peers.entries[peer].heard_at = ++e->peers.messages;
            pl_endpoint_received(e, &out->frame);
            return PL_OK;
        }
        give_up(e, peer);
        if (status == PL_PEER)
            return PL_AGAIN;
        pl_channel_advance(channel);
    }
}

pl_status pl_shared_take(pl_endpoint *e, pl_message *out)
{
    uint32_t count = (uint32_t)e->sharing_count;
    for (uint32_t i = 0; i < count; i++) {
        pl_peer peer = e->sharing[(e->turn + i) % count];
        pl_status status = take_from(e, peer, out);
        if (status != PL_AGAIN) {
            e->turn = (e->turn + i + 1) % count;
            return status;
        }
    }
    return PL_AGAIN;
}

void pl_shared_release(pl_endpoint *e)
{
    if (e->held != NULL)
        pl_channel_advance(e->held);
    e->held = NULL;
}

/* Ask to be woken; false when a frame is there already. */
static bool all_empty(pl_endpoint *e)
{
    for (int32_t i = 0; i < e->sharing_count; i++)
        pl_ring_sleep(&channel_of(e, e->sharing[i])->in);
    for (int32_t i = 0; i < e->sharing_count; i++) {
        const pl_channel *channel = channel_of(e, e->sharing[i]);
        if (!channel->broken && !pl_ring_empty(&channel->in))
            return false;
    }
    return true;
}

bool pl_shared_sleep(pl_endpoint *e)
{
    e->polls[POLL_BELL] = (struct pollfd) { e->bell[0], POLLIN, 0 };
    for (int32_t i = 0; i < e->sharing_count; i++) {
        const pl_channel *channel = channel_of(e, e->sharing[i]);
        e->polls[POLL_PEERS + i] =
            (struct pollfd) { channel->dead ? -1 : channel->watch, POLLIN, 0 };
    }
    return all_empty(e);
}

void pl_shared_wake(pl_endpoint *e)
{
    char bytes[256];
    if ((e->polls[POLL_BELL].revents & POLLIN) != 0)
        while (read(e->bell[0], bytes, sizeof bytes) == (ssize_t)sizeof bytes)
            ;
    for (int32_t i = 0; i < e->sharing_count; i++) {
        pl_channel *channel = channel_of(e, e->sharing[i]);
        pl_ring_wake(&channel->in);
        if (e->polls[POLL_PEERS + i].revents != 0)
            channel->dead = true;
    }
    reap(e);
}
