/* endpoint.h - one end of the network: messages out, messages in.
 *
 * A server listens, clients connect, in any order of start.  Messages between
 * one client and the server keep their order as long as the connection holds;
 * when it breaks it is restored automatically, and messages may be lost: the
 * requester resends, and the receiver recognises duplicates.
 *
 * Messages are carried by transports (net/transport.h).  The connection is made
 * over TCP (src/net/tcp).  Two tasks of one host can upgrade it to shared
 * memory (src/net/shm): the client offers (pl_endpoint_offer), the server
 * accepts (pl_endpoint_accept), the client completes (pl_endpoint_complete),
 * with texts that they exchange in their own first messages. From then on
 * frames go through rings in memory, and payloads in an area (pl_area) are not
 * copied at all: the receiver reads them in place. A message that fits neither
 * an area nor the rings (64 KiB) still takes the connection, and may then
 * arrive out of order.
 *
 * With the keys of a job both ends prove that they know its secret before a
 * message is taken; beyond loopback everything is encrypted, too.  Each message
 * names the proved identity of its sender.  Without keys, on loopback, only
 * processes of the same user are admitted.
 *
 * Threads: an endpoint belongs to one thread. */
#ifndef PL_NET_ENDPOINT_H
#define PL_NET_ENDPOINT_H

#include "base/clock.h"
#include "net/frame.h"
#include "net/keys.h"
#include "net/shm/area.h"
#include "net/shm/lease.h"

#include <stdbool.h>

typedef struct pl_endpoint pl_endpoint;
typedef struct pl_transport pl_transport;
typedef int32_t pl_peer; /* a client of a server, from 0; a client's only peer
                            is 0 */

#define PL_OFFER_BYTES 256

typedef struct pl_message {
    pl_peer from;
    bool first; /* of this peer: its number may have been used by another
                   before */
    pl_frame frame;
    const void *payload; /* 8-byte aligned; until the next receive... */
    pl_lease *lease;  /* ... or, when not NULL, in the peer's memory: readable
                         while this is held, unchanged until the request is
                         answered */
    pl_principal who; /* proved by its keys; NONE where there are none */
} pl_message;

typedef struct pl_endpoint_opts {
    const char *address; /* "127.0.0.1:0"; listening on port 0 takes any free */
    const char *name;    /* of this task, for logs: "worker 2"; required */
    pl_area *area;       /* may be NULL: nothing of ours is shared */
    const pl_transport *transport; /* NULL: the best for each peer; otherwise
                                      the only upgrade allowed */
    int32_t peers_max; /* server: connections kept at once; default 1024 */
    const pl_job_keys *keys; /* NULL: no authentication; copied */
    pl_principal self;       /* with keys: our own identity */
    int32_t server;          /* with keys, client: which ps it connects to... */
    bool to_worker;          /* ... or which worker */
    bool encrypt;            /* with keys: on loopback, too; both ends alike */
    pl_endpoint *beside;     /* of the same thread: shares its background
                                thread, which connects and writes; NULL: a
                                thread of its own */
} pl_endpoint_opts;

typedef struct pl_endpoint_counts {
    int64_t sent_bytes, received_bytes; /* payloads and headers, all routes */
    int64_t sent_messages, received_messages;
    int64_t refused_messages; /* foreign, too large, malformed: dropped */
    int64_t dropped_messages; /* not sent: the peer is gone or too slow */
} pl_endpoint_counts;

/* The transport of a flag whose choices are PL_TRANSPORT_CHOICES
 * (net/transport.h); of the first, auto, NULL. */
const pl_transport *pl_transport_chosen(int choice);

/* PL_IO names the address when it is taken or cannot be used. */
pl_status pl_endpoint_listen(pl_endpoint **out,
                             const pl_endpoint_opts *opts) PL_MUST_CHECK;
/* Returns at once; connects when the server listens. */
pl_status pl_endpoint_connect(pl_endpoint **out,
                              const pl_endpoint_opts *opts) PL_MUST_CHECK;
/* Queued messages have `linger_ms` to be sent. */
void pl_endpoint_free(pl_endpoint *endpoint, int linger_ms); /* NULL is fine */

/* With the port that was bound; lives as long as the endpoint. */
const char *pl_endpoint_address(const pl_endpoint *endpoint);
pl_endpoint_counts pl_endpoint_count(const pl_endpoint *endpoint);
/* A client: how long its current connection was busy sending bytes to a server
 * that had room for them; -1: not known, or messages take another route. */
int64_t pl_endpoint_busy_ns(const pl_endpoint *endpoint);

/* Send frame->payload_bytes from `payload`.  They are copied unless `lasting`:
 * then they must not change until the peer answers the request, nor be freed
 * before the endpoint (a resent copy may still be in flight).  Payloads in the
 * endpoint's own area are not copied for shared memory; they must be `lasting`.
 * Never waits: when the peer is gone or its queue full, the message is dropped
 * and counted, which is not an error. */
pl_status pl_endpoint_send(pl_endpoint *endpoint, pl_peer to,
                           const pl_frame *frame, const void *payload,
                           bool lasting) PL_MUST_CHECK;

/* The next message; PL_TIMEOUT at the deadline. A malformed message is dropped,
 * counted and logged; a peer that keeps sending such is dropped, too.  A
 * client: PL_CLOSED when the server has refused it for good. */
pl_status pl_endpoint_receive(pl_endpoint *endpoint, pl_message *out,
                              pl_deadline deadline) PL_MUST_CHECK;

/* The same without waiting: PL_AGAIN, without a text, when there is none. */
pl_status pl_endpoint_poll(pl_endpoint *endpoint,
                           pl_message *out) PL_MUST_CHECK;

/* Wait until one of these may have a message, or the deadline; poll each of
 * them afterwards. */
void pl_endpoint_wait(pl_endpoint *const *endpoints, int count,
                      pl_deadline deadline);
/* The same, also until a descriptor can be read. */
void pl_endpoint_wait_or(pl_endpoint *const *endpoints, int count, int fd,
                         pl_deadline deadline);

/* Set the area to share with peers from now on, when it was not known at
 * creation. */
void pl_endpoint_share(pl_endpoint *endpoint, pl_area *area);

/* Forget a peer: its messages are dropped from now on. */
void pl_endpoint_drop(pl_endpoint *endpoint, pl_peer peer);
/* Drop it only after all others, when there are too many. */
void pl_endpoint_keep(pl_endpoint *endpoint, pl_peer peer);
/* "10.0.0.7:40112" where known, for messages; until the next call. */
const char *pl_endpoint_peer_text(pl_endpoint *endpoint, pl_peer peer);

/* Upgrades, see above.  An empty answer means to stay with the connection,
 * because the hosts differ or something is not permitted; that is not a
 * failure.  When the peer ends or closes, messages take the connection again,
 * and shared memory is released once everything it wrote was read and no lease
 * is held (net/shm/lease.h). */
pl_status pl_endpoint_offer(pl_endpoint *client,
                            char offer[PL_OFFER_BYTES]) PL_MUST_CHECK;
pl_status pl_endpoint_accept(pl_endpoint *server, pl_peer peer,
                             const char *offer,
                             char answer[PL_OFFER_BYTES]) PL_MUST_CHECK;
pl_status pl_endpoint_complete(pl_endpoint *client,
                               const char *answer) PL_MUST_CHECK;
/* Whether the peer is upgraded: it reads payloads in the area in place. */
bool pl_endpoint_shared(const pl_endpoint *endpoint, pl_peer peer);
/* PL_USAGE when the options require an upgrade that this peer, `what`, does not
 * have; the message says what the upgrade needs. */
pl_status pl_endpoint_check(const pl_endpoint *endpoint, pl_peer peer,
                            const char *what) PL_MUST_CHECK;

#endif
