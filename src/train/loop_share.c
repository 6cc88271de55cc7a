/* The rest of the share of a worker that is gone is read by the others, each
 * when it has come to the end of an epoch in its own. */
#include "train/loop_priv.h"

#include "base/log.h"

void pl_loop_share_end(pl_loop *l)
{
    if (l->other != NULL)
        pl_loop_forget_batch(l);
    pl_reader_free(l->other);
    l->other = NULL;
    l->astray = false;
    l->asked = 0; /* at the beginning there is nothing to ask for */
    if (l->ahead != NULL)
        pl_ahead_turn(l->ahead, l->reader);
}

/* Read the own share from `own` on; what was asked for is not wanted. */
static pl_status go_home(pl_loop *l, int64_t own)
{
    if (l->ahead != NULL)
        PL_TRY(pl_ahead_skip(l->ahead));
    pl_loop_share_end(l);
    l->own = l->next_read = own;
    pl_reader_go(l->reader, own);
    return PL_OK;
}

static pl_status read_other(pl_loop *l, const pl_share *share)
{
    pl_reader_opts order = l->opts->order;
    order.worker = share->worker;
    PL_TRY(go_home(l, l->own));
    PL_TRY(pl_reader_new(&l->other, l->opts->train, &order));
    pl_reader_go(l->other, share->own);
    l->other_own = share->own;
    l->other_end = l->own;
    if (l->ahead != NULL)
        pl_ahead_turn(l->ahead, l->other);
    pl_log(PL_LOG_INFO,
           "worker %d is gone: reading its share, batches %lld to %lld",
           share->worker, (long long)l->other_own, (long long)l->other_end - 1);
    return PL_OK;
}

static bool is_due(const pl_loop *l, int64_t per_epoch)
{
    if (!l->shares || l->stop)
        return false;
    if (l->astray)
        return true;
    if (l->other != NULL)
        return l->other_own >= l->other_end;
    return l->own % per_epoch == 0 && l->own != l->asked;
}

pl_status pl_loop_share(pl_loop *l)
{
    pl_sync *sync = l->opts->sync;
    bool astray = l->astray, last = l->own >= l->end_own;
    pl_share share;
    if (!is_due(l, pl_loop_steps_per_epoch(l)))
        return PL_OK;
    PL_TRY(sync->ops->share(sync, l->own, last && !l->opts->follower, &share));
    pl_loop_spent(l, PL_LOOP_WAIT);
    if (share.worker != l->opts->order.worker)
        return read_other(l, &share);
    if (l->other != NULL || astray)
        PL_TRY(go_home(l, share.own));
    l->asked = astray ? 0 : l->own;
    return PL_OK;
}
