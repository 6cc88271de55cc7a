/* stop.h - stopping a running job from another process.
 *
 * The process that Ctrl-C would reach (a training in one process, a supervisor,
 * launch) listens on the Unix socket <run>/control.sock while its job runs.  An
 * "end" of the control language (job/supervise/messages.h) that arrives there
 * does what the first Ctrl-C does, and is confirmed by an "end".
 *
 * A run folder may be hostile: no link is followed to the socket, and both ends
 * check that the other is of the same user (or root).  No process number is
 * read from a file.
 *
 * Threads: listen and free from one; ask and is_there from any. */
#ifndef PL_JOB_STOP_STOP_H
#define PL_JOB_STOP_STOP_H

#include "base/clock.h"
#include "paceline/base.h"

#include <stdatomic.h>

#define PL_STOP_SOCKET "control.sock"

typedef struct pl_stop pl_stop;

typedef struct pl_stop_opts {
    const char *run;        /* the run folder; required */
    atomic_bool *interrupt; /* set when asked; required */
    bool keep;              /* keep an existing socket: PL_CLOSED.  For a task
                               whose starter listens, possibly on another host;
                               otherwise the socket is stale and replaced */
} pl_stop_opts;

/* PL_IO if the file system does not support sockets. */
pl_status pl_stop_listen(pl_stop **out, const pl_stop_opts *opts) PL_MUST_CHECK;
/* Removes the socket; may be NULL. */
void pl_stop_free(pl_stop *stop);

/* Whether the run folder has such a socket of this user. */
bool pl_stop_is_there(const char *run);
/* Ask the job of the run folder to end; it then saves and ends.  PL_NOTFOUND:
 * no process of this host listens; PL_PEER: not such a socket, or another
 * user's; PL_TIMEOUT. */
pl_status pl_stop_ask(const char *run, pl_deadline deadline) PL_MUST_CHECK;

#endif
