/* score.h - test a network on a data set.
 *
 * Threads: one; uses the pool of the job. */
#ifndef PL_APP_PREDICT_SCORE_H
#define PL_APP_PREDICT_SCORE_H

#include "app/train/job.h"
#include "base/record/confusion.h"
#include "train/score.h"

/* `batch`: the most examples at once; 0: chosen here.  `confusion` (NULL: not
 * wanted) is reset first. */
pl_status pl_score_set(const pl_job *job, pl_dataset *set, int64_t batch,
                       pl_confusion *confusion, pl_score *out) PL_MUST_CHECK;

#endif
