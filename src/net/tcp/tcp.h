/* tcp.h - the transport that connects: TCP.
 *
 *   tcp.c         the row of the table of transports, for both ends
 *   listener.c    a server: accepting, handshakes, numbers, limits
 *   dialer.c      a client: connecting and reconnecting
 *   pump.c        the thread that writes what cannot be written at once
 *   connection.c  a descriptor and its handshake
 *   handshake.c   authentication; cipher.c: encryption
 *   decoder.c     bytes to messages; outbox.c: messages to bytes
 *
 * The owner of the endpoint reads, and writes small messages at once: so no
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
    pl_handshake_config config; /* of a server; a client's is in its dialer */
    pl_pump_user user;          /* of the pump; not open yet without one */
    pl_spares spares;
    pl_body held; /* holds the payload of the message last received */
    /* Server. */
    bool own_user; /* without keys, on loopback: only our user is admitted */
    int listener, epoll;
    int32_t links_most;
    pl_connection **links;          /* by number; NULL: not connected */
    pl_connection *oldest, *newest; /* without a number */
    int32_t pending;
    size_t charged; /* memory of peers that are not known to be tasks */
    struct epoll_event events[PL_TCP_EVENTS];
    int event_count, event_at;
    bool has_read;     /* from the connection of the current event */
    int64_t paused_ns; /* accepting is paused until then; 0: not paused */
    bool told_full;    /* the lack of descriptors was logged */
    /* Client. */
    pl_connection link;
    pl_dialer dialer;
    bool was_ready; /* when the owner last polled */
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

/* Turn what the decoder delivered into a message, unless it is malformed. */
pl_status pl_tcp_judge(pl_tcp *tcp, pl_decoder_message *raw,
                       pl_message *out) PL_MUST_CHECK;
/* Release the payload last received. */
void pl_tcp_release(pl_tcp *tcp);

#endif
