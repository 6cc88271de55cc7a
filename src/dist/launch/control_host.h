/* control_host.h - the supervisor's end of a control socket.
 *
 * A message is one packet of text (SOCK_SEQPACKET keeps them apart, and one
 * that does not fit is not sent at all):
 *
 *   from a task     hello
 *                   address HOST:PORT
 *                   status STEP OWN EXAMPLES DROPPED LOSS TEST_LOSS ACCURACY
 *                   lost ROLE INDEX
 *                   closing
 *                   final
 *   to a task       secret HEXADECIMAL DIGITS       (net/keys.h)
 *                   cluster {"cluster": {...}}      (cluster.h)
 *                   faults NUMBER                   (chaos.h)
 *                   closing                         (the same, confirmed)
 *                   end
 *
 * Nothing here waits.
 *
 * Threads: one. */
#ifndef PL_DIST_LAUNCH_CONTROL_HOST_H
#define PL_DIST_LAUNCH_CONTROL_HOST_H

#include "dist/launch/control.h"

#define PL_CONTROL_MOST      65536 /* bytes of a message to a task */
#define PL_CONTROL_TASK_MOST 512   /* ... from one, with a NUL */

typedef enum pl_control_kind {
    PL_CONTROL_HELLO,
    PL_CONTROL_ADDRESS,
    PL_CONTROL_STATUS,
    PL_CONTROL_LOST,
    PL_CONTROL_CLOSING,
    PL_CONTROL_FINAL,
} pl_control_kind;

typedef struct pl_control_message {
    pl_control_kind kind;
    char address[PL_CONTROL_TASK_MOST]; /* of PL_CONTROL_ADDRESS */
    pl_task_status status;              /* of PL_CONTROL_STATUS */
    pl_task task;                       /* of PL_CONTROL_LOST */
} pl_control_message;

/* Two ends; both are closed by exec until said otherwise. */
pl_status pl_control_pair(int *ours, int *theirs) PL_MUST_CHECK;

/* The next message.  PL_AGAIN: none now, PL_CLOSED: the task's end is closed,
 * PL_PEER: not understood. */
pl_status pl_control_receive(int fd, pl_control_message *out) PL_MUST_CHECK;
/* What receive does with the text of a message. */
pl_status pl_control_parse(pl_control_message *out,
                           const char *text) PL_MUST_CHECK;

/* All: PL_CLOSED when the task has gone. */
pl_status pl_control_send_secret(int fd, const pl_secret *secret) PL_MUST_CHECK;
pl_status pl_control_send_cluster(int fd,
                                  const pl_cluster *cluster) PL_MUST_CHECK;
pl_status pl_control_send_faults(int fd, int64_t faults) PL_MUST_CHECK;
pl_status pl_control_send_closing(int fd) PL_MUST_CHECK;
void pl_control_send_end(int fd);

#endif
