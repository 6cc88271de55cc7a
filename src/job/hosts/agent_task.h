/* agent_task.h - one task that an agent has started, and its output.
 *
 * Threads: one. */
#ifndef PL_JOB_HOSTS_AGENT_TASK_H
#define PL_JOB_HOSTS_AGENT_TASK_H

#include "job/supervise/child.h"
#include "job/supervise/host.h"

/* The output of one of its files, until a line is complete. */
typedef struct pl_agent_stream {
    int fd; /* -1: closed */
    char *line;
    size_t used;
} pl_agent_stream;

typedef struct pl_agent_task {
    pl_task task;
    pid_t pid;
    pl_agent_stream out, err;
    char said[PL_HOST_SAID]; /* the last line of its standard error */
} pl_agent_task;

/* Passes a line without its newline; it may be modified. */
typedef void pl_agent_line(void *context, const pl_agent_task *task, bool error,
                           char *line);

/* Start it as a start message describes; `secret` stays open in the task, which
 * finds its path in PACELINE_KEYS. */
pl_status pl_agent_task_start(pl_agent_task *task,
                              const pl_control_message *message,
                              int secret) PL_MUST_CHECK;
void pl_agent_task_close(pl_agent_task *task);

/* Pass on the lines that have arrived, without blocking. */
void pl_agent_task_read(pl_agent_task *task, pl_agent_line *pass,
                        void *context);
/* It has ended: also pass on output without a newline. */
void pl_agent_task_finish(pl_agent_task *task, pl_agent_line *pass,
                          void *context);

#endif
