/* agent_task.h - one task that an agent has started, and what it prints.
 *
 * Threads: one. */
#ifndef PL_JOB_HOSTS_AGENT_TASK_H
#define PL_JOB_HOSTS_AGENT_TASK_H

#include "job/supervise/child.h"
#include "job/supervise/host.h"

/* What comes from one of its files, until a line is complete. */
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

/* A line without its end; it may be changed. */
typedef void pl_agent_line(void *context, const pl_agent_task *task, bool error,
                           char *line);

/* By a start message; `secret` stays open in the task, which finds its name in
 * PACELINE_KEYS. */
pl_status pl_agent_task_start(pl_agent_task *task,
                              const pl_control_message *message,
                              int secret) PL_MUST_CHECK;
void pl_agent_task_close(pl_agent_task *task);

/* Pass on the lines that have come; does not wait. */
void pl_agent_task_read(pl_agent_task *task, pl_agent_line *pass,
                        void *context);
/* It has ended: pass on what has no end of line, too. */
void pl_agent_task_finish(pl_agent_task *task, pl_agent_line *pass,
                          void *context);

#endif
