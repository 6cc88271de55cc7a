/* tasks.h - the tasks of a job on one host, as they tell each other.
 *
 * A small file in the run folder has a place for each task: who it is, its
 * process, what went over its connections, how far it is.  Tasks write their
 * own place and nothing else, so nobody waits.  One of them, whoever has the
 * file's lock, speaks for the host; when it is gone, however it ended, another
 * gets the lock.
 *
 * Threads: one. */
#ifndef PL_OBSERVE_RESOURCES_TASKS_H
#define PL_OBSERVE_RESOURCES_TASKS_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PL_TASKS_MOST 4096 /* places */

typedef enum pl_tasks_role {
    PL_TASKS_WORKER, /* the chief is one */
    PL_TASKS_PS,
    PL_TASKS_EVALUATOR,
    PL_TASKS_ROLES,
} pl_tasks_role;

typedef struct pl_tasks pl_tasks;

typedef struct pl_tasks_opts {
    const char *path; /* of the file; made where it is not there */
    int place;        /* of this task: 0 .. PL_TASKS_MOST - 1 */
    pl_tasks_role role;
    double lasts_s; /* a place that was not written for so long is free */
} pl_tasks_opts;

pl_status pl_tasks_new(pl_tasks **out, const pl_tasks_opts *opts) PL_MUST_CHECK;
/* Gives the place back; who speaks for the host and is the last removes the
 * file.  NULL is fine. */
void pl_tasks_free(pl_tasks *tasks);

/* Tell what this task's process has sent and received so far. */
pl_status pl_tasks_tell(pl_tasks *tasks, double time, uint64_t sent_bytes,
                        uint64_t received_bytes) PL_MUST_CHECK;

/* Tell with it, from the next time on, a number that changes when this task
 * gets something done. */
void pl_tasks_progress(pl_tasks *tasks, uint64_t progress);

/* True for one task of the host, from when it gets the lock to its end. */
bool pl_tasks_speaks(pl_tasks *tasks);

/* What all tasks told: their processes, and sums. */
typedef struct pl_tasks_view {
    const pid_t *pids;
    const pl_tasks_role *roles; /* likewise [count] */
    int count;
    uint64_t sent_bytes, received_bytes; /* also of those that are gone */
    uint64_t role_sent_bytes[PL_TASKS_ROLES];
    uint64_t role_received_bytes[PL_TASKS_ROLES];
    uint64_t progress; /* changes when any task gets something done */
} pl_tasks_view;
pl_status pl_tasks_look(pl_tasks *tasks, double time,
                        pl_tasks_view *out) PL_MUST_CHECK;

#endif
