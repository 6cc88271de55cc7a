/* channel.h - shared memory between a client and a server on one host.
 *
 * The client makes it, the server maps it: two rings, one in each direction.
 * Each also maps the other's area, read-only, and has the other's doorbell.
 * The end of the peer is detected at once.
 *
 * Threads: one. */
#ifndef PL_NET_SHM_CHANNEL_H
#define PL_NET_SHM_CHANNEL_H

#include "net/shm/lease.h"
#include "net/shm/ring.h"
#include "net/shm/share.h"

typedef struct pl_channel_memory pl_channel_memory;

typedef struct pl_channel {
    pl_channel_memory *memory;
    int fd; /* client: of the memory, until the channel is complete */
    bool client;
    bool dead; /* the peer has ended or misbehaved: nothing more is written */
    bool broken;
    pl_ring_writer out;
    pl_ring_reader in;
    pl_lease *area; /* the peer's; may be NULL */
    int bell;       /* the peer's */
    int watch;      /* readable when the peer's process has ended */
} pl_channel;

/* Client: make the memory, and add it to the offer. */
pl_status pl_channel_new(pl_channel **out, pl_share_offer *own) PL_MUST_CHECK;
/* Server: map what a client offered. */
pl_status pl_channel_open(pl_channel **out,
                          const pl_share_offer *client) PL_MUST_CHECK;
/* Server: does it belong to that client, and is it alive? */
bool pl_channel_is(const pl_channel *channel, const pl_share_offer *client);
/* Client: map what the server offered; from now on both may write. */
pl_status pl_channel_complete(pl_channel *channel,
                              const pl_share_offer *server) PL_MUST_CHECK;
void pl_channel_free(pl_channel *channel); /* notifies the peer; NULL is fine */

/* Whether frames may be sent through it. */
bool pl_channel_live(const pl_channel *channel);

/* Send; wakes the peer if it sleeps.  `own` is the area the payload may lie in,
 * or NULL.  PL_AGAIN, without a text: there is no room. */
pl_status pl_channel_send(pl_channel *channel, const pl_frame *frame,
                          const void *payload, bool lasting,
                          const pl_area *own) PL_MUST_CHECK;

/* Nothing more will arrive: the peer has ended or closed the channel, and
 * everything it wrote was read. */
bool pl_channel_over(const pl_channel *channel);

/* The next frame and its payload, without taking it: valid until
 * pl_channel_advance, in the peer's area (*lease) as long as that is held.
 * PL_AGAIN, without a text, when there is none. PL_FORMAT: malformed, to be
 * skipped with pl_channel_advance; PL_PEER: the channel is broken and no longer
 * read. */
pl_status pl_channel_peek(pl_channel *channel, pl_frame *frame,
                          const void **payload, pl_lease **lease) PL_MUST_CHECK;
void pl_channel_advance(pl_channel *channel);

#endif
