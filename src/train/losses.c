/* The losses of the last steps are kept one by one and summed on request,
 * oldest first: a running sum would drift, and would depend on how often it was
 * read. */
#include "train/losses.h"

#include <math.h>

void pl_losses_init(pl_losses *losses, int64_t epoch_steps)
{
    bool shorter = epoch_steps > 0 && epoch_steps < PL_LOSSES_STEPS;
    losses->window = shorter ? epoch_steps : PL_LOSSES_STEPS;
    losses->steps = losses->examples = 0;
    losses->sum = 0;
}

void pl_losses_add(pl_losses *losses, double loss, int64_t examples)
{
    losses->last[losses->steps++ % losses->window] =
        (pl_mean_loss) { loss, examples };
    losses->sum += loss * (double)examples;
    losses->examples += examples;
}

static pl_mean_loss mean_of(double sum, int64_t examples)
{
    if (examples <= 0)
        return (pl_mean_loss) { NAN, 0 };
    return (pl_mean_loss) { sum / (double)examples, examples };
}

pl_mean_loss pl_losses_point(pl_losses *losses)
{
    pl_mean_loss point = mean_of(losses->sum, losses->examples);
    losses->sum = 0;
    losses->examples = 0;
    return point;
}

pl_mean_loss pl_losses_last(const pl_losses *losses, int64_t steps)
{
    int64_t most = steps < losses->window ? steps : losses->window;
    int64_t first = losses->steps > most ? losses->steps - most : 0;
    double sum = 0;
    int64_t examples = 0;
    for (int64_t s = first; s < losses->steps; s++) {
        const pl_mean_loss *step = &losses->last[s % losses->window];
        sum += step->loss * (double)step->examples;
        examples += step->examples;
    }
    return mean_of(sum, examples);
}

pl_mean_loss pl_losses_mean(const pl_losses *losses)
{
    return pl_losses_last(losses, losses->window);
}
