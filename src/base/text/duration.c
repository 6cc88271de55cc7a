/* duration.c - writes a span of time: decides when hours are shown; rounds to
 * seconds. */
#include "base/text/duration.h"

#include <math.h>
#include <stdio.h>

const char *pl_duration_text(double seconds, char text[PL_DURATION])
{
    /* fmax and fmin ignore NAN. */
    long long s = (long long)(fmin(fmax(seconds, 0), 1e9) + 0.5);
    if (s >= 3600)
        snprintf(text, PL_DURATION, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60,
                 s % 60);
    else
        snprintf(text, PL_DURATION, "%lld:%02lld", s / 60, s % 60);
    return text;
}
