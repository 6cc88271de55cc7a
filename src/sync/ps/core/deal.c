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

#include "base/log.h"

#define WORDS_MOST (PL_DEAL_WORKERS / 64)

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
    int64_t step = member->request.value[0], epoch = member->request.value[1];
    if (!pl_core_is_worker(core, member) || !pl_core_leads(core) || step < -1 ||
        epoch < 0 || epoch > PL_COUNT_MOST) {
        pl_core_refuse(core, member, "not an epoch of this job");
        member->stage = PL_STAGE_NONE;
        return;
    }
    if (step == core->step && step > core->dealt_step)
        deal_again(core, step, epoch);
    pl_core_answer(core, member, 0);
}

void pl_core_send_deal(pl_ps_core *core, const pl_member *member)
{
    uint64_t bits[2 * WORDS_MOST];
    int32_t words = (core->opts.workers + 63) / 64;
    pl_workers there = present(core);
    pl_frame frame = pl_core_reply(member, PL_FRAME_ACK, PL_ACK_DONE);
    for (int32_t i = 0; i < words; i++) {
        bits[i] = core->deal.workers.bits[i];
        bits[words + i] = there.bits[i];
    }
    frame.step = core->step;
    frame.value[0] = core->deal.step;
    frame.value[1] = core->deal.epoch;
    frame.payload_bytes = (uint32_t)(2 * (size_t)words * sizeof *bits);
    pl_core_send(core, member->peer, frame, bits, false);
}
