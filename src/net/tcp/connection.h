/* connection.h - one TCP connection: a descriptor, its handshake, its input and
 * its output.
 *
 * A connection that has not finished its handshake has this struct and
 * nothing else: about a kilobyte.
 *
 * Threads: reading belongs to the endpoint's owner, writing is ruled by pump.h;
 * a client's connection belongs to the pump until its handshake is done. */
#ifndef PL_NET_TCP_CONNECTION_H
#define PL_NET_TCP_CONNECTION_H

#include "net/tcp/outbox.h"

#include <stdatomic.h>

typedef struct pl_connection pl_connection;
typedef struct pl_pump_user pl_pump_user;

struct pl_connection {
    int fd;       /* -1: none */
    int32_t peer; /* server: its number; -1: it has not sent a message yet */
    bool ready;   /* server: the handshake is done */
    uint8_t have; /* bytes received of the handshake message */
    uint8_t in[PL_HANDSHAKE_BYTES];
    pl_handshake handshake;
    int64_t deadline_ns; /* of the handshake */
    int32_t offences;    /* malformed messages */
    size_t charged;      /* server without keys: memory charged to a stranger */
    char address[PL_PEER_TEXT];
    pl_connection *before, *after; /* in the list of connections without a
                                      number */
    bool drained;                  /* the last read took everything available */
    pl_decoder decoder;
    pl_outbox outbox;
    /* Used by the pump; see there. */
    atomic_bool busy;
    bool writing, broken;
    pl_connection *next_active;
    pl_pump_user *user; /* its user, while it is busy */
};

/* Set the options of every socket. */
void pl_connection_tune(int fd);
/* "10.0.0.7:40112", or "unknown". */
void pl_connection_name(char out[PL_PEER_TEXT], int fd);

/* Without keys, on loopback: may the peer's process take part?  Only processes
 * of our user may.  False: it has closed the connection, so its user is
 * unknown. */
bool pl_connection_judge_user(int fd, pl_verdict *out);

/* Read what has arrived of the handshake and answer it.  PL_HANDSHAKE_MORE:
 * wait until the descriptor can be read.  When it is done, the stream and the
 * outbox are made.  *closed: the peer has closed (the result is
 * PL_HANDSHAKE_REFUSED, with the reason in handshake.why). */
pl_handshake_result pl_connection_shake(pl_connection *connection,
                                        const pl_handshake_config *config,
                                        pl_verdict verdict, pl_spares *spares,
                                        bool *closed);

/* Read once.  PL_AGAIN, without a text: no data yet; PL_CLOSED, without a text:
 * end of data. */
pl_status pl_connection_read(pl_connection *connection) PL_MUST_CHECK;

/* How long our bytes were in flight to a peer that had room for them, as the
 * kernel counts it: the time spent on the link.  -1: not known. */
int64_t pl_connection_busy_ns(const pl_connection *connection);

/* Close the descriptor so that the bytes written last still arrive. */
void pl_connection_hang_up(pl_connection *connection);

#endif
