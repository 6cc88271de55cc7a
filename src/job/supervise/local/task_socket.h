/* task_socket.h - the supervisor's ends of the control sockets of tasks that
 * run on this machine, as processes or as threads.
 *
 * Threads: one, the supervisor's. */
#ifndef PL_JOB_SUPERVISE_LOCAL_TASK_SOCKET_H
#define PL_JOB_SUPERVISE_LOCAL_TASK_SOCKET_H

#include "job/supervise/host.h"
#include "net/keys.h"

typedef struct pl_task_socket {
    pl_task task; /* whose it is */
    int fd;       /* -1: closed */
} pl_task_socket;

/* `secret`: sent as the first message; NULL: none.  *theirs is the task's end;
 * the caller closes it. */
pl_status pl_task_socket_open(pl_task_socket *out, pl_task task,
                              const pl_secret *secret,
                              int *theirs) PL_MUST_CHECK;
void pl_task_socket_close(pl_task_socket *socket);

/* Does not fail for a task that is gone: its end reports that. */
pl_status pl_task_socket_send(pl_task_socket *socket,
                              const pl_control_message *message) PL_MUST_CHECK;
/* Pass on every message that has arrived, without blocking. */
pl_status pl_task_socket_take(pl_task_socket *socket,
                              const pl_host_events *events) PL_MUST_CHECK;

#endif
