/* channel.h - memory that a client and a server on one host talk through.
 *
 * The client makes it, the server maps it: two rings, one each way.  Beside
 * it each maps the other's area, for reading only, and has the other's
 * doorbell.  The peer's end is noticed at once.
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
    bool dead; /* the peer has ended or is broken: nothing more is written */
    bool broken;
    pl_ring_writer out;
    pl_ring_reader in;
    pl_lease *area; /* the peer's; may be NULL */
    int bell;       /* the peer's */
    int watch;      /* readable when the peer's process has ended */
} pl_channel;

/* Client: make the memory, and add it to what is told of this process. */
pl_status pl_channel_new(pl_channel **out, pl_share_offer *own) PL_MUST_CHECK;
/* Server: map what a client told of. */
pl_status pl_channel_open(pl_channel **out,
                          const pl_share_offer *client) PL_MUST_CHECK;
/* Server: is this the one of that client, and does it live? */
bool pl_channel_is(const pl_channel *channel, const pl_share_offer *client);
/* Client: map what the server told of; from here on both may write. */
pl_status pl_channel_complete(pl_channel *channel,
                              const pl_share_offer *server) PL_MUST_CHECK;
void pl_channel_free(pl_channel *channel); /* tells the peer; NULL is fine */

/* Whether frames may be sent this way. */
bool pl_channel_live(const pl_channel *channel);

/* Send; wakes the peer if it sleeps.  `own` is the area the payload may lie
 * in, or NULL.  PL_AGAIN: there is no room for it here, without a text. */
pl_status pl_channel_send(pl_channel *channel, const pl_frame *frame,
                          const void *payload, bool lasting,
                          const pl_area *own) PL_MUST_CHECK;

/* Nothing will come any more: the peer has ended or closed the channel, and
 * all that it wrote was read. */
bool pl_channel_over(const pl_channel *channel);

/* The next frame and where its payload lies, without taking it: it stays
 * until pl_channel_advance, in the peer's area (*lease) as long as that is
 * held. PL_AGAIN when there is none, without a text. PL_FORMAT: a wrong one, to
 * be skipped with pl_channel_advance; PL_PEER: the channel is broken and not
 * read any more. */
pl_status pl_channel_peek(pl_channel *channel, pl_frame *frame,
                          const void **payload, pl_lease **lease) PL_MUST_CHECK;
void pl_channel_advance(pl_channel *channel);

#endif
