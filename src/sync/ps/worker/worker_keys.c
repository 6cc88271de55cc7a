/* Steps of keyed parameters.
 *
 * Each push has the keys of a later batch, and its answer their values; so a
 * step is one message in each direction.  In sync that batch is the next one,
 * and the worker waits for the answer: its values are those of the new step.
 * In async and ssp it is the batch after the next: the answer arrives while the
 * next is computed, and lacks only the gradient of that one.  The outcome of a
 * push is then known one commit later (W5). */
#include "sync/ps/worker/worker_priv.h"

#include "base/assert.h"
#include "base/mem.h"

pl_status pl_worker_keys_new(pl_worker_keys **out, int32_t ps)
{
    pl_worker_keys *keys;
    pl_status status;
    PL_TRY(PL_NEW(keys, 1));
    for (int i = 0; i < PL_WORKER_BATCHES; i++)
        PL_TRY_OUT(status, pl_key_batch_init(&keys->batches[i], ps));
    PL_TRY_OUT(status, pl_key_batch_init(&keys->look, ps));
    *out = keys;
    return PL_OK;
out:
    pl_worker_keys_free(keys);
    return status;
}

void pl_worker_keys_free(pl_worker_keys *keys)
{
    if (keys == NULL)
        return;
    for (int i = 0; i < PL_WORKER_BATCHES; i++)
        pl_key_batch_close(&keys->batches[i]);
    pl_key_batch_close(&keys->look);
    pl_mem_free(keys->grads[0]);
    pl_mem_free(keys->grads[1]);
    pl_mem_free(keys);
}

void pl_worker_keys_reset(pl_worker_keys *keys)
{
    keys->asked = keys->taken = 0;
    keys->last = NULL;
    keys->next = NULL;
    keys->pushed = false;
    keys->outcome = 0;
}

int pl_ps_worker_ahead(const pl_ps_worker *w)
{
    return w->pace->ahead;
}

pl_key_batch *pl_ps_worker_next_batch(pl_ps_worker *w)
{
    pl_worker_keys *keys = w->keys;
    PL_ASSERT(keys->asked - keys->taken < PL_WORKER_BATCHES - 1 &&
              keys->next == NULL);
    return &keys->batches[keys->asked % PL_WORKER_BATCHES];
}

void pl_ps_worker_ask(pl_ps_worker *w, bool later)
{
    pl_worker_keys *keys = w->keys;
    if (later && !w->failed)
        keys->next = &keys->batches[keys->asked++ % PL_WORKER_BATCHES];
    else
        pl_worker_wish_for(w, PL_WISH_ASK);
}

/* Does not wait for the answer. */
void pl_worker_keys_begin_ask(pl_ps_worker *w)
{
    pl_worker_keys *keys = w->keys;
    pl_key_batch *batch = &keys->batches[keys->asked++ % PL_WORKER_BATCHES];
    pl_worker_keys_note(w);
    pl_ps_client_ask(w->client, 0, 0, batch);
    keys->last = batch;
    pl_worker_done(w, PL_OK);
}

void pl_ps_worker_take(pl_ps_worker *w)
{
    pl_worker_keys *keys = w->keys;
    PL_ASSERT(w->failed || keys->taken < keys->asked);
    /* Requests are sent one after the other: only the last may be under way. */
    if (&keys->batches[keys->taken % PL_WORKER_BATCHES] == keys->last &&
        pl_ps_client_busy(w->client)) {
        pl_worker_tell(w, PL_PHASE_WAITING);
        pl_worker_wish_for(w, PL_WISH_TAKE);
    } else if (!w->failed) {
        w->error.status = PL_OK;
        keys->taken++;
    }
}

const pl_key_batch *pl_ps_worker_taken(const pl_ps_worker *w)
{
    return &w->keys->batches[(w->keys->taken - 1) % PL_WORKER_BATCHES];
}

pl_status pl_ps_worker_gradient(pl_ps_worker *w, float **out)
{
    pl_worker_keys *keys = w->keys;
    int64_t count = pl_ps_worker_taken(w)->count, at = keys->taken % 2;
    if (count > keys->grad_room[at]) {
        int64_t room = count + count / 4;
        pl_mem_free(keys->grads[at]);
        keys->grad_room[at] = 0;
        PL_TRY(PL_NEW_ALIGNED(keys->grads[at], (size_t)room));
        keys->grad_room[at] = room;
    }
    *out = keys->grads[at];
    return PL_OK;
}

pl_key_batch *pl_ps_worker_look_batch(pl_ps_worker *w)
{
    return &w->keys->look;
}

void pl_ps_worker_peek(pl_ps_worker *w)
{
    pl_worker_wish_for(w, PL_WISH_PEEK);
}

void pl_worker_keys_begin_peek(pl_ps_worker *w)
{
    pl_worker_keys_note(w);
    w->state = PL_WORKER_PEEKING;
    pl_ps_client_ask(w->client, PL_PULL_PEEK, 0, &w->keys->look);
}

void pl_worker_keys_note(pl_ps_worker *w)
{
    pl_worker_keys *keys = w->keys;
    if (!keys->pushed)
        return;
    keys->pushed = false;
    keys->outcome = pl_ps_client_look(w->client).answer;
    w->drops += (keys->outcome & PL_ANSWER_DROPPED) != 0;
    pl_worker_hear_end(w);
}

void pl_worker_keys_settle(pl_ps_worker *w)
{
    pl_worker_keys_note(w);
    w->keys->outcome &= ~PL_ANSWER_DROPPED;
}

/* Report the outcome of the previous push, if any. */
static void tell_outcome(pl_ps_worker *w)
{
    pl_worker_keys *keys = w->keys;
    pl_worker_keys_note(w);
    w->told = (pl_ps_worker_view) {
        .dropped = (keys->outcome & PL_ANSWER_DROPPED) != 0,
        .stop = (keys->outcome & PL_ANSWER_STOP) != 0,
    };
    keys->outcome = 0;
}

static void end_commit(pl_ps_worker *w)
{
    pl_worker_tell(w, PL_PHASE_COMPUTING);
    pl_worker_done(w, PL_OK);
}

void pl_worker_keys_commit(pl_ps_worker *w)
{
    pl_worker_keys *keys = w->keys;
    bool ahead = pl_ps_worker_ahead(w) > 0;
    int64_t step = pl_ps_client_look(w->client).step;
    if (ahead) {
        tell_outcome(w);
        w->told.unsent = w->told.stop;
    }
    if (!ahead || !w->told.stop) {
        pl_ps_client_push_keys(w->client, step, pl_ps_worker_taken(w),
                               keys->grads[keys->taken % 2], keys->next);
        keys->last = keys->next;
        keys->next = NULL;
        keys->pushed = true;
    }
    w->state = PL_WORKER_PUSHING;
    if (ahead)
        end_commit(w);
}

void pl_worker_keys_after_push(pl_ps_worker *w)
{
    tell_outcome(w);
    end_commit(w);
}
