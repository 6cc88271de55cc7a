#include "train/schedule.h"

double pl_schedule_lr(const pl_schedule *schedule, int64_t update)
{
    if (update >= schedule->warmup)
        return schedule->lr;
    return schedule->lr * (double)update / (double)schedule->warmup;
}
