/* endpoint_priv.h - what the parts of an endpoint share.
 *
 *   endpoint.c  the calls, waiting, counting
 *   tcp.c       messages over ZeroMQ
 *   shared.c    offering and accepting shared memory
 *
 * Threads: one. */
#ifndef PL_NET_ENDPOINT_PRIV_H
#define PL_NET_ENDPOINT_PRIV_H

#include "net/endpoint.h"
#include "net/peers.h"
#include "net/socket.h"

#include <zmq.h>

#define PL_OFFENDERS 32

/* Who sent something wrong lately, so as to log it once. */
typedef struct pl_offenders {
    char who[PL_OFFENDERS][PL_PEER_TEXT];
    unsigned next;
} pl_offenders;

struct pl_endpoint {
    pl_socket socket;
    bool server;
    bool no_shm;
    char *name;
    pl_area *area;  /* the caller's; may be NULL */
    pl_peers peers; /* a client has one */
    pl_endpoint_counts counts;
    zmq_msg_t kept; /* holds the payload of the message last received */
    bool has_kept;
    uint64_t *aligned; /* or this does, where ZeroMQ's memory lay askew */
    size_t aligned_bytes;
    pl_offenders offenders;
    char accepted[PL_OFFENDERS][PL_PEER_TEXT]; /* of descriptors, by number */
    bool handshake_failed; /* the next disconnection tells whose */
};

/* Hand to ZeroMQ; when its queue is full or the peer gone, count that. */
pl_status pl_tcp_send(pl_endpoint *endpoint, pl_peer to, const pl_frame *frame,
                      const void *payload, bool lasting) PL_MUST_CHECK;

/* The next message that is one, without waiting: PL_AGAIN when there is none
 * (without a text: nothing failed). */
pl_status pl_tcp_take(pl_endpoint *endpoint, pl_message *out) PL_MUST_CHECK;

/* Let go of the payload last received. */
void pl_tcp_release(pl_endpoint *endpoint);

/* Read what the monitor says of refused connections. */
void pl_tcp_watch(pl_endpoint *endpoint);

#endif
