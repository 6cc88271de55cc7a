/* answers.h - counts a classifier's answers into a confusion matrix.
 *
 * Keeps the misclassified examples with the most confident answers; images are
 * kept with their pixels, 8 bits each, large ones scaled down.
 *
 * Threads: one thread. */
#ifndef PL_TRAIN_ANSWERS_H
#define PL_TRAIN_ANSWERS_H

#include "base/record/confusion.h"
#include "data/dataset.h"
#include "train/compute/compute.h"

/* Reset the counts.  `classes` is at most PL_CONFUSION_CLASSES; 0: nothing can
 * be counted. */
pl_status pl_answers_begin(pl_confusion *confusion,
                           int64_t classes) PL_MUST_CHECK;

/* Count the answers to a batch whose first row is example `first` of a set with
 * examples of `shape`. */
pl_status pl_answers_add(pl_confusion *confusion, const pl_batch *batch,
                         int64_t first, pl_shape shape,
                         const pl_answer *answers) PL_MUST_CHECK;

/* The same for a binary model with these probabilities. */
void pl_answers_binary(pl_confusion *confusion, const pl_batch *batch,
                       const float *probs);

#endif
