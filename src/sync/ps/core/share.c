/* Which data share a worker reads in async and ssp.
 *
 * Data is dealt in shares, one per worker.  In async and ssp a worker reads its
 * own at its own pace, and `own` of a member is how many gradients of its share
 * were applied, by any worker.
 *
 * If the job continues without a worker, the rest of its share would not be
 * read.  So a worker that has read its own share up to the end of an epoch asks
 * server 0 which share to read next (SHARE), up to the same end: that of a lost
 * worker, or its own.  At the end of the training the chief's request is
 * answered only when all others are done: however late a worker is lost, the
 * chief can read its share.  The gradients count for that share, at the same
 * place in a checkpoint; server 0 notifies the other servers with each gradient
 * (APPLY).
 *
 * When the owner of a share joins, or requests it, it takes the share back; the
 * gradients of the worker that was reading it are dropped, and that worker
 * sends a request, too.
 *
 *   H1  Every share is read to its end, unless the job stops early.
 *   H2  A share has one reader at a time: no batch of it counts twice. */
#include "sync/ps/core/core_priv.h"
#include "sync/ps/modes/mode.h"

#include "base/log.h"

#define NOBODYS (-1)

/* Make `member` the only reader of that share. */
static void take(pl_ps_core *core, pl_member *member, int32_t share)
{
    pl_member *owner = &core->members[share];
    if (owner->reader != NOBODYS)
        core->members[owner->reader].reads = NOBODYS;
    if (member->reads != NOBODYS)
        core->members[member->reads].reader = NOBODYS;
    member->reads = share;
    owner->reader = pl_core_id(core, member);
}

void pl_core_share_own(pl_ps_core *core, pl_member *member)
{
    if (pl_core_is_worker(core, member))
        take(core, member, pl_core_id(core, member));
}

pl_member *pl_core_share_of(pl_ps_core *core, const pl_member *member)
{
    return member->reads == NOBODYS ? NULL : &core->members[member->reads];
}

/* Whether the job does not wait for its worker, and no other reads it. */
static bool is_left_alone(const pl_ps_core *core, int32_t share)
{
    const pl_member *member = &core->members[share];
    if (member->state == PL_MEMBER_HERE || pl_core_counts(core, member) ||
        pl_core_said_goodbye(member))
        return false;
    return member->reader == NOBODYS ||
           core->members[member->reader].state != PL_MEMBER_HERE;
}

/* The share that this worker should read; NOBODYS: the answer must wait. */
static int32_t find_share(const pl_ps_core *core, const pl_member *member)
{
    bool waits = member->request.share.wait;
    int32_t own = pl_core_id(core, member);
    if (core->stopping || (member->reads == NOBODYS && !waits))
        return own;
    bool all_here = core->here == core->opts.workers;
    for (int32_t w = 0; !all_here && w < core->opts.workers; w++)
        if (w != own && core->members[w].own < member->request.share.count &&
            is_left_alone(core, w))
            return w;
    return waits && !pl_core_others_done(core) ? NOBODYS : own;
}

void pl_core_try_share(pl_ps_core *core, pl_member *member)
{
    char name[32], other[32];
    int32_t share = find_share(core, member), own = pl_core_id(core, member);
    if (share == NOBODYS)
        return;
    if (share != own)
        pl_log(PL_LOG_INFO,
               "%s reads the data share of %s, from gradient "
               "%lld to %lld",
               pl_core_name(core, member, name),
               pl_core_name(core, &core->members[share], other),
               (long long)core->members[share].own,
               (long long)member->request.share.count);
    take(core, member, share);
    pl_core_answer(core, member, 0);
}

void pl_core_send_share(pl_ps_core *core, const pl_member *member)
{
    const pl_member *share = pl_core_share_of(core, member);
    share = share != NULL ? share : member;
    pl_ps_share_answer answer = { .worker = pl_core_id(core, share),
                                  .own = share->own };
    pl_core_reply(core, member, pl_ps_share_answer_encode(&answer), NULL,
                  false);
}

void pl_core_begin_share(pl_ps_core *core, pl_member *member)
{
    if (!pl_core_is_worker(core, member) || core->mode->lock_step ||
        !pl_core_leads(core) ||
        member->request.share.worker >= core->opts.workers) {
        pl_core_refuse(core, member, "not a share of this job's workers");
        member->stage = PL_STAGE_NONE;
        return;
    }
    member->stage = PL_STAGE_WAITING;
    pl_core_end_pause(core, member);
    pl_core_release_after(core, member);
}
