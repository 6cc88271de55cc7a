/* How a task becomes a member, and the origin of the parameters.
 *
 * Servers have none at the start of a job and after a server was lost.  The
 * chief then provides the last complete checkpoint or, if there is none, the
 * first parameters of step 0.  Dense ones are in the chief's memory only until
 * it pulls, so it saves them before any update is made (W3): from then on there
 * is a checkpoint to roll back to, whatever the value of --checkpoint-every.
 * Keyed ones are computed from the seed, so that the servers can make them
 * again at any time; saving them would take as long as any checkpoint, so they
 * are not saved.
 *
 * A restarted chief does what the previous one did not complete. */
#include "sync/ps/worker/worker_priv.h"

#include "base/mem.h"

#define UNSET INT64_MIN

static void ask_to_join(pl_ps_worker *w, pl_worker_state state)
{
    w->state = state;
    w->joining_ns = UNSET; /* now_ns may be long past */
    pl_ps_client_join(w->client);
}

void pl_worker_begin_join(pl_ps_worker *w)
{
    w->opts.ops->parted(w->opts.client.context);
    w->located_again = w->failed = w->pushing = w->over = w->broken =
        w->waiting = false;
    w->error.status = PL_OK;
    w->restored = -1;
    ask_to_join(w, PL_WORKER_JOINING);
}

void pl_ps_worker_join(pl_ps_worker *w)
{
    w->wish = PL_WISH_JOIN;
    pl_worker_begin_join(w);
    pl_worker_advance(w);
}

void pl_ps_worker_pull(pl_ps_worker *w, int64_t step)
{
    w->number = step;
    if (!w->failed && w->joined) {
        pl_worker_wish_for(w, PL_WISH_PULL);
        return;
    }
    w->wish = PL_WISH_PULL;
    pl_worker_begin_join(w);
    pl_worker_advance(w);
}

void pl_ps_worker_interrupt(pl_ps_worker *w)
{
    if (w->state == PL_WORKER_JOINING || w->state == PL_WORKER_LOCATING)
        pl_worker_fail(w, PL_FAIL(PL_INTERRUPTED, "interrupted while joining"));
}

void pl_worker_watch_join(pl_ps_worker *w)
{
    if (w->state != PL_WORKER_JOINING && w->state != PL_WORKER_LOCATING)
        return;
    if (w->joining_ns == UNSET)
        w->joining_ns = w->now_ns;
    int64_t given = w->joined ? w->opts.rejoin_ms : w->opts.join_ms;
    int64_t limit_ms = given > 0 ? given : w->joined ? 60000 : 600000;
    int32_t ps = pl_ps_client_absent(w->client);
    if (ps < 0 || w->now_ns - w->joining_ns <= limit_ms * 1000000)
        return;
    pl_worker_fail(
        w, PL_FAIL(PL_TIMEOUT,
                   "%s: ps %d at %s did not answer within %lld s "
                   "(--%sjoin-timeout): is it running, and is that its "
                   "address?",
                   w->opts.name, ps,
                   w->opts.addresses != NULL ? w->opts.addresses[ps] : "?",
                   (long long)limit_ms / 1000, w->joined ? "re" : ""));
}

/* Whether the first parameters must be saved. */
static bool saves_first(const pl_ps_worker *w)
{
    return w->opts.saves && w->keys == NULL;
}

void pl_worker_pull_first(pl_ps_worker *w)
{
    pl_worker_tell(w, PL_PHASE_WAITING);
    if (w->keys != NULL)
        pl_worker_keys_reset(w->keys);
    if (w->wish == PL_WISH_PULL)
        pl_worker_pull(w, PL_PULL_EXACT, w->number);
    else
        pl_worker_pull(w, 0, 0);
}

static void give_first(pl_ps_worker *w)
{
    w->state = PL_WORKER_INITIALIZING;
    w->restored = 0;
    if (w->keys != NULL) { /* servers make them themselves */
        pl_status status =
            w->opts.ops->describe(w->opts.client.context, &w->text);
        if (status == PL_OK)
            pl_ps_client_fill(w->client, 0, w->text);
        else
            pl_worker_done(w, status);
    } else if (w->pulled) {
        pl_worker_done(w, PL_FAIL(PL_IO,
                                  "a server was lost with its partition of "
                                  "the parameters, and there is no complete "
                                  "checkpoint to roll back to: was the run "
                                  "folder changed?"));
    } else {
        pl_ps_client_init(w->client, 0);
    }
}

static void restore(pl_ps_worker *w)
{
    bool initialized = pl_ps_client_look(w->client).initialized;
    pl_ps_checkpoint last = { 0 };
    if (initialized && (!saves_first(w) || w->pulled)) {
        pl_worker_pull_first(w);
        return;
    }
    pl_status status = PL_NOTFOUND;
    if (w->opts.saves)
        status = w->opts.ops->find(w->opts.client.context, &last);
    w->text = last.plan;
    if (status == PL_OK && initialized) {
        pl_worker_pull_first(w);
    } else if (status == PL_OK) {
        w->state = PL_WORKER_LOADING;
        w->restored = last.step;
        pl_ps_client_load(w->client, last.step, last.counts, last.plan);
    } else if (status != PL_NOTFOUND) {
        pl_worker_done(w, status);
    } else if (initialized) {
        pl_worker_freeze(w, true);
    } else {
        give_first(w);
    }
}

void pl_worker_after_join(pl_ps_worker *w)
{
    pl_status status = w->opts.ops->joined(w->opts.client.context);
    if (status != PL_OK) {
        pl_worker_fail(w, status);
        return;
    }
    w->joined = true;
    w->leaving = false;
    if (w->opts.chief)
        restore(w);
    else
        pl_worker_pull_first(w);
}

void pl_worker_after_restore(pl_ps_worker *w)
{
    bool first = w->state == PL_WORKER_INITIALIZING;
    pl_mem_free(w->text);
    w->text = NULL;
    if (first && saves_first(w))
        pl_worker_freeze(w, true);
    else
        pl_worker_pull_first(w);
}

/* Parameters have arrived.  A task that joined before the chief did not get the
 * run folder, and joins once more to learn it. */
static bool must_locate(const pl_ps_worker *w)
{
    return w->opts.locates && !w->located &&
           pl_ps_client_look(w->client).run == NULL;
}

static void tell_place(pl_ps_worker *w)
{
    pl_ps_client_view view = pl_ps_client_look(w->client);
    if (!w->opts.locates || w->located || view.run == NULL)
        return;
    w->opts.ops->located(w->opts.client.context, view.job, view.run);
    w->located = true;
}

void pl_worker_after_pull(pl_ps_worker *w)
{
    pl_worker_hear_end(w);
    if (w->wish == PL_WISH_SETTLE)
        w->over = true;
    if (w->wish == PL_WISH_PAUSE || w->wish == PL_WISH_SETTLE) {
        pl_worker_done(w, PL_OK);
        return;
    }
    w->pulled = true;
    if (must_locate(w) && !w->located_again) {
        w->located_again = true; /* server 0 may not have it either */
        ask_to_join(w, PL_WORKER_LOCATING);
        return;
    }
    w->located_again = false;
    tell_place(w);
    if (w->wish == PL_WISH_JOIN && w->opts.deals) {
        w->state = PL_WORKER_SHARING;
        pl_ps_client_deal(w->client, -1, 0);
        return;
    }
    if (w->wish == PL_WISH_PULL)
        pl_worker_tell(w, PL_PHASE_EVALUATING);
    pl_worker_done(w, PL_OK);
}

void pl_worker_after_locate(pl_ps_worker *w)
{
    pl_worker_pull_first(w);
}
