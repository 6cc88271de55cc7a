/* control.h - a task's end of its control socket.
 *
 * A supervised task inherits one end of a socket pair (--control FD).  The
 * supervisor sends the cluster once all servers have bound their ports; the
 * task says that it is there, then sends its address, how far it is, and whom
 * it lost (messages.h).  When the supervisor is gone, so is the socket, and the
 * task ends.
 *
 * Threads: status, lost, rolled, warn, final, closing, counts, gone and ended
 * from any thread; the rest from one. */
#ifndef PL_JOB_SUPERVISE_CONTROL_H
#define PL_JOB_SUPERVISE_CONTROL_H

#include "base/clock.h"
#include "job/supervise/messages.h"
#include "net/keys.h"

typedef struct pl_control pl_control;

/* Tells the supervisor that its task is there.  `fd` is the control's once
 * this succeeded.  PL_USAGE when it is no supervisor's socket. */
pl_status pl_control_new(pl_control **out, int fd) PL_MUST_CHECK;
void pl_control_free(pl_control *control); /* NULL is fine */

/* Wait for the secret of the job, which comes first of all.  PL_TIMEOUT;
 * PL_CLOSED when the supervisor is gone or ends the job. */
pl_status pl_control_secret(pl_control *control, pl_secret *out,
                            pl_deadline deadline) PL_MUST_CHECK;
/* A server: this is where I listen. */
pl_status pl_control_address(pl_control *control,
                             const char *address) PL_MUST_CHECK;
/* Wait for the cluster with all addresses.  PL_TIMEOUT; PL_CLOSED when the
 * supervisor is gone or ends the job. */
pl_status pl_control_cluster(pl_control *control, pl_cluster *out,
                             pl_deadline deadline) PL_MUST_CHECK;
/* Never waits: what comes too often or does not fit is left out, but the last
 * one is sent when the control is freed. */
void pl_control_status(pl_control *control, const pl_task_status *status);
/* The chief: an epoch has ended.  Never waits either. */
void pl_control_epoch(pl_control *control, const pl_epoch *epoch);
/* ps 0: this task was declared lost; kill and restart it. */
void pl_control_lost(pl_control *control, pl_task task);
/* The chief: the job went back from one step to an earlier one. */
void pl_control_rolled(pl_control *control, int64_t from, int64_t step);
/* The chief: the training goes wrong, which its user is to read at once. */
void pl_control_warn(pl_control *control, int64_t step, const char *text);
/* The job is over, well or not: whatever my exit status, do not start me
 * again.  The chief says so before it prints, and returns from here when the
 * supervisor has left the terminal to it, or after a while. */
void pl_control_final(pl_control *control);
/* The chief is about to take leave of the other tasks: from here on it cannot
 * be started again in their place.  Returns when the supervisor has confirmed
 * it, which makes no faults on purpose from then on, or after a minute. */
void pl_control_closing(pl_control *control);
/* What the supervisor has counted so far; only the chief is told. */
pl_job_counts pl_control_counts(pl_control *control);
/* The next worker that the supervisor does not restart; only ps 0 is told.
 * False: none now. */
bool pl_control_gone(pl_control *control, pl_task *out);
/* The supervisor is gone, or wants an end (after Ctrl-C): finish. */
bool pl_control_ended(pl_control *control);

#endif
