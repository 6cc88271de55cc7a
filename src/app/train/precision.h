/* precision.h - whether --precision has an effect here.
 *
 * Threads: any. */
#ifndef PL_APP_TRAIN_PRECISION_H
#define PL_APP_TRAIN_PRECISION_H

#include "app/train/job.h"

/* PL_USAGE for bf16 where the processor or the kernels cannot, or where no
 * layer of the network is large enough. */
pl_status pl_precision_check(const pl_job *job,
                             const pl_network *network) PL_MUST_CHECK;

#endif
