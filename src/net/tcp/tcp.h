/* tcp.h - the transport that connects: TCP.
 *
 *   tcp.c         the row of the table of transports, for both ends
 *   listener.c    a server: accepting, handshakes, numbers, limits
 *   dialer.c      a client: connecting, again and again
 *   pump.c        the thread that writes what cannot be written at once
 *   connection.c  a descriptor and its handshake
 *   handshake.c   what is said first; cipher.c: encryption
 *   decoder.c     messages out of bytes; outbox.c: bytes out of messages
 *
 * The owner of the endpoint reads, and writes small messages at once: then no
 * other thread is woken at either end.
 *
 * Threads: the endpoint's owner. */
#ifndef PL_NET_TCP_TCP_H
#define PL_NET_TCP_TCP_H

#include "net/tcp/dialer.h"
#include "net/transport.h"

#include <sys/epoll.h>

#define PL_TCP_EVENTS 64

typedef struct pl_tcp {
    pl_route route;
    pl_job_keys keys;
    bool has_keys;
    pl_handshake_config config; /* server's; a client's is its dialer's */
    pl_pump_user user;          /* of the pump; without one: not open yet */
    pl_spares spares;
    pl_body held; /* holds the payload of the message last received */
    /* Server. */
    bool own_user; /* without keys, on loopback: only our user gets in */
    int listener, epoll;
    int32_t links_most;
    pl_connection **links;          /* by number; NULL: not connected */
    pl_connection *oldest, *newest; /* without a number */
    int32_t pending;
    size_t charged; /* memory of peers that are not known to be tasks */
    struct epoll_event events[PL_TCP_EVENTS];
    int event_count, event_at;
    bool has_read;     /* from the connection of the event at hand */
    int64_t paused_ns; /* nothing is accepted until then; 0: it is */
    bool told_full;    /* of descriptors */
    /* Client. */
    pl_connection link;
    pl_dialer dialer;
    bool was_ready; /* when the owner last looked */
} pl_tcp;

/* Of an endpoint; NULL where another transport connects. */
pl_tcp *pl_tcp_of(const pl_endpoint *endpoint);

/* --- between the files above --------------------------------------------- */

pl_status pl_listener_open(pl_tcp *tcp,
                           const pl_endpoint_opts *opts) PL_MUST_CHECK;
void pl_listener_close(pl_tcp *tcp);
/* As pl_transport.take and sleep, for a server. */
pl_status pl_listener_take(pl_tcp *tcp, pl_message *out) PL_MUST_CHECK;
bool pl_listener_sleep(pl_tcp *tcp, struct pollfd *poll_out, int64_t *until_ns);
void pl_listener_drop(pl_tcp *tcp, pl_connection *connection);

/* Turn what a stream handed out into a message; else it is malformed. */
pl_status pl_tcp_judge(pl_tcp *tcp, pl_decoder_message *raw,
                       pl_message *out) PL_MUST_CHECK;
/* Let go of the payload last received. */
void pl_tcp_release(pl_tcp *tcp);

#endif
