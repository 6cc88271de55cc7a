/* Who shares the data of a sync job, epoch by epoch.
 *
 * Where the job goes on without a lost worker (--on-worker-loss continue), the
 * worker's share would stay unread for good.  So each worker asks server 0
 * before the first step of an epoch (SHARE with PL_SHARE_DEAL), and server 0
 * deals the data to the workers that are there.  A worker that comes back in
 * mid-epoch is told of the deal that holds, and takes part in the next one.
 *
 *   D1  All workers that ask at one step get the same deal: the first one to
 *       ask decides it.
 *   D2  A deal among the same workers as before is no new deal.
 *   D3  After a rollback the data is dealt to all workers, as at the start. */
#include "sync/ps/core/core_priv.h"
#include "sync/ps/modes/mode.h"

#include "base/log.h"

void pl_core_reset_deal(pl_ps_core *core)
{
    core->deal = pl_deal_first(core->opts.workers); /* D3 */
    core->dealt_step = 0;
}

static pl_workers present(const pl_ps_core *core)
{
    pl_workers there = { 0 };
    for (int32_t w = 0; w < core->opts.workers; w++)
        if (core->members[w].state == PL_MEMBER_HERE)
            pl_workers_add(&there, w);
    return there;
}

static void deal_again(pl_ps_core *core, int64_t step, int64_t epoch)
{
    pl_workers there = present(core);
    core->dealt_step = step; /* D1 */
    if (pl_workers_equal(&there, &core->deal.workers))
        return; /* D2 */
    core->deal = (pl_deal) { .step = step, .epoch = epoch, .workers = there };
    pl_log(PL_LOG_INFO, "from step %lld on %d workers share the examples",
           (long long)step, pl_workers_count(&there));
}

void pl_core_begin_deal(pl_ps_core *core, pl_member *member)
{
    const pl_ps_deal *asked = &member->request.deal;
    if (!pl_core_is_worker(core, member) || !pl_core_leads(core) ||
        !core->mode->lock_step) {
        pl_core_refuse(core, member, "not an epoch of this job");
        member->stage = PL_STAGE_NONE;
        return;
    }
    if (asked->step == core->step && asked->step > core->dealt_step)
        deal_again(core, asked->step, asked->epoch);
    pl_core_answer(core, member, 0);
}

void pl_core_send_deal(pl_ps_core *core, const pl_member *member)
{
    uint8_t payload[PL_DEAL_ANSWER_MOST];
    pl_ps_deal_answer answer = { .deal = core->deal, .present = present(core) };
    pl_frame frame =
        pl_ps_deal_answer_encode(&answer, core->opts.workers, payload);
    pl_core_reply(core, member, frame, payload, false);
}
