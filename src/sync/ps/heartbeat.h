/* heartbeat.h - the thread behind a worker's heartbeat (worker/pulse.h): it
 * sends heartbeats to server 0 and receives the answers.
 *
 * Threads: phase, progress and heard are called by the working thread; the
 * heartbeat has its own thread and connection. */
#ifndef PL_SYNC_PS_HEARTBEAT_H
#define PL_SYNC_PS_HEARTBEAT_H

#include "base/host/skew.h"
#include "net/keys.h"
#include "paceline/base.h"
#include "sync/ps/messages/protocol.h"

#include <stdatomic.h>

typedef struct pl_heartbeat pl_heartbeat;

typedef struct pl_heartbeat_opts {
    const char *address; /* of server 0 */
    const char *name;    /* "worker 1" */
    uint32_t incarnation, generation;
    const pl_job_keys *keys; /* NULL: none */
    pl_principal self;       /* with keys */
    int64_t timeout_ms;      /* silence that means lost */
} pl_heartbeat_opts;

pl_status pl_heartbeat_start(pl_heartbeat **out,
                             const pl_heartbeat_opts *opts) PL_MUST_CHECK;
void pl_heartbeat_stop(pl_heartbeat *heartbeat); /* may be NULL */

void pl_heartbeat_phase(pl_heartbeat *heartbeat, int64_t step, pl_phase phase);
/* The task made progress: a part of a step, or a message. */
void pl_heartbeat_progress(pl_heartbeat *heartbeat);

/* The working thread has received a message of server 0: it is alive. */
void pl_heartbeat_heard(pl_heartbeat *heartbeat);

/* How far server 0's clock is ahead of ours. */
pl_skew pl_heartbeat_skew(pl_heartbeat *heartbeat);

/* PL_OK; PL_ROLLED when server 0 is silent, new, or began a new generation;
 * PL_CLOSED when it refused this task or the job failed. */
pl_status pl_heartbeat_check(pl_heartbeat *heartbeat) PL_MUST_CHECK;

#endif
