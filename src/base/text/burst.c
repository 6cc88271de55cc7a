/* Decides whether one more line of a kind is shown: ten at once, then one a
 * second that counts the rest. */
#include "base/text/burst.h"

#define QUIET_NS INT64_C(10000000000)
#define TELL_NS  INT64_C(1000000000)

bool pl_burst_shows(pl_burst *burst, int64_t now_ns)
{
    if (burst->held == 0 && now_ns - burst->last_ns > QUIET_NS)
        burst->shown = 0;
    burst->last_ns = now_ns;
    if (burst->shown < PL_BURST_SHOWN) {
        burst->shown++;
        burst->told_ns = now_ns;
        return true;
    }
    burst->held++;
    return false;
}

int64_t pl_burst_rest(pl_burst *burst, int64_t now_ns, bool last)
{
    int64_t held = burst->held;
    if (held == 0 || (!last && now_ns - burst->told_ns < TELL_NS))
        return 0;
    burst->held = 0;
    burst->told_ns = now_ns;
    return held;
}
