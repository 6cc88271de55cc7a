/* tasks.h - a shared table of a job's tasks on one host.
 *
 * A small file in the run folder has a place for each task: its role, process,
 * bytes sent and received, and progress.  Tasks write only their own place, so
 * no task waits.  The task that holds the file's lock samples for the host;
 * when it ends, in any way, another gets the lock.
 *
 * Threads: one thread. */
#ifndef PL_OBSERVE_RESOURCES_TASKS_H
#define PL_OBSERVE_RESOURCES_TASKS_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PL_TASKS_MOST 4096 /* places */

typedef enum pl_tasks_role {
    PL_TASKS_WORKER, /* includes the chief */
    PL_TASKS_PS,
    PL_TASKS_EVALUATOR,
    PL_TASKS_ROLES,
} pl_tasks_role;

typedef struct pl_tasks pl_tasks;

typedef struct pl_tasks_opts {
    const char *path; /* of the file; created if missing */
    int place;        /* of this task: 0 .. PL_TASKS_MOST - 1 */
    pl_tasks_role role;
    double lasts_s; /* a place not written for this long is free */
} pl_tasks_opts;

pl_status pl_tasks_new(pl_tasks **out, const pl_tasks_opts *opts) PL_MUST_CHECK;
/* Releases the place; the sampling task, if it is the last, removes the file.
 * NULL is fine. */
void pl_tasks_free(pl_tasks *tasks);

/* Write the bytes that this task's process has sent and received so far. */
pl_status pl_tasks_tell(pl_tasks *tasks, double time, uint64_t sent_bytes,
                        uint64_t received_bytes) PL_MUST_CHECK;

/* From the next pl_tasks_tell on, also write a number that changes whenever
 * this task makes progress. */
void pl_tasks_progress(pl_tasks *tasks, uint64_t progress);

/* True for one task of the host, from when it gets the lock to its end. */
bool pl_tasks_speaks(pl_tasks *tasks);

/* The processes of all tasks, and sums. */
typedef struct pl_tasks_view {
    const pid_t *pids;
    const pl_tasks_role *roles; /* likewise [count] */
    int count;
    uint64_t sent_bytes, received_bytes; /* including tasks that left */
    uint64_t role_sent_bytes[PL_TASKS_ROLES];
    uint64_t role_received_bytes[PL_TASKS_ROLES];
    uint64_t progress; /* changes when any task makes progress */
} pl_tasks_view;
pl_status pl_tasks_look(pl_tasks *tasks, double time,
                        pl_tasks_view *out) PL_MUST_CHECK;

#endif
