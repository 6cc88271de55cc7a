/* How the data of a sync job is dealt to the workers, epoch by epoch.
 *
 * If the job continues without a lost worker (--on-worker-loss continue), that
 * worker's share would never be read.  So each worker sends server 0 a request
 * before it reads the first batch of an epoch (SHARE with PL_SHARE_DEAL), and
 * server 0 deals the data to the workers that are present.  Dense parameters:
 * at the epoch's first step.  Keyed ones: a step earlier, since the keys of the
 * next batch are sent with the gradient of the last one.  A worker that rejoins
 * in mid-epoch gets the current deal, and takes part in the next one.
 *
 *   D1  All workers that request the deal of a step get the same one: the first
 *       request decides it.
 *   D2  If the workers are the same as before, the deal does not change.
 *   D3  After a rollback the data is dealt to all workers, as at the start.
 *   D4  Until its first step a deal is sent only to workers that request that
 *       step; all others get the previous one. */
#include "sync/ps/core/core_priv.h"
#include "sync/ps/modes/mode.h"

#include "base/log.h"

void pl_core_reset_deal(pl_ps_core *core)
{
    core->deal = pl_deal_first(core->opts.workers); /* D3 */
    core->deal_before = core->deal;
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
    core->deal_before = core->deal;
    core->deal = (pl_deal) { .step = step, .epoch = epoch, .workers = there };
    pl_log(PL_LOG_INFO, "from step %lld on %d workers share the examples",
           (long long)step, pl_workers_count(&there));
}

/* Whether the step is the current or the next one, and one of the job. */
static bool may_deal(const pl_ps_core *core, int64_t step)
{
    return (step == core->step || step == core->step + 1) &&
           (core->opts.end_step <= 0 || step < core->opts.end_step);
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
    if (may_deal(core, asked->step) && asked->step > core->dealt_step)
        deal_again(core, asked->step, asked->epoch);
    pl_core_answer(core, member, 0);
}

void pl_core_send_deal(pl_ps_core *core, const pl_member *member)
{
    uint8_t payload[PL_DEAL_ANSWER_MOST];
    int64_t asked = member->request.deal.step;
    int64_t step = asked >= 0 ? asked : core->step;
    pl_ps_deal_answer answer = {
        .deal =
            step < core->deal.step ? core->deal_before : core->deal, /* D4 */
        .present = present(core),
    };
    pl_frame frame =
        pl_ps_deal_answer_encode(&answer, core->opts.workers, payload);
    pl_core_reply(core, member, frame, payload, false);
}
