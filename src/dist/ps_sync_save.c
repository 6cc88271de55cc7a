/* The chief's part in what the servers keep: it gives them their parameters
 * when they have none, and has them write checkpoints.
 *
 * Servers have none at the start of a job and after a server was lost.  They
 * get, in this order: the last complete checkpoint; the first parameters, as
 * of step 0.  Dense ones are in the chief's memory only until it pulls, so it
 * has them saved before any worker gets parameters: from then on there is a
 * checkpoint to go back to, whatever --checkpoint-every says.  Sparse ones
 * follow from the seed, so that the servers can make them again at any time;
 * they are not written, which would take as long as any checkpoint. */
#include "dist/ps_sync_priv.h"

#include "base/error.h"
#include "base/mem.h"

/* Servers make the first of sparse parameters themselves. */
static pl_status describe_parameters(pl_ps_sync *self)
{
    pl_json *description;
    char *text = NULL;
    PL_TRY(pl_first_describe(&description, self->opts.sparse, self->opts.seed));
    pl_status status = pl_json_text(description, 0, &text);
    pl_json_free(description);
    PL_TRY(status);
    pl_ps_client_fill(self->client, 0, text);
    status = pl_ps_sync_finish(self);
    pl_mem_free(text);
    return status;
}

static pl_status give_first(pl_ps_sync *self)
{
    if (self->keys != NULL)
        return describe_parameters(self);
    if (self->pulled)
        return PL_FAIL(PL_IO,
                       "a server was lost with its part of the parameters, and "
                       "no complete checkpoint is left to go back to: was the "
                       "run folder changed?");
    pl_ps_client_init(self->client, 0);
    return pl_ps_sync_finish(self);
}

/* Let the servers read the newest checkpoint; PL_NOTFOUND: there is none. */
static pl_status load_last(pl_ps_sync *self)
{
    pl_snapshot *snapshot = self->opts.snapshot;
    pl_progress progress = { 0 };
    char *plan = NULL;
    if (snapshot == NULL)
        return PL_NOTFOUND;
    PL_TRY(pl_snapshot_find(snapshot, &progress, &plan));
    pl_ps_client_load(self->client, progress.step, pl_snapshot_counts(snapshot),
                      plan);
    pl_status status = pl_ps_sync_finish(self);
    pl_mem_free(plan);
    return status;
}

/* PL_NOTFOUND: there is no complete checkpoint. */
static pl_status look_for_one(const pl_ps_sync *self)
{
    pl_progress progress;
    char *plan = NULL;
    pl_status status = pl_snapshot_find(self->opts.snapshot, &progress, &plan);
    pl_mem_free(plan);
    return status;
}

/* What became of the last save, if it has ended or `wait`. */
static pl_status look_saved(pl_ps_sync *self, bool wait, pl_saved *saved)
{
    pl_ps_client_look_saved(self->client, wait);
    PL_TRY(pl_ps_sync_finish(self));
    *saved = pl_ps_client_look(self->client).saved;
    return PL_OK;
}

static pl_status saved_status(pl_ps_sync *self, pl_saved saved)
{
    if (saved == PL_SAVED_GOOD)
        return PL_OK;
    return PL_FAIL(saved == PL_SAVED_NUMERIC ? PL_NUMERIC : PL_IO, "%s",
                   pl_ps_client_look(self->client).why);
}

/* While all wait: make the folder, let all servers begin to write. */
static pl_status begin_save(pl_ps_sync *self, const pl_progress *progress)
{
    int64_t *counts = pl_snapshot_counts(self->opts.snapshot);
    const int64_t *found = pl_ps_client_counts(self->client);
    pl_progress saved = *progress;
    char *plan;
    for (int32_t w = 0; w < self->opts.cluster->workers; w++)
        counts[w] = found[w] < 0 ? ~found[w] : found[w];
    saved.step = pl_ps_client_look(self->client).step;
    PL_TRY(pl_snapshot_plan(self->opts.snapshot, &saved, &plan));
    pl_ps_client_save(self->client, saved.step, plan);
    pl_status status = pl_ps_sync_finish(self);
    pl_mem_free(plan);
    return status;
}

/* Stop all, begin, and let them go: at once, or when all is written. */
static pl_status save_stopped(pl_ps_sync *self, const pl_progress *progress,
                              bool written)
{
    pl_error begun;
    pl_saved saved = PL_SAVED_GOOD;
    pl_ps_client_freeze(self->client);
    PL_TRY(pl_ps_sync_finish(self));
    pl_status status = begin_save(self, progress);
    if (status == PL_OK && written)
        status = look_saved(self, true, &saved);
    if (status == PL_OK)
        status = saved_status(self, saved);
    pl_error_save(&begun, status);
    if (begun.status == PL_ROLLED || pl_ps_client_busy(self->client))
        return pl_error_raise(&begun);
    pl_ps_client_thaw(self->client);
    PL_TRY(pl_ps_sync_finish(self));
    return pl_error_raise(&begun);
}

/* A chief that was started again does what the one before did not get to. */
pl_status pl_ps_sync_restore(pl_ps_sync *self, const pl_progress *start)
{
    pl_status status;
    if (!pl_ps_client_look(self->client).initialized) {
        status = load_last(self);
        if (status != PL_NOTFOUND)
            return status;
        PL_TRY(give_first(self));
    } else {
        if (self->opts.snapshot == NULL || self->keys != NULL || self->pulled)
            return PL_OK;
        status = look_for_one(self);
        if (status != PL_NOTFOUND)
            return status;
    }
    if (self->opts.snapshot == NULL || self->keys != NULL)
        return PL_OK;
    pl_heart_tell(self->heart, 0, PL_PHASE_SAVING);
    return save_stopped(self, start, true);
}

pl_status pl_ps_sync_save(pl_sync *sync, const pl_progress *progress, bool last)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    pl_saved before, now;
    pl_error failed;
    if (self->opts.snapshot == NULL || self->gone)
        return PL_OK;
    pl_heart_tell(self->heart, progress->step, PL_PHASE_SAVING);
    PL_TRY(pl_ps_sync_finish(self));
    PL_TRY(look_saved(self, last, &before));
    if (before == PL_SAVED_WRITING)
        return PL_FAIL(PL_AGAIN,
                       "checkpoint of step %lld left out: the one before is "
                       "still being written",
                       (long long)progress->step);
    pl_error_save(&failed, saved_status(self, before));
    PL_TRY(save_stopped(self, progress, false));
    if (!last)
        return pl_error_raise(&failed); /* of the one before */
    PL_TRY(look_saved(self, true, &now));
    return saved_status(self, now);
}
