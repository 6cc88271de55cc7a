/* memory.h - refuse a training that does not fit into memory, before it begins.
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

/* The memory of a training with these options.  `network` may have no values;
 * the data sets may be NULL. */
typedef struct pl_memory_opts {
    const pl_options *options; /* required, resolved; everything is borrowed */
    const pl_network *network; /* required */
    const pl_kernels *kernels; /* required */
    const pl_dataset *train;
    const pl_dataset *test; /* NULL: no tests */
    bool elsewhere;         /* parameter servers have the parameters */
} pl_memory_opts;
pl_budget_opts pl_memory_plan(const pl_memory_opts *opts);

/* PL_USAGE, with the sums, the available memory and the largest batch that
 * fits, when the budget exceeds `available`.  Memory held by the data is
 * already taken and not in `available`.  `cure` is the advice if no batch fits;
 * NULL: none. */
pl_status pl_memory_check(const pl_budget_opts *opts, pl_ram available,
                          const char *cure) PL_MUST_CHECK;

#endif
