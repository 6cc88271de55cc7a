/* due.h - when an interval ("every 100 steps", "20000ex", "1ep", "60s") is due.
 *
 * Threads: a pl_due belongs to one thread. */
#ifndef PL_TRAIN_LOOP_DUE_H
#define PL_TRAIN_LOOP_DUE_H

#include "paceline/base.h"

/* Converts examples and epochs to steps. */
typedef struct pl_due_pace {
    int64_t step_examples;   /* of all workers together */
    int64_t steps_per_epoch; /* -1: not known; epochs never end */
} pl_due_pace;

/* Due whenever `each` per step add up to another multiple of `count`; both 0:
 * never by steps. */
typedef struct pl_due_steps {
    int64_t count, each;
} pl_due_steps;

pl_due_steps pl_due_by_steps(pl_every every, pl_due_pace pace);
/* The first step after `step` at which it is due; INT64_MAX: none. */
int64_t pl_due_step_after(pl_due_steps due, int64_t step);

typedef struct pl_due {
    pl_every every;
    pl_due_pace pace;
    int64_t next_step;   /* INT64_MAX: not by steps */
    uint64_t next_ticks; /* UINT64_MAX: not by time */
} pl_due;

/* For a run at `step`; what was due there is done. */
void pl_due_init(pl_due *due, pl_every every, pl_due_pace pace, int64_t step);

/* Is it due after `step` at time `ticks`? */
bool pl_due_then(const pl_due *due, int64_t step, uint64_t ticks);
/* The same; if due, sets the next time. */
bool pl_due_now(pl_due *due, int64_t step, uint64_t ticks);

#endif
