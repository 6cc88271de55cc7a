/* memory.h - refuse a training that memory cannot hold, before it begins.
 *
 * Threads: one. */
#ifndef PL_APP_TRAIN_MEMORY_H
#define PL_APP_TRAIN_MEMORY_H

#include "app/train/job.h"
#include "base/host/ram.h"
#include "train/compute/budget.h"

/* "1.85 GB", "0 B" */
#define PL_BYTES_TEXT 20
const char *pl_memory_text(int64_t bytes, char text[PL_BYTES_TEXT]);

/* What a training by these options takes.  `network` may have no values; the
 * data sets may be NULL. */
typedef struct pl_memory_opts {
    const pl_options *options; /* required, resolved; all are borrowed */
    const pl_network *network; /* required */
    const pl_kernels *kernels; /* required */
    const pl_dataset *train;
    const pl_dataset *test; /* NULL: no tests */
    bool elsewhere;         /* the parameters, at parameter servers */
} pl_memory_opts;
pl_budget_opts pl_memory_plan(const pl_memory_opts *opts);

/* PL_USAGE with the sums, what there is and the largest batch that fits, when
 * the budget is more than `available`.  What the data holds is taken already
 * and is not in `available`.  `cure` says what to do where no batch fits;
 * NULL: nothing is known. */
pl_status pl_memory_check(const pl_budget_opts *opts, pl_ram available,
                          const char *cure) PL_MUST_CHECK;

#endif
