/* limits.h - the machine's peak rates, measured in a tenth of a second.
 *
 * Threads: uses the pool it is given. */
#ifndef PL_APP_TRAIN_LIMITS_H
#define PL_APP_TRAIN_LIMITS_H

#include "base/thread.h"

typedef struct pl_limits {
    double gflops; /* multiplications and additions a second, 10^9 */
    double gbytes; /* read from memory a second, 10^9 */
} pl_limits;

/* Of `threads` threads of the pool together. */
pl_status pl_limits_measure(pl_pool *pool, int threads,
                            pl_limits *out) PL_MUST_CHECK;

#endif
