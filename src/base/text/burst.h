/* burst.h - shows the first of many similar lines, counts the rest.
 *
 * For log lines that peers can cause: of a thousand in a second, ten are shown,
 * then one line per second counts the rest.  After ten quiet seconds the next
 * ones are shown again.  Zero-initialised.
 *
 * Threads: one at a time. */
#ifndef PL_BASE_TEXT_BURST_H
#define PL_BASE_TEXT_BURST_H

#include <stdbool.h>
#include <stdint.h>

#define PL_BURST_SHOWN 10

typedef struct pl_burst {
    int32_t shown;   /* of the current burst */
    int64_t held;    /* not shown and not yet reported */
    int64_t last_ns; /* when the last one came */
    int64_t told_ns; /* when a count was last reported */
} pl_burst;

/* Count one more: is it to be shown? */
bool pl_burst_shows(pl_burst *burst, int64_t now_ns);

/* How many hidden ones to report now; 0: none, or not yet.  `last`: no more
 * will follow. */
int64_t pl_burst_rest(pl_burst *burst, int64_t now_ns, bool last);

#endif
