/* burst.h - the first of many alike are shown, the rest are counted.
 *
 * For lines of the log that others can cause: a thousand of them in a
 * second are ten lines, and then one a second that says how many more.  After
 * ten quiet seconds the next ones are shown again.  Zero is a new one.
 *
 * Threads: one at a time. */
#ifndef PL_BASE_TEXT_BURST_H
#define PL_BASE_TEXT_BURST_H

#include <stdbool.h>
#include <stdint.h>

#define PL_BURST_SHOWN 10

typedef struct pl_burst {
    int32_t shown;   /* of the burst at hand */
    int64_t held;    /* not shown, and not told of yet */
    int64_t last_ns; /* the last one came */
    int64_t told_ns; /* the last sum was told */
} pl_burst;

/* One more: is it to be shown? */
bool pl_burst_shows(pl_burst *burst, int64_t now_ns);

/* How many were not shown and are to be told of now; 0: none, or not yet.
 * `last`: there will be no more. */
int64_t pl_burst_rest(pl_burst *burst, int64_t now_ns, bool last);

#endif
