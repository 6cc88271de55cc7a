/* The worker machine: which requests a worker sends to its servers, and in
 * which order.
 *
 * States, each but READY waiting for one request of the client (client.h):
 *   OUT         not a member; the only next wish is to join
 *   JOINING     asks all servers to admit it
 *   LOADING     chief: the servers read the last checkpoint
 *   INITIALIZING  chief: the servers get the first parameters
 *   PULLING     waits for parameters or, keyed, for the job's step
 *   LOCATING    joins once more to learn the run folder
 *   READY       no wish is under way
 *   FLUSHING    a wish waits for the previous request
 *   COMMITTING  dense: a gradient was sent, and server 0 has not answered
 *   PUSHING     keyed: likewise
 *   PEEKING     keyed: values for a test, or a range, are read
 *   PAUSING, SHARING, STOPPING, LEAVING   a request to server 0
 *   LOOKING, FREEZING, SAVING, WRITING, THAWING   a checkpoint (worker_save.c)
 *   LEFT, GONE  goodbye was answered; or server 0 was gone before that
 *
 * Invariants, which tests and the simulator name:
 *   W1  At most one request is in flight; a wish begins one only when the
 *       previous one is done.
 *   W2  A worker pushes only what it computed in its current membership: after
 *       a rollback it sends nothing but a JOIN.
 *   W3  No update is made to dense parameters before a checkpoint of them is
 *       complete, if the chief saves any (worker_join.c).
 *   W4  The chief that froze the job thaws it, whatever the outcome of the
 *       save, unless the job is rolled back (worker_save.c).
 *   W5  The outcome of every push is reported exactly once, by a commit, or not
 *       at all when the job rolls back.
 *   W6  A worker that said goodbye never computes again, unless the job rolls
 *       back afterwards; if no server admits it then, it was done. */
#include "sync/ps/worker/worker_priv.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"

pl_status pl_ps_worker_new(pl_ps_worker **out, const pl_ps_worker_opts *opts,
                           int64_t now_ns)
{
    pl_ps_worker *w;
    pl_status status;
    PL_TRY(PL_NEW(w, 1));
    w->opts = *opts;
    w->pace = pl_ps_pace_of(opts->client.mode, opts->backup);
    w->now_ns = now_ns;
    PL_TRY_OUT(status, pl_ps_client_new(&w->client, &opts->client, now_ns));
    PL_TRY_OUT(status, PL_NEW(w->counts, (size_t)opts->client.workers + 1));
    if (opts->client.params == NULL)
        PL_TRY_OUT(status, pl_worker_keys_new(&w->keys, opts->client.ps));
    *out = w;
    return PL_OK;
out:
    pl_ps_worker_free(w);
    return status;
}

void pl_ps_worker_free(pl_ps_worker *w)
{
    if (w == NULL)
        return;
    pl_ps_client_free(w->client);
    pl_worker_keys_free(w->keys);
    pl_mem_free(w->save.plan);
    pl_mem_free(w->counts);
    pl_mem_free(w->text);
    pl_mem_free(w);
}

void pl_worker_tell(pl_ps_worker *w, pl_phase phase)
{
    w->opts.ops->tell(w->opts.client.context, pl_ps_client_look(w->client).step,
                      phase);
}

static void close_wish(pl_ps_worker *w, pl_status status)
{
    if (status != PL_OK)
        pl_error_save(&w->error, status);
    else
        w->error.status = PL_OK;
    w->wish = PL_WISH_NONE;
    pl_mem_free(w->text);
    pl_mem_free(w->save.plan);
    w->text = w->save.plan = NULL;
}

void pl_worker_done(pl_ps_worker *w, pl_status status)
{
    close_wish(w, status);
    if (w->state != PL_WORKER_LEFT && w->state != PL_WORKER_GONE)
        w->state = PL_WORKER_READY;
}

/* Server 0 has ended, so this task may end, too. */
static void go(pl_ps_worker *w)
{
    pl_log(PL_LOG_INFO, "%s: the training is done, and server 0 has ended",
           w->opts.name);
    w->leaving = false;
    w->over = true;
    w->failed = false;
    w->state = PL_WORKER_GONE;
    close_wish(w, PL_OK);
}

static bool is_evaluator(const pl_ps_worker *w)
{
    return w->opts.client.role[0] == 'e';
}

void pl_worker_fail(pl_ps_worker *w, pl_status status)
{
    bool rolled = status == PL_ROLLED, said = w->state == PL_WORKER_LEAVING;
    if ((w->wish == PL_WISH_JOIN && w->leaving &&
         w->state == PL_WORKER_JOINING) ||
        (is_evaluator(w) && w->wish == PL_WISH_LEAVE && rolled)) {
        go(w);
        return;
    }
    if (w->wish == PL_WISH_PULL && rolled) {
        pl_log(PL_LOG_WARN, "%s", pl_error_message());
        pl_worker_begin_join(w);
        return;
    }
    w->leaving = said && rolled;
    w->failed = true;
    w->state = PL_WORKER_OUT;
    close_wish(w, status);
}

/* Whether the task was rolled back or refused, or the job failed. */
static bool look_for_failure(pl_ps_worker *w)
{
    if (w->failed)
        return true;
    if (pl_ps_client_rolled(w->client)) {
        pl_worker_fail(w, PL_FAIL(PL_ROLLED,
                                  "a server was lost: the job restarts from "
                                  "its last checkpoint"));
        return true;
    }
    pl_status status = pl_ps_client_outcome(w->client);
    if (status != PL_OK)
        pl_worker_fail(w, status);
    return status != PL_OK;
}

void pl_worker_pull(pl_ps_worker *w, unsigned flags, int64_t step)
{
    w->state = PL_WORKER_PULLING;
    if (w->keys == NULL) {
        pl_ps_client_pull(w->client, flags, step);
        return;
    }
    pl_worker_keys_note(w);
    pl_ps_client_ask(w->client, flags, step, NULL);
}

void pl_worker_hear_end(pl_ps_worker *w)
{
    unsigned answer = pl_ps_client_look(w->client).answer;
    w->over = w->over || (answer & PL_ANSWER_STOP) != 0;
    w->broken = w->broken || (answer & PL_ANSWER_BROKEN) != 0;
}

static void begin_leave(pl_ps_worker *w)
{
    w->left_own = pl_ps_client_look(w->client).own;
    w->state = PL_WORKER_LEAVING;
    pl_ps_client_bye(w->client, w->why);
}

/* All workers stop until the chief pushes again if keyed parameters are read
 * batch by batch, in any mode, or if the test affects training (opts.still),
 * unless no update is made meanwhile anyway. */
static void begin_pause(pl_ps_worker *w)
{
    bool keyed = w->keys != NULL;
    bool freeze = keyed || (w->opts.still && !w->pace->lock_step);
    if (w->over || (!freeze && !w->pace->pauses)) {
        pl_worker_done(w, PL_OK);
        return;
    }
    w->paused = true;
    w->state = PL_WORKER_PAUSING;
    if (!freeze) {
        pl_ps_client_pause(w->client);
        return;
    }
    if (keyed)
        pl_worker_keys_note(w);
    pl_ps_client_freeze(w->client);
}

static void after_pause(pl_ps_worker *w)
{
    if (w->keys != NULL)
        pl_worker_done(w, PL_OK);
    else
        pl_worker_pull(w, 0, 0);
}

static void begin_share(pl_ps_worker *w)
{
    if (w->keys != NULL)
        pl_worker_keys_settle(w);
    w->state = PL_WORKER_SHARING;
    pl_ps_client_share(w->client, w->number, w->wait);
}

static void begin_read(pl_ps_worker *w)
{
    if (w->keys != NULL)
        pl_worker_keys_note(w);
    w->state = PL_WORKER_PEEKING;
    pl_ps_client_read(w->client, w->number, w->count, w->to);
}

/* The previous request is done (W1): begin that of the wish. */
static void begin_wish(pl_ps_worker *w)
{
    switch (w->wish) {
    case PL_WISH_COMMIT:
        pl_worker_keys_commit(w);
        break;
    case PL_WISH_ASK:
        pl_worker_keys_begin_ask(w);
        break;
    case PL_WISH_TAKE:
        pl_worker_tell(w, PL_PHASE_COMPUTING);
        w->keys->taken++;
        pl_worker_done(w, PL_OK);
        break;
    case PL_WISH_PEEK:
        pl_worker_keys_begin_peek(w);
        break;
    case PL_WISH_READ:
        begin_read(w);
        break;
    case PL_WISH_PAUSE:
        begin_pause(w);
        break;
    case PL_WISH_SHARE:
        begin_share(w);
        break;
    case PL_WISH_DEAL:
        if (w->keys != NULL)
            pl_worker_keys_note(w);
        w->state = PL_WORKER_SHARING;
        pl_ps_client_deal(w->client, w->number, w->count);
        break;
    case PL_WISH_SAVE:
        pl_worker_begin_save(w);
        break;
    case PL_WISH_STOP:
        w->over = true;
        w->state = PL_WORKER_STOPPING;
        pl_ps_client_stop(w->client, false, w->why); /* server 0 notifies all */
        break;
    case PL_WISH_SETTLE:
        pl_worker_pull(w, PL_PULL_FINAL | PL_PULL_EXACT, 0);
        break;
    case PL_WISH_LEAVE:
        begin_leave(w);
        break;
    case PL_WISH_PULL:
        pl_worker_tell(w, PL_PHASE_WAITING);
        pl_worker_pull(w, PL_PULL_EXACT, w->number);
        break;
    case PL_WISH_JOIN:
    case PL_WISH_NONE:
        PL_ASSERT(false);
    }
}

static void end_wish(pl_ps_worker *w)
{
    if (w->wish == PL_WISH_SHARE)
        pl_worker_tell(w, PL_PHASE_COMPUTING);
    if (w->wish == PL_WISH_LEAVE)
        w->state = PL_WORKER_LEFT;
    pl_worker_done(w, PL_OK);
}

static void after_commit(pl_ps_worker *w)
{
    unsigned answer = pl_ps_client_look(w->client).answer;
    w->pushing = false;
    w->told = (pl_ps_worker_view) {
        .dropped = (answer & PL_ANSWER_DROPPED) != 0,
        .stop = (answer & PL_ANSWER_STOP) != 0,
    };
    w->drops += w->told.dropped;
    pl_worker_hear_end(w);
    pl_worker_tell(w, PL_PHASE_COMPUTING);
    pl_worker_done(w, PL_OK);
}

static void (*const after[PL_WORKER_STATES])(pl_ps_worker *) = {
    [PL_WORKER_JOINING] = pl_worker_after_join,
    [PL_WORKER_LOADING] = pl_worker_after_restore,
    [PL_WORKER_INITIALIZING] = pl_worker_after_restore,
    [PL_WORKER_PULLING] = pl_worker_after_pull,
    [PL_WORKER_LOCATING] = pl_worker_after_locate,
    [PL_WORKER_FLUSHING] = begin_wish,
    [PL_WORKER_COMMITTING] = after_commit,
    [PL_WORKER_PUSHING] = pl_worker_keys_after_push,
    [PL_WORKER_PEEKING] = end_wish,
    [PL_WORKER_PAUSING] = after_pause,
    [PL_WORKER_SHARING] = end_wish,
    [PL_WORKER_LOOKING] = pl_worker_after_look,
    [PL_WORKER_FREEZING] = pl_worker_after_freeze,
    [PL_WORKER_SAVING] = pl_worker_after_saving,
    [PL_WORKER_WRITING] = pl_worker_after_writing,
    [PL_WORKER_THAWING] = pl_worker_after_thaw,
    [PL_WORKER_STOPPING] = end_wish,
    [PL_WORKER_LEAVING] = end_wish,
};

/* Whether the state's request is done.  Parameters of the next step may still
 * be in flight when a commit is done, but not those of the last. */
static bool is_due(const pl_ps_worker *w)
{
    if (w->state != PL_WORKER_COMMITTING ||
        (pl_ps_client_look(w->client).answer & PL_ANSWER_STOP) != 0)
        return !pl_ps_client_busy(w->client);
    return pl_ps_client_answered(w->client);
}

void pl_worker_advance(pl_ps_worker *w)
{
    while (!look_for_failure(w) && w->wish != PL_WISH_NONE && is_due(w))
        after[w->state](w);
}

void pl_ps_worker_receive(pl_ps_worker *w, int32_t ps,
                          const pl_message *message, int64_t now_ns)
{
    w->now_ns = now_ns;
    pl_ps_client_receive(w->client, ps, message, now_ns);
    pl_worker_advance(w);
}

void pl_ps_worker_tick(pl_ps_worker *w, int64_t now_ns)
{
    w->now_ns = now_ns;
    if (w->failed)
        return; /* W2 */
    pl_ps_client_tick(w->client, now_ns);
    pl_worker_watch_join(w);
    pl_worker_advance(w);
}

void pl_ps_worker_lost(pl_ps_worker *w, pl_status status)
{
    if (!w->failed && w->state != PL_WORKER_LEFT && w->state != PL_WORKER_GONE)
        pl_worker_fail(w, status);
}

bool pl_ps_worker_busy(const pl_ps_worker *w)
{
    return w->wish != PL_WISH_NONE;
}

pl_status pl_ps_worker_outcome(const pl_ps_worker *w)
{
    return w->error.status == PL_OK ? PL_OK : pl_error_raise(&w->error);
}

pl_status pl_ps_worker_check(const pl_ps_worker *w)
{
    return w->failed ? pl_error_raise(&w->error) : PL_OK;
}

void pl_worker_wish_for(pl_ps_worker *w, pl_worker_wish wish)
{
    PL_ASSERT(w->wish == PL_WISH_NONE);
    if (w->failed)
        return; /* depending on the outcome */
    w->error.status = PL_OK;
    if (w->state == PL_WORKER_GONE || w->state == PL_WORKER_LEFT)
        return;
    w->wish = wish;
    w->state = PL_WORKER_FLUSHING;
    pl_worker_advance(w);
}

bool pl_ps_worker_have(pl_ps_worker *w, int64_t first, int64_t count)
{
    if (w->pace->whole) {
        first = 0;
        count = w->opts.client.count;
    }
    bool have = pl_ps_client_have(w->client, first, count);
    /* A server may be lost: then this task makes no progress and is not
     * stuck. */
    if (have == w->waiting)
        pl_worker_tell(w, have ? PL_PHASE_COMPUTING : PL_PHASE_WAITING);
    w->waiting = !have;
    return have;
}

void pl_ps_worker_ready(pl_ps_worker *w, const float *grad, int64_t from)
{
    if (w->failed)
        return; /* W2 */
    if (!w->pushing) {
        w->pushing = true;
        w->ready_from = w->opts.client.count;
        pl_worker_tell(w, PL_PHASE_COMPUTING);
        pl_ps_client_push(w->client, pl_ps_client_look(w->client).step, grad);
    }
    /* Parameters become ready from the last to the first. */
    if (from < w->ready_from)
        w->ready_from = from;
    /* Small models are sent in one piece, at the end. */
    if (w->ready_from == 0 || pl_ps_client_windowed(w->client))
        pl_ps_client_ready(w->client, w->ready_from);
}

bool pl_ps_worker_windowed(const pl_ps_worker *w)
{
    return pl_ps_client_windowed(w->client);
}

void pl_ps_worker_commit(pl_ps_worker *w)
{
    pl_worker_tell(w, PL_PHASE_WAITING);
    if (w->keys != NULL) {
        pl_worker_wish_for(w, PL_WISH_COMMIT);
        return;
    }
    PL_ASSERT(w->wish == PL_WISH_NONE);
    if (w->failed)
        return;
    PL_ASSERT(w->pushing && w->ready_from == 0);
    w->error.status = PL_OK;
    w->wish = PL_WISH_COMMIT;
    w->state = PL_WORKER_COMMITTING;
    pl_worker_advance(w);
}

void pl_ps_worker_read(pl_ps_worker *w, int64_t first, int64_t count, float *to)
{
    w->number = first;
    w->count = count;
    w->to = to;
    pl_worker_wish_for(w, PL_WISH_READ);
}

void pl_ps_worker_pause(pl_ps_worker *w)
{
    w->paused = false;
    pl_worker_tell(w, PL_PHASE_EVALUATING);
    pl_worker_wish_for(w, PL_WISH_PAUSE);
}

void pl_ps_worker_share(pl_ps_worker *w, int64_t own, bool wait)
{
    pl_worker_tell(w, PL_PHASE_WAITING);
    w->number = own;
    w->wait = wait;
    pl_worker_wish_for(w, PL_WISH_SHARE);
}

void pl_ps_worker_deal(pl_ps_worker *w, int64_t step, int64_t epoch)
{
    w->number = step;
    w->count = epoch;
    pl_worker_wish_for(w, PL_WISH_DEAL);
}

const pl_deal *pl_ps_worker_dealt(const pl_ps_worker *w, pl_workers *present)
{
    return pl_ps_client_dealt(w->client, present);
}

void pl_ps_worker_stop(pl_ps_worker *w, const char *why)
{
    pl_worker_tell(w, PL_PHASE_WAITING);
    w->why = why;
    pl_worker_wish_for(w, PL_WISH_STOP);
}

void pl_ps_worker_settle(pl_ps_worker *w)
{
    pl_worker_tell(w, PL_PHASE_WAITING);
    pl_worker_wish_for(w, PL_WISH_SETTLE);
}

void pl_ps_worker_leave(pl_ps_worker *w, const char *report)
{
    w->why = report;
    /* The evaluator has everything it needs. */
    if (w->failed && w->error.status == PL_ROLLED && is_evaluator(w))
        go(w);
    else
        pl_worker_wish_for(w, PL_WISH_LEAVE);
}

void pl_ps_worker_abort(pl_ps_worker *w, const char *why)
{
    if (!w->failed && w->joined && w->state != PL_WORKER_GONE)
        pl_ps_client_abort(w->client, why);
}

pl_ps_worker_view pl_ps_worker_look(const pl_ps_worker *w)
{
    pl_ps_worker_view view = w->told;
    view.client = pl_ps_client_look(w->client);
    view.over = w->over;
    view.broken = w->broken;
    view.gone = w->state == PL_WORKER_GONE;
    view.joining =
        w->state == PL_WORKER_JOINING || w->state == PL_WORKER_LOCATING;
    view.absent = view.joining ? pl_ps_client_absent(w->client) : -1;
    view.joining_ns = w->joining_ns;
    view.paused = w->paused;
    view.drops = w->drops;
    view.left_own = w->left_own;
    view.restored = w->restored;
    return view;
}
