/* score.h - scores of a model on a test set.
 *
 * A classifier has a loss and an accuracy.  A binary model (labels 1 and 0) has
 * more scores: a tally collects the probabilities of all examples and computes
 * them.  A model that predicts numbers has errors instead.
 *
 * Threads: a tally or errors object belongs to one thread. */
#ifndef PL_TRAIN_SCORE_H
#define PL_TRAIN_SCORE_H

#include "tensor/view.h"

#include <stdbool.h>

#define PL_SCORE_TOP 5

typedef struct pl_score {
    double loss;     /* mean; for binary models the logarithmic loss */
    double accuracy; /* NAN: labels are numbers */
    double top5;     /* the share of examples whose label is among the five
                        largest logits; NAN: there are at most five classes */
    bool numeric;    /* the following are set; for several numbers per example,
                        each is the mean over them */
    double rmse;     /* the root of the mean squared error */
    double mae;      /* the mean absolute error */
    double r2;       /* 1 - squared error / variance; if all labels are equal,
                        0, or 1 for exact predictions */
    bool binary; /* the following are set; positive is a probability >= 0.5 */
    double auc;  /* probability that a positive ranks before a negative; 0.5 if
                    all labels are equal */
    double precision; /* share of positive answers that are correct; 0: none */
    double recall;    /* share of positives that are found; 0: none */
    double calibration; /* the mean probability over the share of positives; 0:
                           no positives */
} pl_score;

typedef struct pl_tally pl_tally;
typedef struct pl_errors pl_errors;

pl_status pl_tally_new(pl_tally **out) PL_MUST_CHECK;
void pl_tally_free(pl_tally *tally); /* NULL is fine */

/* Count `rows` more examples.  Keeps four bytes of each, to rank them. */
pl_status pl_tally_add(pl_tally *tally, int64_t rows, const float *probs,
                       const pl_view *labels) PL_MUST_CHECK;

/* Errors of a model that predicts `width` numbers per example. */
pl_status pl_errors_new(pl_errors **out, int64_t width) PL_MUST_CHECK;
void pl_errors_free(pl_errors *errors); /* NULL is fine */
/* predicted [rows, width], float32 labels */
void pl_errors_add(pl_errors *errors, int64_t rows, const float *predicted,
                   const pl_view *labels);
/* Fill in what `numeric` promises.  Needs at least one example. */
void pl_errors_score(const pl_errors *errors, pl_score *out);

/* Fill in what `binary` promises, and the accuracy.  Needs at least one
 * example. */
void pl_tally_score(pl_tally *tally, pl_score *out);

#endif
