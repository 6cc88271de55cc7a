/* losses.h - the definition of the training loss.
 *
 * A point of the loss curve is the mean loss of this worker's batches since the
 * previous point.  A worker's training loss is the mean over its batches of the
 * last epoch, or of its last PL_LOSSES_STEPS steps if these are fewer; the
 * training loss of a job is the mean of its workers', each weighted by its
 * examples.  A batch is weighted by its number of examples.
 *
 * Threads: one. */
#ifndef PL_TRAIN_LOSSES_H
#define PL_TRAIN_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

#define PL_LOSSES_STEPS 1000

/* A mean and the number of its examples. */
typedef struct pl_mean_loss {
    double loss;      /* NAN: no examples */
    int64_t examples; /* 0: none */
} pl_mean_loss;

/* Zero except `window`: no batch yet. */
typedef struct pl_losses {
    int64_t window;                     /* steps, 1 to PL_LOSSES_STEPS */
    int64_t steps;                      /* so far */
    pl_mean_loss last[PL_LOSSES_STEPS]; /* step s is at s % window */
    double sum;                         /* since the last point */
    int64_t examples;                   /* likewise */
} pl_losses;

/* `epoch_steps`: this worker's steps per epoch; 0: not known. */
void pl_losses_init(pl_losses *losses, int64_t epoch_steps);
void pl_losses_add(pl_losses *losses, double loss, int64_t examples);
/* The mean since the last point; starts the next one. */
pl_mean_loss pl_losses_point(pl_losses *losses);
/* The mean over the last `steps` steps, at most the window. */
pl_mean_loss pl_losses_last(const pl_losses *losses, int64_t steps);
/* The training loss. */
pl_mean_loss pl_losses_mean(const pl_losses *losses);

#endif
