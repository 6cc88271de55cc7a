/* pump.h - the thread that works for endpoints while their owner computes.
 *
 * It writes what the owner did not write at once, and for clients it makes the
 * connections.  Endpoints of one owner may share a pump, so that a task with
 * hundreds of peers has a few threads (endpoint.h, `beside`).  The thread is
 * started when there is something to do and ends when there was nothing for a
 * while, so an idle endpoint has no thread.
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

/* What the pump does for a client besides; called by its thread, without the
 * lock.  Fills in what to wait for (fd -1: nothing) and until when (-1: for
 * ever); false: there is nothing to do until it is called for again. */
typedef bool pl_pump_chore(void *context, struct pollfd *poll,
                           int64_t *until_ns);

typedef struct pl_pump pl_pump;

/* An endpoint, as its pump knows it. */
struct pl_pump_user {
    pl_pump *pump;
    pl_pump_chore *chore; /* may be NULL */
    void *context;
    /* Guarded by the pump's lock. */
    int32_t active; /* connections with something to write */
    bool listed;    /* its chore has something to do... */
    bool called;    /* ... at once */
    bool working;   /* the chore is being called */
    pl_pump_user *next;
    /* The pump thread's. */
    struct pollfd poll;
    int64_t until_ns;
    size_t slot; /* of `poll` among the pump's; 0: not polled */
};

struct pl_pump {
    int32_t users; /* the owner's */
    pl_mutex lock;
    pl_cond changed;   /* a write or chore has ended, or nothing is to write */
    pl_thread *thread; /* to be joined */
    bool running;      /* guarded, as all that follows */
    bool kicked;       /* since the thread last looked for work */
    bool closing;
    pl_connection *active, *last_active; /* those with something to write */
    pl_pump_user *chores;                /* those that are listed */
    int wake;             /* eventfd while there is a thread, else -1 */
    struct pollfd *polls; /* the thread's */
    size_t polls_size;
};

/* Join the pump of another user, or get a new one.  All users of a pump belong
 * to the same owner. */
pl_status pl_pump_join(pl_pump_user *user, const pl_pump_user *beside,
                       pl_pump_chore *chore, void *context) PL_MUST_CHECK;
/* Wait, at most until the deadline, for all that this user has to be written,
 * then end its chore. */
void pl_pump_finish(pl_pump_user *user, pl_deadline deadline);
/* After finish, when all its connections are withdrawn; the last user ends the
 * thread. */
void pl_pump_leave(pl_pump_user *user);

/* Now and then: let go of what a thread that has ended leaves behind. */
void pl_pump_tidy(pl_pump *pump);

/* There is something to write: see that the thread does it. */
pl_status pl_pump_kick(pl_pump *pump) PL_MUST_CHECK;
/* The user's chore has something to do. */
pl_status pl_pump_call(pl_pump_user *user) PL_MUST_CHECK;
/* With the lock held: hand the connection to the pump; call kick afterwards.
 * The pump's thread may do so, too. */
void pl_pump_activate(pl_pump_user *user, pl_connection *connection);
/* Take it back, also in mid-write; what waits in its outbox stays there. */
void pl_pump_withdraw(pl_pump *pump, pl_connection *connection);

#endif
