/* dialer.h - a client's way to its server: connects, and connects again.
 *
 * It works on the thread of the pump, as its chore.  While it dials, the
 * connection is its own; when the handshake is done the connection is the
 * owner's, until the owner finds it lost and asks to dial again.  Attempts
 * that fail are repeated after 10 ms, then less and less often, down to once
 * a second.
 *
 * Threads: init, again, collect and close are the owner's. */
#ifndef PL_NET_TCP_DIALER_H
#define PL_NET_TCP_DIALER_H

#include "net/address.h"
#include "net/tcp/pump.h"

typedef enum pl_dial_state {
    PL_DIAL_TRYING,
    PL_DIAL_READY,
    PL_DIAL_REFUSED, /* for good; `refused` says why */
} pl_dial_state;

typedef struct pl_dialer {
    pl_pump_user *user;
    pl_connection *link;
    pl_spares *spares;
    pl_handshake_config config;
    bool encrypt;
    pl_address address;
    _Atomic int state;
    int notify; /* eventfd: rung when the owner should look */
    /* Guarded by the pump's lock. */
    bool complained;
    char complaint[128], refused[128];
    int32_t lost; /* messages, with connections that broke */
    /* The pump's. */
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
/* What went wrong since the last call, in `why` (false: nothing); how many
 * messages were lost. */
bool pl_dialer_collect(pl_dialer *dialer, char why[128], int32_t *lost);

#endif
