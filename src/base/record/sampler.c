/* Decides the distance of the points of a curve: it grows with the curve. */
#include "base/record/sampler.h"

#include "base/clock.h"

bool pl_sampler_due(pl_sampler *sampler, uint64_t now)
{
    if (sampler->started && now < sampler->next)
        return false;
    if (!sampler->started)
        sampler->first = now;
    sampler->started = true;
    uint64_t least = (uint64_t)(PL_SAMPLER_S * 1e9 / pl_ticks_ns());
    uint64_t share = (now - sampler->first) / PL_SAMPLER_POINTS;
    sampler->next = now + (share > least ? share : least);
    return true;
}
