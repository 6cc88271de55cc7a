/* pump.h - the thread that works for endpoints while their owner computes.
 *
 * It writes what the owner did not write at once, and connects for clients.
 * Endpoints of one owner may share a pump, so that a task with hundreds of
 * peers has a few threads (endpoint.h, `beside`).  The thread starts when there
 * is work and ends after a while without any, so an idle endpoint has no
 * thread.
 *
 * The right to write to a connection: the owner has it while `busy` is false,
 * otherwise the pump.  Only the owner sets `busy`, only the pump clears it, and
 * then the outbox is empty.
 *
 * Threads: calls are for the owner, unless a comment says otherwise. */
#ifndef PL_NET_TCP_PUMP_H
#define PL_NET_TCP_PUMP_H

#include "net/tcp/connection.h"

#include <poll.h>

/* Further work of the pump for a client; called by its thread, without the
 * lock.  Fills in what to wait for (fd -1: nothing) and until when (-1:
 * forever); false: nothing to do until it is requested again. */
typedef bool pl_pump_chore(void *context, struct pollfd *poll,
                           int64_t *until_ns);

typedef struct pl_pump pl_pump;

/* An endpoint as seen by its pump. */
struct pl_pump_user {
    pl_pump *pump;
    pl_pump_chore *chore; /* may be NULL */
    void *context;
    /* Guarded by the pump's lock. */
    int32_t active; /* connections with data to write */
    bool listed;    /* its chore has something to do... */
    bool called;    /* ... at once */
    bool working;   /* the chore is being called */
    pl_pump_user *next;
    /* Used by the pump's thread. */
    struct pollfd poll;
    int64_t until_ns;
    size_t slot; /* of `poll` among the pump's; 0: not polled */
};

struct pl_pump {
    int32_t users; /* used by the owner */
    pl_mutex lock;
    pl_cond changed;   /* a write or chore has ended, or nothing is left to
                          write */
    pl_thread *thread; /* to be joined */
    bool running;      /* guarded, like all that follows */
    bool kicked;       /* since the thread last checked for work */
    bool closing;
    pl_connection *active, *last_active; /* with data to write */
    pl_pump_user *chores;                /* listed users */
    int wake;             /* eventfd while there is a thread, else -1 */
    struct pollfd *polls; /* used by the thread */
    size_t polls_size;
};

/* Join the pump of another user, or get a new one.  All users of a pump belong
 * to the same owner. */
pl_status pl_pump_join(pl_pump_user *user, const pl_pump_user *beside,
                       pl_pump_chore *chore, void *context) PL_MUST_CHECK;
/* Wait, at most until the deadline, until all data of this user is written,
 * then end its chore. */
void pl_pump_finish(pl_pump_user *user, pl_deadline deadline);
/* After finish, when all its connections are withdrawn; the last user ends the
 * thread. */
void pl_pump_leave(pl_pump_user *user);

/* To be called occasionally: join a thread that has ended. */
void pl_pump_tidy(pl_pump *pump);

/* There is data to write: make sure that the thread writes it. */
pl_status pl_pump_kick(pl_pump *pump) PL_MUST_CHECK;
/* Request the user's chore. */
pl_status pl_pump_call(pl_pump_user *user) PL_MUST_CHECK;
/* With the lock held: hand the connection to the pump; call kick afterwards.
 * Also allowed for the pump's thread. */
void pl_pump_activate(pl_pump_user *user, pl_connection *connection);
/* Take it back, even during a write; its outbox keeps its messages. */
void pl_pump_withdraw(pl_pump *pump, pl_connection *connection);

#endif
