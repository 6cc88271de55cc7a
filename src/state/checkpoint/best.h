/* best.h - which checkpoint of a run has the best test result: best.json beside
 * the checkpoints.
 *
 * It is written when that checkpoint is complete.  The checkpoint is kept, in
 * addition to the newest ones, until a better one is complete and named.
 *
 * Threads: any. */
#ifndef PL_STATE_BEST_H
#define PL_STATE_BEST_H

#include "base/json/fields.h"

typedef struct pl_best {
    int64_t step;
    double test_loss, test_accuracy; /* NAN: not known */
} pl_best;
extern const pl_fields pl_best_fields;

/* PL_NOTFOUND when no checkpoint has been named. */
pl_status pl_best_read(pl_best *out, const char *checkpoints) PL_MUST_CHECK;
pl_status pl_best_write(const pl_best *best,
                        const char *checkpoints) PL_MUST_CHECK;

#endif
