/* ssp: as async, but a worker's answer, which it needs to continue, waits while
 * the worker is more than --staleness steps ahead of the slowest.
 *
 *   C1  A worker's clock (`pace`) counts the gradients it makes, of any data
 *       share.
 *   C2  A worker that the job continued without returns with the clock of the
 *       slowest one: it does not delay the others.
 *   C3  A worker that makes no gradients now delays no worker.
 *   C4  A chief that waits for the slowest worker does not make it wait for a
 *       test. */
#include "sync/ps/modes/mode.h"

/* Whether the worker makes no gradient now: it evaluates, or waits until all
 * others are done.  A chief that has frozen the job is not idle: no worker
 * advances, and one that rejoins meanwhile must not get ahead of it. */
static bool is_idle(const pl_ps_core *core, const pl_member *member)
{
    if (member->paused || member->stage != PL_STAGE_WAITING)
        return member->paused && !core->frozen;
    return pl_core_idles(&member->request);
}

/* The clock of the slowest worker, or of the slowest that makes gradients;
 * INT64_MAX: none. */
static int64_t slowest(const pl_ps_core *core, bool idle_too)
{
    int64_t least = INT64_MAX;
    for (int32_t w = 0; w < core->opts.workers; w++) {
        const pl_member *member = &core->members[w];
        if (pl_core_counts(core, member) &&
            (idle_too || !is_idle(core, member)) && member->pace < least)
            least = member->pace;
    }
    return least;
}

/* The clock of the slowest worker that makes gradients, cached between
 * gradients: it is recomputed when the last of the slowest has advanced, or
 * when another set of workers makes gradients. */
static int64_t find_slowest(pl_ps_core *core)
{
    if (core->slowest_known)
        return core->slowest;
    core->slowest = slowest(core, false); /* C3 */
    core->slowest_count = 0;
    for (int32_t w = 0; w < core->opts.workers; w++)
        core->slowest_count += core->members[w].pace == core->slowest &&
                               pl_core_counts(core, &core->members[w]) &&
                               !is_idle(core, &core->members[w]);
    core->slowest_known = true;
    return core->slowest;
}

/* Only server 0 makes workers wait.  A dropped gradient does not advance the
 * clock; counting it as if it did recomputes the slowest worker too early,
 * never too late. */
static bool slowest_moved(pl_ps_core *core, const pl_member *member)
{
    if (!pl_core_leads(core))
        return false;
    if (!core->slowest_known)
        return true;
    if (member->pace - 1 == core->slowest)
        core->slowest_count--;
    return core->slowest_count <= 0;
}

static void catch_up(pl_ps_core *core, pl_member *member)
{
    if (!pl_core_is_worker(core, member) || pl_core_counts(core, member))
        return;
    int64_t least = slowest(core, false);
    if (least == INT64_MAX) /* for example only the chief, which evaluates */
        least = slowest(core, true);
    if (least != INT64_MAX && least > member->pace)
        member->pace = least; /* C2 */
}

static bool is_ahead(const pl_ps_core *core, const pl_member *member,
                     int64_t least)
{
    return least != INT64_MAX && member->pace > least + core->opts.staleness;
}

static bool may_go_on(pl_ps_core *core, pl_member *member, unsigned *flags)
{
    bool may;
    if (pl_async_is_decided(core, member, flags, &may))
        return may;
    int64_t least = find_slowest(core);
    if (is_ahead(core, member, least))
        return false;
    return pl_async_grant(core, member,
                          is_ahead(core, core->members, least)); /* C4 */
}

const pl_ps_mode_ops pl_ps_mode_ssp = {
    .name = "ssp",
    .begin_push = pl_async_begin_push,
    .gradient_arrived = pl_async_gradient_arrived,
    .release_push = pl_async_release_push,
    .may_go_on = may_go_on,
    .all_wait = pl_async_all_wait,
    .retry = pl_async_retry,
    .have = pl_async_have,
    .on_have = pl_async_on_have,
    .on_apply = pl_async_on_apply,
    .void_pushes = pl_async_void_pushes,
    .slowest_moved = slowest_moved,
    .catch_up = catch_up,
};
