/* sampler.h - when a curve gets its next point.
 *
 * A point every 50 ms for the first 100 s, then one whenever 1/2000 of the time
 * since the first point has passed.  So the points of any curve are closer than
 * a screen can show, and their number grows with the logarithm of the time:
 * 2,000 in 100 s, 9,200 in an hour, 15,500 in a day, 22,300 in a month.
 *
 * Threads: one. */
#ifndef PL_BASE_RECORD_SAMPLER_H
#define PL_BASE_RECORD_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#define PL_SAMPLER_S      0.05
#define PL_SAMPLER_POINTS 2000

/* Zero: nothing was recorded yet. */
typedef struct pl_sampler {
    bool started;
    uint64_t first, next; /* ticks */
} pl_sampler;

/* Whether a point is due at `now` (ticks); if so, it counts as recorded. */
bool pl_sampler_due(pl_sampler *sampler, uint64_t now);

#endif
