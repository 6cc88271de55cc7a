/* How the chief makes the servers write a checkpoint: all workers stop between
 * two gradients (FREEZING), the folder is made, all servers begin to write
 * (SAVING), the workers continue (THAWING) while the shards are being written.
 * The first checkpoint of a job is written before they continue (W3), and the
 * chief waits for the last one of a run.  Whatever its outcome, the workers
 * continue (W4). */
#include "sync/ps/worker/worker_priv.h"

#include "base/mem.h"

void pl_ps_worker_save(pl_ps_worker *w, bool last)
{
    w->wait = last;
    if (!w->opts.saves)
        return;
    pl_worker_tell(w, PL_PHASE_SAVING);
    pl_worker_wish_for(w, PL_WISH_SAVE);
}

/* First get the outcome of the previous save. */
void pl_worker_begin_save(pl_ps_worker *w)
{
    w->save.last = w->wait;
    w->state = PL_WORKER_LOOKING;
    pl_ps_client_look_saved(w->client, w->save.last);
}

static pl_status saved_status(const pl_ps_worker *w)
{
    pl_ps_client_view view = pl_ps_client_look(w->client);
    if (view.saved == PL_SAVED_GOOD)
        return PL_OK;
    return PL_FAIL(view.saved == PL_SAVED_NUMERIC ? PL_NUMERIC : PL_IO, "%s",
                   view.why);
}

void pl_worker_after_look(pl_ps_worker *w)
{
    pl_ps_client_view view = pl_ps_client_look(w->client);
    if (view.saved == PL_SAVED_WRITING) {
        pl_worker_done(w, PL_FAIL(PL_AGAIN,
                                  "checkpoint of step %lld skipped: the one "
                                  "before is still being written",
                                  (long long)view.step));
        return;
    }
    pl_error_save(&w->save.before, saved_status(w));
    pl_worker_freeze(w, false);
}

void pl_worker_freeze(pl_ps_worker *w, bool first)
{
    if (first)
        pl_worker_tell(w, PL_PHASE_SAVING);
    w->save.first = first;
    w->save.thawed = false;
    w->save.now.status = PL_OK;
    w->state = PL_WORKER_FREEZING;
    pl_ps_client_freeze(w->client);
}

static void thaw(pl_ps_worker *w)
{
    w->save.thawed = true;
    w->state = PL_WORKER_THAWING;
    pl_ps_client_thaw(w->client);
}

/* All workers wait: the count of a worker in mid-gradient is inverted. */
void pl_worker_after_freeze(pl_ps_worker *w)
{
    const int64_t *found = pl_ps_client_counts(w->client);
    int64_t step = pl_ps_client_look(w->client).step;
    for (int32_t i = 0; i < w->opts.client.workers; i++)
        w->counts[i] = found[i] < 0 ? ~found[i] : found[i];
    pl_status status = w->opts.ops->plan(w->opts.client.context, step,
                                         w->counts, &w->save.plan);
    if (status != PL_OK) {
        pl_error_save(&w->save.now, status);
        thaw(w);
        return;
    }
    w->state = PL_WORKER_SAVING;
    pl_ps_client_save(w->client, step, w->save.plan);
}

static void wait_until_written(pl_ps_worker *w)
{
    w->state = PL_WORKER_WRITING;
    pl_ps_client_look_saved(w->client, true);
}

void pl_worker_after_saving(pl_ps_worker *w)
{
    pl_mem_free(w->save.plan);
    w->save.plan = NULL;
    if (w->save.first)
        wait_until_written(w);
    else
        thaw(w);
}

void pl_worker_after_writing(pl_ps_worker *w)
{
    pl_status status = saved_status(w);
    if (w->save.thawed) {
        pl_worker_done(w, status);
        return;
    }
    pl_error_save(&w->save.now, status);
    thaw(w);
}

void pl_worker_after_thaw(pl_ps_worker *w)
{
    pl_worker_save *save = &w->save;
    if (save->now.status != PL_OK)
        pl_worker_done(w, pl_error_raise(&save->now));
    else if (save->first)
        pl_worker_pull_first(w);
    else if (save->last)
        wait_until_written(w);
    else
        pl_worker_done(w, pl_error_raise(&save->before));
}
