/* door.h - decides who may connect to a server: its ZAP handler (ZeroMQ RFC
 * 27).
 *
 * ZeroMQ asks it about each connection before a message of it is taken.  It
 * lets in who proved to be a task of the job, and tells who that was; without
 * keys it lets in everybody, as nobody known.  Whoever speaks a ZeroMQ
 * protocol too old to be asked is turned away by ZeroMQ itself, because there
 * is a door.
 *
 * Threads: one opens and closes; it has a thread of its own, which waits for
 * questions at most a second at a time. */
#ifndef PL_NET_DOOR_H
#define PL_NET_DOOR_H

#include "net/keys.h"

#define PL_DOOR_DOMAIN "paceline"

typedef struct pl_door pl_door;

/* For all sockets of a ZeroMQ context that have this domain; open it before
 * they listen.  `keys` is copied; NULL: there are none. */
pl_status pl_door_open(pl_door **out, void *context,
                       const pl_job_keys *keys) PL_MUST_CHECK;
/* After zmq_ctx_shutdown, before zmq_ctx_term; NULL is fine. */
void pl_door_close(pl_door *door);

/* What is asked about a connection. */
typedef struct pl_door_question {
    const char *mechanism; /* "NULL", "PLAIN", "CURVE" */
    const void *credentials[2];
    size_t bytes[2]; /* 0: not there */
} pl_door_question;

/* True when it may come in; *who is then who it is. */
bool pl_door_judge(const pl_door *door, const pl_door_question *question,
                   pl_principal *who);

#endif
