/* control.h - a task's end of its control socket.
 *
 * A supervised task inherits one end of a socket pair (--control FD).  The
 * supervisor sends the cluster once all servers have bound their ports; the
 * task sends a hello, then its address, its status, and which tasks it lost
 * (messages.h).  When the supervisor is gone, the socket closes, and the task
 * ends.
 *
 * Threads: status, lost, rolled, warn, final, closing, counts, gone and ended
 * from any thread; the rest from one. */
#ifndef PL_JOB_SUPERVISE_CONTROL_H
#define PL_JOB_SUPERVISE_CONTROL_H

#include "base/clock.h"
#include "job/supervise/messages.h"
#include "net/keys.h"

typedef struct pl_control pl_control;

/* Sends a hello to the supervisor.  On success it takes ownership of `fd`.
 * PL_USAGE when that is not a supervisor's socket. */
pl_status pl_control_new(pl_control **out, int fd) PL_MUST_CHECK;
void pl_control_free(pl_control *control); /* may be NULL */

/* Wait for the secret of the job, which is the first message.  PL_TIMEOUT;
 * PL_CLOSED when the supervisor is gone or ends the job. */
pl_status pl_control_secret(pl_control *control, pl_secret *out,
                            pl_deadline deadline) PL_MUST_CHECK;
/* A server: report the address at which it listens. */
pl_status pl_control_address(pl_control *control,
                             const char *address) PL_MUST_CHECK;
/* Wait for the cluster with all addresses.  PL_TIMEOUT; PL_CLOSED when the
 * supervisor is gone or ends the job. */
pl_status pl_control_cluster(pl_control *control, pl_cluster *out,
                             pl_deadline deadline) PL_MUST_CHECK;
/* Never blocks: a status that is too frequent or does not fit is skipped, but
 * the last one is sent when the control is freed. */
void pl_control_status(pl_control *control, const pl_task_status *status);
/* The chief: an epoch has ended.  Never blocks. */
void pl_control_epoch(pl_control *control, const pl_epoch *epoch);
/* ps 0: this task was declared lost; kill and restart it. */
void pl_control_lost(pl_control *control, pl_task task);
/* The chief: the job was rolled back from one step to an earlier one. */
void pl_control_rolled(pl_control *control, int64_t from, int64_t step);
/* The chief: a warning about the training that the user should read
 * immediately. */
void pl_control_warn(pl_control *control, int64_t step, const char *text);
/* The job is over, successful or not: whatever its exit status, this task must
 * not be restarted.  The chief calls this before it prints; it returns when the
 * supervisor has left the terminal to the chief, or after a while. */
void pl_control_final(pl_control *control);
/* The chief is about to say goodbye to the other tasks: afterwards it cannot be
 * restarted.  Returns when the supervisor, which makes no deliberate faults
 * from then on, has confirmed it, or after a minute. */
void pl_control_closing(pl_control *control);
/* The supervisor's counts so far; sent only to the chief. */
pl_job_counts pl_control_counts(pl_control *control);
/* The next worker that the supervisor does not restart; sent only to ps 0.
 * False: none now. */
bool pl_control_gone(pl_control *control, pl_task *out);
/* The supervisor is gone, or requested the end (after Ctrl-C): finish. */
bool pl_control_ended(pl_control *control);

#endif
