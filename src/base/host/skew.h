/* skew.h - how far another machine's clock is ahead of ours.
 *
 * Estimated from round trips: the peer's time in its reply, compared with the
 * middle between request and reply.  The shortest round trip is used; its error
 * is at most half of it.  A difference within that error counts as none, as
 * between tasks of one machine.  Impossible times from a peer are ignored.
 *
 * Threads: the caller's. */
#ifndef PL_BASE_HOST_SKEW_H
#define PL_BASE_HOST_SKEW_H

#include <stdbool.h>
#include <stdint.h>

#define PL_SKEW_MOST (INT64_MAX / 4) /* 73 years */

typedef struct pl_skew {
    bool known;
    int64_t ahead_ns, trip_ns;
} pl_skew;

static inline void pl_skew_hear(pl_skew *skew, int64_t asked_ns,
                                int64_t heard_ns, int64_t theirs_ns)
{
    int64_t trip = heard_ns - asked_ns;
    if (theirs_ns > PL_SKEW_MOST || theirs_ns < -PL_SKEW_MOST || trip < 0 ||
        (skew->known && trip >= skew->trip_ns))
        return;
    int64_t ahead = theirs_ns - (asked_ns + trip / 2);
    bool same = ahead <= trip / 2 + 1 && ahead >= -(trip / 2 + 1);
    *skew = (pl_skew) { true, same ? 0 : ahead, trip };
}

#endif
