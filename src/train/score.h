/* score.h - how good a model is on a test set.
 *
 * Every model has a loss and an accuracy.  One that answers yes or no (labels
 * 1 and 0) has more: a tally takes the probabilities of all examples and says
 * what became of them.
 *
 * Threads: a tally belongs to one. */
#ifndef PL_TRAIN_SCORE_H
#define PL_TRAIN_SCORE_H

#include "tensor/view.h"

#include <stdbool.h>

typedef struct pl_score {
    double loss; /* mean; of yes and no: the logarithmic loss */
    double accuracy;
    bool binary; /* the following are set; yes is a probability >= 0.5 */
    double auc;  /* how likely a yes is ranked before a no; 0.5 when there is
                    only one kind */
    double precision;   /* right ones among the answers yes; 0 without any */
    double recall;      /* yes found among those there are; likewise */
    double calibration; /* the mean probability over the share of yes; 0
                           where there is no yes */
} pl_score;

typedef struct pl_tally pl_tally;

pl_status pl_tally_new(pl_tally **out) PL_MUST_CHECK;
void pl_tally_free(pl_tally *tally); /* NULL is fine */

/* Count `rows` more examples.  Four bytes are kept of each, to rank them. */
pl_status pl_tally_add(pl_tally *tally, int64_t rows, const float *probs,
                       const pl_view *labels) PL_MUST_CHECK;

/* Fill in what `binary` promises, and the accuracy.  Takes one example at
 * least. */
void pl_tally_score(pl_tally *tally, pl_score *out);

#endif
