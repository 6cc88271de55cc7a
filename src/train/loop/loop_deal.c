/* Decides when a worker in lock step reads another data share: at the end of an
 * epoch in which workers were lost or rejoined. */
#include "base/log.h"
#include "train/loop/loop_priv.h"

/* Deals need epochs that are passes over data shared by all workers. */
static bool deals(const pl_loop *l, const pl_standing *at)
{
    const pl_loop_opts *opts = l->opts;
    return at->dealt && !opts->own_pace && !opts->train->local &&
           opts->epoch_steps == 0;
}

void pl_loop_go(pl_loop *l, int64_t step)
{
    int64_t there = pl_deal_read(&l->deal, l->reader->steps_per_epoch, step);
    pl_reader_go(l->reader, there > 0 ? there : 0);
}

/* Read from `reader` from here on.  Batches that were read ahead do not need
 * the previous reader. */
static void turn_to(pl_loop *l, pl_reader *reader)
{
    if (l->ahead != NULL)
        pl_ahead_turn(l->ahead, reader);
    else
        pl_loop_forget_batch(l);
    pl_reader_free(l->reader);
    l->reader = reader;
}

/* Read this worker's share by l->deal, from `step` on. */
static pl_status take_share(pl_loop *l, int64_t step)
{
    pl_reader_opts order = l->opts->order;
    pl_reader *reader;
    int32_t rank = pl_deal_rank(&l->deal, &l->present, order.worker);
    order.workers = pl_workers_count(&l->deal.workers);
    order.worker = rank;
    if (l->ahead != NULL)
        PL_TRY(pl_ahead_skip(l->ahead));
    if (l->ranks != order.workers || l->rank != rank) {
        PL_TRY(pl_reader_new(&reader, l->opts->train, &order));
        turn_to(l, reader);
        l->ranks = order.workers;
        l->rank = rank;
        pl_log(
            PL_LOG_INFO,
            "from step %lld on %d workers share the examples; this one reads "
            "share %d of them",
            (long long)step, l->ranks, l->rank);
    }
    pl_loop_go(l, step);
    return PL_OK;
}

pl_status pl_loop_deal_join(pl_loop *l, const pl_standing *at)
{
    if (!deals(l, at))
        return PL_OK;
    bool same = pl_workers_equal(&at->present, &at->deal.workers);
    bool begins = !l->course.joined && same && at->deal.step == 0;
    l->deal = at->deal;
    l->present = at->present;
    if (!begins) /* otherwise the reader is in place, also after a resume */
        PL_TRY(take_share(l, at->step));
    l->asks = l->opts->sync->ops->data != NULL;
    l->asked_step = at->deal.step;
    l->deals = !same && !l->asks;
    if (l->deals)
        l->next_deal = pl_deal_next(&l->deal, l->reader->steps_per_epoch,
                                    &at->present, at->step);
    return PL_OK;
}

/* An epoch of the deal ends before this step. */
static bool ends_epoch(const pl_loop *l, int64_t step)
{
    return step > l->deal.step && step != l->asked_step &&
           (step - l->deal.step) % l->reader->steps_per_epoch == 0;
}

static pl_status ask_for_deal(pl_loop *l, int64_t step)
{
    pl_sync *sync = l->opts->sync;
    pl_standing at = { 0 };
    int64_t epochs = (step - l->deal.step) / l->reader->steps_per_epoch;
    PL_TRY(sync->ops->data->deal(sync, step, l->deal.epoch + epochs, &at));
    l->asked_step = step;
    if (at.deal.step == l->deal.step &&
        pl_workers_equal(&at.deal.workers, &l->deal.workers))
        return PL_OK;
    l->deal = at.deal;
    l->present = at.present;
    return take_share(l, step);
}

pl_status pl_loop_deal_step(pl_loop *l, int64_t step)
{
    if (l->asks && ends_epoch(l, step))
        return ask_for_deal(l, step);
    if (!l->deals || step < l->next_deal.step)
        return PL_OK;
    l->deals = false;
    l->deal = l->next_deal;
    return take_share(l, step);
}
