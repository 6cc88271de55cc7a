/* answers.h - counts a classifier's answers into a confusion matrix.
 *
 * Of the examples that were misclassified, those whose answers the model was
 * surest of are kept; of images with their pixels, 8 bits each, large ones
 * made smaller.
 *
 * Threads: one. */
#ifndef PL_TRAIN_ANSWERS_H
#define PL_TRAIN_ANSWERS_H

#include "base/record/confusion.h"
#include "data/dataset.h"
#include "train/compute/compute.h"

/* Forget what was counted.  `classes` is 0, and nothing can be counted, or at
 * most PL_CONFUSION_CLASSES. */
pl_status pl_answers_begin(pl_confusion *confusion,
                           int64_t classes) PL_MUST_CHECK;

/* The answers to a batch whose first row is example `first` of a set with
 * examples of `shape`. */
pl_status pl_answers_add(pl_confusion *confusion, const pl_batch *batch,
                         int64_t first, pl_shape shape,
                         const pl_answer *answers) PL_MUST_CHECK;

/* The same of a model that answers yes or no with these probabilities. */
void pl_answers_binary(pl_confusion *confusion, const pl_batch *batch,
                       const float *probs);

#endif
