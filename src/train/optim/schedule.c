/* The learning rate as a pure function of the update number: warm-up, then
 * decay. */
#include "train/optim/schedule.h"

#include "base/assert.h"

#include <math.h>

#define PI 3.14159265358979323846

/* The first update at the full rate. */
static int64_t first_full(const pl_schedule *schedule)
{
    return schedule->warmup > 1 ? schedule->warmup : 1;
}

/* The factor of the rate `since` updates after the first full one. */
typedef double factor_of(const pl_schedule *schedule, int64_t since);

static double constant(const pl_schedule *schedule, int64_t since)
{
    (void)schedule, (void)since;
    return 1;
}

static double step(const pl_schedule *schedule, int64_t since)
{
    PL_ASSERT(schedule->decay_steps > 0);
    int64_t times = since / schedule->decay_steps;
    return pow(schedule->decay, (double)times);
}

static double exponential(const pl_schedule *schedule, int64_t since)
{
    PL_ASSERT(schedule->decay_steps > 0);
    return pow(schedule->decay, (double)since / (double)schedule->decay_steps);
}

/* Loshchilov and Hutter 2017, equation 5 without restarts, down to 0. */
static double cosine(const pl_schedule *schedule, int64_t since)
{
    int64_t length = schedule->decay_steps;
    if (length == 0)
        length = schedule->run_steps + 1 - first_full(schedule);
    if (since >= length)
        return 0;
    return (1 + cos(PI * (double)since / (double)length)) / 2;
}

double pl_schedule_lr(const pl_schedule *schedule, int64_t update)
{
    static factor_of *const factors[] = {
        [PL_SCHEDULE_CONSTANT] = constant,
        [PL_SCHEDULE_STEP] = step,
        [PL_SCHEDULE_EXPONENTIAL] = exponential,
        [PL_SCHEDULE_COSINE] = cosine,
    };
    int64_t since = update - first_full(schedule);
    if (since < 0)
        return schedule->lr * (double)update / (double)schedule->warmup;
    return schedule->lr * factors[schedule->kind](schedule, since);
}
