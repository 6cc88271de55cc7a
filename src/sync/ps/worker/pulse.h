/* pulse.h - the heartbeat of a task of a parameter-server job, without input or
 * output: when it is due, and what the answers, or their absence, mean.
 *
 * Threads: one object, one thread. */
#ifndef PL_SYNC_PS_WORKER_PULSE_H
#define PL_SYNC_PS_WORKER_PULSE_H

#include "net/endpoint.h"
#include "sync/ps/messages/messages.h"

typedef struct pl_pulse_opts {
    const char *address; /* of server 0, for messages; borrowed */
    uint32_t incarnation, generation;
    int64_t timeout_ms; /* silence that means lost; default 5000 */
} pl_pulse_opts;

typedef struct pl_pulse {
    pl_pulse_opts opts;
    int64_t heard_ns, next_ns;
    uint64_t number; /* of the last heartbeat, and... */
    int64_t sent_ns; /* ... when it was sent */
    pl_status status;
    char why[512];
} pl_pulse;

void pl_pulse_init(pl_pulse *pulse, const pl_pulse_opts *opts, int64_t now_ns);

/* True: send *out now, with the phase of the task.  pulse->next_ns is when the
 * next one is due. */
bool pl_pulse_tick(pl_pulse *pulse, int64_t now_ns, const pl_vital *vital,
                   pl_frame *out);
/* A message of server 0 has arrived on any connection: it is alive. */
void pl_pulse_heard(pl_pulse *pulse, int64_t now_ns);
/* Handle an answer of server 0. */
void pl_pulse_receive(pl_pulse *pulse, const pl_message *message,
                      int64_t now_ns);

/* PL_OK; PL_ROLLED when server 0 is silent, new, or began a new generation;
 * PL_CLOSED when it refused this task or the job failed. */
pl_status pl_pulse_check(pl_pulse *pulse, int64_t now_ns) PL_MUST_CHECK;

#endif
