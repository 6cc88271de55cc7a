/* endpoint_priv.h - what the parts of an endpoint share.
 *
 *   endpoint.c  the calls, waiting, counting
 *   tcp/        messages over TCP
 *   shared.c    offering and accepting shared memory
 *
 * Threads: one. */
#ifndef PL_NET_ENDPOINT_PRIV_H
#define PL_NET_ENDPOINT_PRIV_H

#include "base/text/burst.h"
#include "net/endpoint.h"
#include "net/peers.h"
#include "net/tcp/tcp.h"

#include <poll.h>

#define PL_OFFENDERS 32

/* Who sent something wrong lately, so as to log it once. */
typedef struct pl_offenders {
    char who[PL_OFFENDERS][PL_PEER_TEXT];
    unsigned next;
} pl_offenders;

/* What is polled: these, then a process for each peer that shares memory. */
enum {
    POLL_TCP,
    POLL_BELL,
    POLL_PEERS
};

struct pl_endpoint {
    pl_tcp *tcp;
    bool server;
    bool no_shm;
    char *name;
    pl_area *area;  /* the caller's; may be NULL */
    pl_peers peers; /* a client has one */
    pl_endpoint_counts counts;
    pl_offenders offenders;
    pl_burst refusals; /* in the log */
    int bell[2];       /* a pipe that peers write to; -1: no peer shares */
    pl_peer *sharing;  /* the peers that have a channel */
    int32_t sharing_count;
    uint32_t turn;        /* whose channel is looked at first */
    pl_channel *held;     /* the message last received lies there */
    struct pollfd *polls; /* POLL_PEERS + sharing_count */
};

/* Count something that is not ours, and name its sender once; of many in a
 * short time only the first. */
void pl_endpoint_refuse(pl_endpoint *endpoint, const char *who,
                        const char *why);
void pl_endpoint_received(pl_endpoint *endpoint, const pl_frame *frame);

/* Try to send through shared memory; PL_AGAIN: it must go another way. */
pl_status pl_shared_send(pl_endpoint *endpoint, pl_peer to,
                         const pl_frame *frame, const void *payload,
                         bool lasting) PL_MUST_CHECK;
/* As pl_tcp_take and pl_tcp_release. */
pl_status pl_shared_take(pl_endpoint *endpoint, pl_message *out) PL_MUST_CHECK;
void pl_shared_release(pl_endpoint *endpoint);

/* Before a sleep: ask peers to ring, fill `polls`.  False: something is there
 * already.  Call pl_shared_wake after either. */
bool pl_shared_sleep(pl_endpoint *endpoint);
void pl_shared_wake(pl_endpoint *endpoint);

/* Close the channel of a peer, if it has one. */
void pl_shared_drop(pl_endpoint *endpoint, pl_peer peer);
void pl_shared_close(pl_endpoint *endpoint);

#endif
