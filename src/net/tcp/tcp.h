/* tcp.h - an endpoint's messages over TCP.
 *
 *   tcp.c         the calls below, for both ends
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

#include "net/endpoint.h"
#include "net/tcp/dialer.h"

#include <sys/epoll.h>

#define PL_TCP_EVENTS 64

typedef struct pl_tcp {
    char address[PL_ADDRESS_BYTES]; /* "127.0.0.1:4711" */
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

pl_status pl_tcp_listen(pl_endpoint *endpoint,
                        const pl_endpoint_opts *opts) PL_MUST_CHECK;
pl_status pl_tcp_connect(pl_endpoint *endpoint, const pl_endpoint_opts *opts,
                         const uint8_t identity[PL_IDENTITY_BYTES])
    PL_MUST_CHECK;
/* Who a client with keys expects. */
pl_principal pl_tcp_server(const pl_endpoint_opts *opts);
void pl_tcp_close(pl_endpoint *endpoint, int linger_ms);

/* Send, or queue; PL_AGAIN, without a text, when the queue is full or the peer
 * is gone. */
pl_status pl_tcp_send(pl_endpoint *endpoint, pl_peer to, const pl_frame *frame,
                      const void *payload, bool lasting) PL_MUST_CHECK;

/* The next well-formed message, without waiting: PL_AGAIN when there is none
 * (without a text: nothing failed). */
pl_status pl_tcp_take(pl_endpoint *endpoint, pl_message *out) PL_MUST_CHECK;
/* Let go of the payload last received. */
void pl_tcp_release(pl_endpoint *endpoint);
/* Client: why the server turned it away for good, or NULL. */
const char *pl_tcp_refused(pl_endpoint *endpoint);

/* Before a sleep: what to poll, and until when at most (INT64_MAX: as long as
 * you like).  False: something may be there already. */
bool pl_tcp_sleep(pl_endpoint *endpoint, struct pollfd *poll,
                  int64_t *until_ns);

/* End the connection of a peer. */
void pl_tcp_cut(pl_endpoint *endpoint, pl_peer peer);

/* --- between the files above --------------------------------------------- */

pl_status pl_listener_open(pl_endpoint *endpoint,
                           const pl_endpoint_opts *opts) PL_MUST_CHECK;
void pl_listener_close(pl_endpoint *endpoint);
/* As pl_tcp_take, for a server. */
pl_status pl_listener_take(pl_endpoint *endpoint,
                           pl_message *out) PL_MUST_CHECK;
bool pl_listener_sleep(pl_endpoint *endpoint, struct pollfd *poll,
                       int64_t *until_ns);
void pl_listener_drop(pl_endpoint *endpoint, pl_connection *connection);

/* Turn what a stream handed out into a message; else it is malformed. */
pl_status pl_tcp_judge(pl_endpoint *endpoint, pl_decoder_message *raw,
                       pl_message *out) PL_MUST_CHECK;

#endif
