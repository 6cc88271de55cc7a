/* heart.h - the thread behind a worker's heartbeat (worker/pulse.h): it tells
 * server 0 that this task lives, and listens for the answer.
 *
 * Threads: `step`, `phase` and `progress` are set by the working thread; the
 * heart has its own thread and connection. */
#ifndef PL_SYNC_PS_HEART_H
#define PL_SYNC_PS_HEART_H

#include "base/host/skew.h"
#include "net/keys.h"
#include "paceline/base.h"
#include "sync/ps/messages/protocol.h"

#include <stdatomic.h>

typedef struct pl_heart pl_heart;

typedef struct pl_heart_opts {
    const char *address; /* of server 0 */
    const char *name;    /* "worker 1" */
    uint32_t incarnation, generation;
    const pl_job_keys *keys; /* NULL: none */
    pl_principal self;       /* with keys */
    int64_t timeout_ms;      /* silence that means lost */
} pl_heart_opts;

pl_status pl_heart_start(pl_heart **out,
                         const pl_heart_opts *opts) PL_MUST_CHECK;
void pl_heart_stop(pl_heart *heart); /* NULL is fine */

void pl_heart_tell(pl_heart *heart, int64_t step, pl_phase phase);
/* Something got done: a part of a step, a message. */
void pl_heart_beat(pl_heart *heart);

/* How far server 0's clock is ahead of ours. */
pl_skew pl_heart_skew(pl_heart *heart);

/* PL_OK; PL_ROLLED when server 0 is silent, new, or began a new generation;
 * PL_CLOSED when it refused us or the job failed. */
pl_status pl_heart_check(pl_heart *heart) PL_MUST_CHECK;

#endif
