/* transport.h - transports of messages, as rows of one table.
 *
 * A transport is one struct of functions and a line in PL_TRANSPORT_LIST; the
 * endpoint (endpoint.c, upgrade.c) knows only the table.  There are two kinds:
 *
 *   a connection  listens at an address or connects to one, admits peers and
 *                 gives them their numbers (tcp).  Every endpoint has one.
 *   an upgrade    takes over from the connection to a peer, once both ends
 *                 have agreed on it (shm).  Messages it cannot carry (PL_AGAIN)
 *                 still take the connection.
 *
 * An upgrade is opened for an endpoint when the first peer agrees on it, so an
 * endpoint without one has no cost.  A message costs one call through the
 * table.
 *
 * Threads: as the endpoint's: one. */
#ifndef PL_NET_TRANSPORT_H
#define PL_NET_TRANSPORT_H

#include "net/endpoint.h"

#include <poll.h>

/* One row for each transport, pl_transport_<name>; a connection first. */
#define PL_TRANSPORT_LIST(ROW)                                                 \
    ROW(tcp)                                                                   \
    ROW(shm)

/* A transport at work for one endpoint: the first member of its own state. */
typedef struct pl_route {
    const pl_transport *transport;
    pl_endpoint *endpoint;
    int polls; /* descriptors that `sleep` fills in now; an upgraded peer adds
                  at most one */
} pl_route;

/* What an upgrade adds. */
typedef struct pl_upgrade {
    const char *mark;  /* prefix of its offers */
    const char *needs; /* "both tasks on one host...", for messages */
    /* Client: describe this end.  Server: take an offer, describe this end.
     * Client: take the answer.  Each fails with a text when this peer cannot be
     * served; messages then stay with the connection. */
    pl_status (*offer)(pl_route *route, char offer[PL_OFFER_BYTES]);
    pl_status (*accept)(pl_route *route, pl_peer peer, const char *offer,
                        char answer[PL_OFFER_BYTES]);
    pl_status (*complete)(pl_route *route, const char *answer);
    /* Whether messages to the peer can take this route now. */
    bool (*serves)(const pl_route *route, pl_peer peer);
    void (*drop)(pl_route *route, pl_peer peer); /* of a peer that it serves */
} pl_upgrade;

struct pl_transport {
    const char *name; /* "tcp" */

    /* A connection: listen (endpoint->server) or connect as `opts` say.  An
     * upgrade: `opts` is NULL, no peer yet. */
    pl_status (*open)(pl_route **out, pl_endpoint *endpoint,
                      const pl_endpoint_opts *opts);
    /* Queued messages have `linger_ms` to be sent. */
    void (*close)(pl_route *route, int linger_ms);

    /* As pl_endpoint_send; PL_AGAIN, without a text: not by this route; for the
     * connection: not at all. */
    pl_status (*send)(pl_route *route, pl_peer to, const pl_frame *frame,
                      const void *payload, bool lasting);
    /* The next well-formed message, without waiting; releases the one delivered
     * before.  Sets all but `first` and `who`.  PL_AGAIN, without a text: there
     * is none. */
    pl_status (*take)(pl_route *route, pl_message *out);

    /* Before a sleep: fill in route->polls descriptors, and lower *until_ns to
     * when this must poll again.  False: a message may be waiting already. */
    bool (*sleep)(pl_route *route, struct pollfd *polls, int64_t *until_ns);
    /* Optional: after the sleep, also when it was skipped. */
    void (*wake)(pl_route *route, const struct pollfd *polls);

    /* Optional, connections: why the server refused this client for good, or
     * NULL. */
    const char *(*refused)(pl_route *route);
    /* Optional, connections: of a client, as pl_endpoint_busy_ns. */
    int64_t (*busy_ns)(const pl_route *route);
    const pl_upgrade *upgrade; /* NULL: a connection */
};

#define PL_DECLARE_TRANSPORT(name)                                             \
    extern const pl_transport pl_transport_##name;
PL_TRANSPORT_LIST(PL_DECLARE_TRANSPORT)
#undef PL_DECLARE_TRANSPORT

/* For a flag: "auto|tcp|..."; pl_transport_chosen has the row. */
#define PL_TRANSPORT_WORD(name) "|" #name
#define PL_TRANSPORT_CHOICES    "auto" PL_TRANSPORT_LIST(PL_TRANSPORT_WORD)

/* All rows, NULL-terminated. */
const pl_transport *const *pl_transports(void);

#endif
