/* schedule.h - the learning rate of each update.
 *
 * Threads: pure functions. */
#ifndef PL_TRAIN_SCHEDULE_H
#define PL_TRAIN_SCHEDULE_H

#include <stdint.h>

typedef struct pl_schedule {
    double lr;      /* the rate after the warm-up */
    int64_t warmup; /* updates over which it rises evenly; 0: none */
} pl_schedule;

/* For update number `update`, from 1. */
double pl_schedule_lr(const pl_schedule *schedule, int64_t update);

#endif
