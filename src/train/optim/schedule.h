/* schedule.h - the learning rate of each update.
 *
 * A warm-up, then a decay that starts at the update with the full rate, so that
 * the rate does not jump.  Formulas in docs/optimizers.md.
 *
 * Threads: pure functions. */
#ifndef PL_TRAIN_OPTIM_SCHEDULE_H
#define PL_TRAIN_OPTIM_SCHEDULE_H

#include <stdint.h>

typedef enum pl_schedule_kind {
    PL_SCHEDULE_CONSTANT,
    PL_SCHEDULE_STEP,
    PL_SCHEDULE_EXPONENTIAL,
    PL_SCHEDULE_COSINE,
} pl_schedule_kind;

typedef struct pl_schedule {
    double lr;      /* the rate after the warm-up */
    int64_t warmup; /* updates over which the rate rises linearly; 0: none */
    pl_schedule_kind kind;
    double decay;        /* step, exponential: factor per decay_steps updates */
    int64_t decay_steps; /* step, exponential: required; cosine: its length, 0:
                            until the end of the run */
    int64_t run_steps;   /* updates of the whole run; required by cosine without
                            decay_steps */
} pl_schedule;

/* For update number `update`, from 1. */
double pl_schedule_lr(const pl_schedule *schedule, int64_t update);

#endif
