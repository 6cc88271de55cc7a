/* Converts an interval in steps, examples, epochs or seconds to due times; a
 * time that would overflow means never. */
#include "train/loop/due.h"

#include "base/clock.h"

/* a * b + c, or the largest number, meaning never. */
static int64_t times_plus(int64_t a, int64_t b, int64_t c)
{
    int64_t product, sum;
    if (__builtin_mul_overflow(a, b, &product) ||
        __builtin_add_overflow(product, c, &sum))
        return INT64_MAX;
    return sum;
}

pl_due_steps pl_due_by_steps(pl_every every, pl_due_pace pace)
{
    pl_due_steps never = { 0, 0 };
    switch (every.unit) {
    case PL_EVERY_STEPS:
        return (pl_due_steps) { every.count, 1 };
    case PL_EVERY_EXAMPLES:
        return (pl_due_steps) { every.count, pace.step_examples };
    case PL_EVERY_EPOCHS:
        if (pace.steps_per_epoch <= 0)
            return never;
        return (pl_due_steps) {
            times_plus(every.count, pace.steps_per_epoch, 0), 1
        };
    case PL_EVERY_SECONDS:
    case PL_EVERY_NEVER:
    case PL_EVERY_AUTO:
        break;
    }
    return never;
}

int64_t pl_due_step_after(pl_due_steps due, int64_t step)
{
    if (due.count <= 0)
        return INT64_MAX;
    int64_t seen = times_plus(step, due.each, 0);
    int64_t goal = times_plus(seen / due.count + 1, due.count, 0);
    return goal == INT64_MAX ? goal : goal / due.each + (goal % due.each != 0);
}

static int64_t step_after(const pl_due *due, int64_t step)
{
    return pl_due_step_after(pl_due_by_steps(due->every, due->pace), step);
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

bool pl_due_then(const pl_due *due, int64_t step, uint64_t ticks)
{
    return step >= due->next_step || ticks >= due->next_ticks;
}

bool pl_due_now(pl_due *due, int64_t step, uint64_t ticks)
{
    if (!pl_due_then(due, step, ticks))
        return false;
    due->next_step = step_after(due, step);
    due->next_ticks = ticks_after(due, ticks);
    return true;
}
