/* score.h - how good a model is on a test set.
 *
 * A classifier has a loss and an accuracy.  One that answers yes or no (labels
 * 1 and 0) has more: a tally takes the probabilities of all examples and says
 * what became of them.  A model that predicts numbers has errors instead.
 *
 * Threads: a tally, or errors, belong to one. */
#ifndef PL_TRAIN_SCORE_H
#define PL_TRAIN_SCORE_H

#include "tensor/view.h"

#include <stdbool.h>

#define PL_SCORE_TOP 5

typedef struct pl_score {
    double loss;     /* mean; of yes and no: the logarithmic loss */
    double accuracy; /* NAN: labels are numbers */
    double top5;     /* the share of examples whose label is among the five
                        largest logits; NAN: there are no more classes */
    bool numeric;    /* the following are set; of several numbers an example
                        each is the mean over them */
    double rmse;     /* the root of the mean squared error */
    double mae;      /* the mean absolute error */
    double r2;       /* 1 - squared error / variance; 0 where a number is the
                        same in all examples, 1 where it is also met */
    bool binary;     /* the following are set; yes is a probability >= 0.5 */
    double auc; /* how likely a yes is ranked before a no; 0.5 when there is
                   only one kind */
    double precision;   /* right ones among the answers yes; 0 without any */
    double recall;      /* yes found among those there are; likewise */
    double calibration; /* the mean probability over the share of yes; 0
                           where there is no yes */
} pl_score;

typedef struct pl_tally pl_tally;
typedef struct pl_errors pl_errors;

pl_status pl_tally_new(pl_tally **out) PL_MUST_CHECK;
void pl_tally_free(pl_tally *tally); /* NULL is fine */

/* Count `rows` more examples.  Four bytes are kept of each, to rank them. */
pl_status pl_tally_add(pl_tally *tally, int64_t rows, const float *probs,
                       const pl_view *labels) PL_MUST_CHECK;

/* The same of a model that predicts `width` numbers for an example. */
pl_status pl_errors_new(pl_errors **out, int64_t width) PL_MUST_CHECK;
void pl_errors_free(pl_errors *errors); /* NULL is fine */
/* predicted [rows, width], float32 labels */
void pl_errors_add(pl_errors *errors, int64_t rows, const float *predicted,
                   const pl_view *labels);
/* Fill in what `numeric` promises.  Takes one example at least. */
void pl_errors_score(const pl_errors *errors, pl_score *out);

/* Fill in what `binary` promises, and the accuracy.  Takes one example at
 * least. */
void pl_tally_score(pl_tally *tally, pl_score *out);

#endif
