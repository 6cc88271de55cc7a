#include "train/due.h"

#include "base/clock.h"

/* The first step after `step` at which it is due. */
static int64_t step_after(const pl_due *due, int64_t step)
{
    int64_t count = due->every.count;
    int64_t per_epoch = due->pace.steps_per_epoch;
    switch (due->every.unit) {
    case PL_EVERY_STEPS:
        return (step / count + 1) * count;
    case PL_EVERY_EXAMPLES: {
        int64_t each = due->pace.step_examples;
        int64_t goal = (step * each / count + 1) * count;
        return (goal + each - 1) / each;
    }
    case PL_EVERY_EPOCHS:
        if (per_epoch <= 0)
            return INT64_MAX;
        return (step / (count * per_epoch) + 1) * count * per_epoch;
    case PL_EVERY_SECONDS:
    case PL_EVERY_NEVER:
        break;
    }
    return INT64_MAX;
}

static uint64_t ticks_after(const pl_due *due, uint64_t ticks)
{
    if (due->every.unit != PL_EVERY_SECONDS)
        return UINT64_MAX;
    return ticks + (uint64_t)((double)due->every.count * 1e9 / pl_ticks_ns());
}

void pl_due_init(pl_due *due, pl_every every, pl_due_pace pace, int64_t step)
{
    *due = (pl_due) { .every = every, .pace = pace };
    due->next_step = step_after(due, step);
    due->next_ticks = ticks_after(due, pl_ticks_now());
}

bool pl_due_now(pl_due *due, int64_t step, uint64_t ticks)
{
    if (step < due->next_step && ticks < due->next_ticks)
        return false;
    due->next_step = step_after(due, step);
    due->next_ticks = ticks_after(due, ticks);
    return true;
}
