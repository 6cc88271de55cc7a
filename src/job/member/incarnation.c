/* Chooses a number for this process that differs from all other processes of
 * the task. */
#include "job/member/incarnation.h"

#include "base/clock.h"

#include <unistd.h>

uint32_t pl_incarnation_draw(void)
{
    uint32_t drawn =
        (uint32_t)((uint64_t)pl_clock_wall_ns() >> 10) ^ (uint32_t)getpid();
    return drawn != 0 ? drawn : 1;
}
