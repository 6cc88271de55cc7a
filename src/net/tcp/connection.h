/* connection.h - one TCP connection: a descriptor, its handshake, what comes
 * in and what goes out.
 *
 * A connection that has not finished its handshake has this struct and
 * nothing else: about a kilobyte.
 *
 * Threads: reading belongs to the endpoint's owner, writing to who pump.h
 * says; a client's connection is the pump's until its handshake is done. */
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
    uint8_t have; /* bytes of the handshake message that comes */
    uint8_t in[PL_HANDSHAKE_BYTES];
    pl_handshake handshake;
    int64_t deadline_ns; /* of the handshake */
    int32_t offences;    /* malformed messages */
    size_t charged;      /* server without keys: memory, as a stranger's */
    char address[PL_PEER_TEXT];
    pl_connection *before, *after; /* among those without a number */
    bool drained;                  /* the last read took all that had come */
    pl_decoder decoder;
    pl_outbox outbox;
    /* The pump's; see there. */
    atomic_bool busy;
    bool writing, broken;
    pl_connection *next_active;
    pl_pump_user *user; /* whose it is, while it is busy */
};

/* Set what every socket of ours has. */
void pl_connection_tune(int fd);
/* "10.0.0.7:40112", or "unknown". */
void pl_connection_name(char out[PL_PEER_TEXT], int fd);

/* Without keys, on loopback: may the process at the other end take part?  Only
 * those of our user may.  False: it has closed the connection, so whose it was
 * cannot be known. */
bool pl_connection_judge_user(int fd, pl_verdict *out);

/* Read what has come of the handshake and answer it.  PL_HANDSHAKE_MORE: wait
 * until the descriptor can be read.  When it is done, the stream and the
 * outbox are made.  *closed: the other end has gone (the result is
 * PL_HANDSHAKE_REFUSED, and handshake.why says so). */
pl_handshake_result pl_connection_shake(pl_connection *connection,
                                        const pl_handshake_config *config,
                                        pl_verdict verdict, pl_spares *spares,
                                        bool *closed);

/* Read once.  PL_AGAIN, without a text: nothing is there; PL_CLOSED, without
 * a text: nothing will be. */
pl_status pl_connection_read(pl_connection *connection) PL_MUST_CHECK;

/* How long bytes of ours were on their way to a peer that had room for them, by
 * the kernel's count: the time that the link took.  -1: not known. */
int64_t pl_connection_busy_ns(const pl_connection *connection);

/* Close the descriptor so that what was written last still arrives. */
void pl_connection_hang_up(pl_connection *connection);

#endif
