/* endpoint_priv.h - what the parts of an endpoint share.
 *
 *   endpoint.c   the calls, waiting, counting
 *   upgrade.c    agreeing with a peer on more than the connection
 *   transport.h  what carries the messages
 *
 * Threads: one. */
#ifndef PL_NET_ENDPOINT_PRIV_H
#define PL_NET_ENDPOINT_PRIV_H

#include "base/text/burst.h"
#include "net/address.h"
#include "net/peers.h"
#include "net/transport.h"

#define PL_OFFENDERS 32

/* Recent senders of malformed messages, to log each once. */
typedef struct pl_offenders {
    char who[PL_OFFENDERS][PL_PEER_TEXT];
    unsigned next;
} pl_offenders;

#define PL_COUNT_TRANSPORT(name) +1
enum {
    PL_ROUTES_MOST = PL_TRANSPORT_LIST(PL_COUNT_TRANSPORT)
};

struct pl_endpoint {
    bool server;
    char *name;
    char address[PL_ADDRESS_BYTES]; /* listening, or connected to */
    pl_area *area;                  /* of the caller; may be NULL */
    pl_peers peers;                 /* a client has one */
    pl_endpoint_counts counts;
    pl_offenders offenders;
    pl_burst refusals; /* in the log */
    /* The transports that may be used and, where open, their routes; the
     * connection is the first. */
    const pl_transport *rows[PL_ROUTES_MOST];
    pl_route *routes[PL_ROUTES_MOST];
    int row_count;
    const pl_transport *wanted; /* by the options; NULL: any */
    int turn;                   /* the route that goes first... */
    int turns;                  /* ... for so many messages */
    struct pollfd *polls;       /* of all routes, in their order */
};

/* Count a malformed message, and log its sender once; of many in a short time
 * only the first ones. */
void pl_endpoint_refuse(pl_endpoint *endpoint, const char *who,
                        const char *why);
/* The server that a client with keys expects. */
pl_principal pl_endpoint_server(const pl_endpoint_opts *opts);
/* Make room for the descriptors of all routes, and `more` others. */
pl_status pl_endpoint_need_polls(pl_endpoint *endpoint, int more) PL_MUST_CHECK;
/* End the upgrade of a peer, if it has one. */
void pl_endpoint_downgrade(pl_endpoint *endpoint, pl_peer peer);

#endif
