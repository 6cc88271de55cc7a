/* losses.h - the training loss, by its one definition.
 *
 * A point of the loss curve is the mean loss of this worker's batches since the
 * point before.  A worker's training loss is the mean over its batches of the
 * last epoch, or of its last PL_LOSSES_STEPS steps where those are fewer; that
 * of a job is the mean of its workers', each weighted by the examples behind
 * it.  A batch weighs as much as it has examples.
 *
 * Threads: one. */
#ifndef PL_TRAIN_LOSSES_H
#define PL_TRAIN_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

#define PL_LOSSES_STEPS 1000

/* A mean, and the examples it was taken of. */
typedef struct pl_mean_loss {
    double loss;      /* NAN: of none */
    int64_t examples; /* 0: of none */
} pl_mean_loss;

/* Zero, but for `window`: no batch yet. */
typedef struct pl_losses {
    int64_t window;                     /* steps, 1 to PL_LOSSES_STEPS */
    int64_t steps;                      /* so far */
    pl_mean_loss last[PL_LOSSES_STEPS]; /* of step s at s % window */
    double sum;                         /* since the last point */
    int64_t examples;                   /* likewise */
} pl_losses;

/* `epoch_steps`: this worker's steps of an epoch; 0: not known. */
void pl_losses_init(pl_losses *losses, int64_t epoch_steps);
void pl_losses_add(pl_losses *losses, double loss, int64_t examples);
/* The mean since the last point; the next one begins here. */
pl_mean_loss pl_losses_point(pl_losses *losses);
/* The mean over the last `steps` steps, at most the window. */
pl_mean_loss pl_losses_last(const pl_losses *losses, int64_t steps);
/* The training loss. */
pl_mean_loss pl_losses_mean(const pl_losses *losses);

#endif
