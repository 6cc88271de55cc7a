/* dialer.h - connects a client to its server, and reconnects.
 *
 * It runs on the thread of the pump, as a chore.  While it dials, it owns the
 * connection; after the handshake the connection belongs to the owner, until
 * the owner finds it lost and asks to dial again.  Attempts that fail are
 * repeated after 10 ms, then less and less often, down to once a second.
 *
 * Threads: init, again, collect and close are for the owner. */
#ifndef PL_NET_TCP_DIALER_H
#define PL_NET_TCP_DIALER_H

#include "net/address.h"
#include "net/tcp/pump.h"

typedef enum pl_dial_state {
    PL_DIAL_TRYING,
    PL_DIAL_READY,
    PL_DIAL_REFUSED, /* permanently; `refused` has the reason */
} pl_dial_state;

typedef struct pl_dialer {
    pl_pump_user *user;
    pl_connection *link;
    pl_spares *spares;
    pl_handshake_config config;
    bool encrypt;
    pl_address address;
    _Atomic int state;
    int notify; /* eventfd: signalled when the owner should poll */
    /* Guarded by the pump's lock. */
    bool complained;
    char complaint[128], refused[128];
    int32_t lost; /* messages, with connections that broke */
    /* Used by the pump. */
    int phase;
    int failures;
    bool resolved;
    int64_t next_ns, deadline_ns, arrived_ns;
    uint64_t random;
} pl_dialer;

pl_status pl_dialer_init(pl_dialer *dialer, pl_pump_user *user,
                         pl_connection *link, pl_spares *spares) PL_MUST_CHECK;
void pl_dialer_close(pl_dialer *dialer);
pl_pump_chore pl_dialer_step;

/* The connection is lost: make another. */
pl_status pl_dialer_again(pl_dialer *dialer) PL_MUST_CHECK;
/* Errors since the last call, in `why` (false: none); how many messages were
 * lost. */
bool pl_dialer_collect(pl_dialer *dialer, char why[128], int32_t *lost);

#endif
