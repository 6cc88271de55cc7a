/* pump.h - the thread that works for an endpoint while its owner computes.
 *
 * It writes what the owner did not write at once, and for a client it makes
 * the connection.  It is started when there is something to do and ends when
 * there was nothing for a while, so an idle endpoint has no thread.
 *
 * The right to write to a connection: while `busy` is false it is the owner's,
 * else the pump's.  Only the owner sets it, only the pump clears it, and then
 * the outbox is empty.
 *
 * Threads: the owner's calls, unless a comment says otherwise. */
#ifndef PL_NET_TCP_PUMP_H
#define PL_NET_TCP_PUMP_H

#include "net/tcp/connection.h"

#include <poll.h>

/* What a client's pump does besides; called by its thread, without the lock.
 * Fills in what to wait for (fd -1: nothing) and until when (-1: for ever);
 * false: there is nothing to do any more. */
typedef bool pl_pump_chore(void *context, struct pollfd *poll,
                           int64_t *until_ns);

typedef struct pl_pump {
    pl_mutex lock;
    pl_cond changed;   /* a write has ended, or nothing is left to write */
    pl_thread *thread; /* to be joined */
    bool running;      /* guarded, as all that follows */
    bool kicked;       /* since the thread last looked for work */
    bool closing;
    pl_connection *active; /* those with something to write */
    int wake;              /* eventfd while there is a thread, else -1 */
    pl_pump_chore *chore;  /* may be NULL */
    void *chore_context;
    struct pollfd *polls; /* the thread's */
    size_t polls_size;
} pl_pump;

void pl_pump_init(pl_pump *pump, pl_pump_chore *chore, void *context);
/* Wait at most so long until all is written, then end the thread. */
void pl_pump_stop(pl_pump *pump, pl_deadline deadline);
/* After stop. */
void pl_pump_close(pl_pump *pump);

/* Now and then: let go of what a thread that has ended leaves behind. */
void pl_pump_tidy(pl_pump *pump);

/* There is something to do: see that the thread does it. */
pl_status pl_pump_kick(pl_pump *pump) PL_MUST_CHECK;
/* With the lock held: hand the connection to the pump; call kick afterwards.
 */
void pl_pump_activate(pl_pump *pump, pl_connection *connection);
/* Take it back, also in mid-write; what waits in its outbox stays there. */
void pl_pump_withdraw(pl_pump *pump, pl_connection *connection);

#endif
