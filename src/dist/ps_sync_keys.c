/* Design.
 *
 * Each push brings the keys of a batch that comes later, and its answer their
 * values; so a step is one message there and one back.  In sync that batch is
 * the next one, and the answer is waited for: its values are those of the step
 * that was made.  In async and ssp it is the one after the next: the answer
 * comes while the next is computed, and lacks that one's gradient only.  The
 * outcome of a push is then known one commit later.
 *
 * A batch's keys are places in the parameter block: the table's, then the
 * bias. */
#include "dist/ps_sync_priv.h"

#include "base/assert.h"
#include "base/mem.h"
#include "dist/pieces.h"

#include <string.h>

pl_status pl_sync_keys_new(pl_sync_keys **out, int32_t ps)
{
    pl_sync_keys *keys;
    pl_status status;
    PL_TRY(PL_NEW(keys, 1));
    for (int i = 0; i < PL_SYNC_BATCHES; i++)
        PL_TRY_OUT(status, pl_key_batch_init(&keys->batches[i], ps));
    PL_TRY_OUT(status, pl_key_batch_init(&keys->look, ps));
    *out = keys;
    return PL_OK;
out:
    pl_sync_keys_free(keys);
    return status;
}

void pl_sync_keys_free(pl_sync_keys *keys)
{
    if (keys == NULL)
        return;
    for (int i = 0; i < PL_SYNC_BATCHES; i++)
        pl_key_batch_close(&keys->batches[i]);
    pl_key_batch_close(&keys->look);
    pl_mem_free(keys->grad);
    pl_mem_free(keys);
}

void pl_sync_keys_reset(pl_sync_keys *keys)
{
    keys->asked = keys->taken = 0;
    keys->last = NULL;
    keys->next = NULL;
    keys->pushed = false;
    keys->outcome = 0;
}

int pl_sync_keys_ahead(const pl_sync *sync)
{
    return ((const pl_ps_sync *)sync)->opts.mode == PL_PS_SYNC ? 0 : 1;
}

/* The places of a batch in the block. */
static pl_status set_batch(const pl_ps_sync *self, const pl_keys *keys,
                           pl_key_batch *batch)
{
    const pl_params *params = self->opts.params;
    uint64_t table =
        (uint64_t)pl_params_get(params, self->opts.sparse->table)->offset;
    int64_t bias = pl_params_get(params, self->opts.sparse->bias)->offset;
    PL_ASSERT(self->opts.sparse->bias > self->opts.sparse->table);
    PL_TRY(pl_key_batch_resize(batch, keys->count + 1));
    for (int64_t k = 0; k < keys->count; k++)
        batch->keys[k] = table + keys->ids[k];
    batch->keys[keys->count] = (uint64_t)bias;
    return pl_key_batch_cut(batch, pl_params_block_count(params));
}

static pl_values values_of(const pl_key_batch *batch)
{
    return (pl_values) { batch->values, batch->values + batch->count - 1 };
}

pl_status pl_sync_keys_ask(pl_sync *sync, const pl_keys *keys, bool later)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    pl_sync_keys *own = self->keys;
    PL_ASSERT(own->asked - own->taken < PL_SYNC_BATCHES - 1 &&
              own->next == NULL);
    pl_key_batch *batch = &own->batches[own->asked % PL_SYNC_BATCHES];
    PL_TRY(set_batch(self, keys, batch));
    own->asked++;
    if (later) {
        own->next = batch;
        return PL_OK;
    }
    PL_TRY(pl_ps_sync_finish(self));
    pl_sync_keys_note(self);
    pl_ps_client_ask(self->client, 0, 0, batch);
    own->last = batch;
    return PL_OK;
}

pl_status pl_sync_keys_take(pl_sync *sync, pl_values *out)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    pl_sync_keys *own = self->keys;
    PL_ASSERT(own->taken < own->asked);
    const pl_key_batch *batch = &own->batches[own->taken % PL_SYNC_BATCHES];
    /* Requests go one after the other: only the last may be under way. */
    if (batch == own->last && pl_ps_client_busy(self->client)) {
        int64_t step = pl_ps_client_look(self->client).step;
        pl_heart_tell(self->heart, step, PL_PHASE_WAITING);
        PL_TRY(pl_ps_sync_finish(self));
        pl_heart_tell(self->heart, step, PL_PHASE_COMPUTING);
    }
    own->taken++;
    *out = values_of(batch);
    return PL_OK;
}

pl_status pl_sync_keys_look(pl_sync *sync, const pl_keys *keys, pl_values *out)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    PL_TRY(set_batch(self, keys, &self->keys->look));
    PL_TRY(pl_ps_sync_finish(self));
    pl_sync_keys_note(self);
    pl_ps_client_ask(self->client, PL_PULL_PEEK, 0, &self->keys->look);
    PL_TRY(pl_ps_sync_finish(self));
    *out = values_of(&self->keys->look);
    return PL_OK;
}

static pl_key_batch *taken_last(pl_sync_keys *own)
{
    return &own->batches[(own->taken - 1) % PL_SYNC_BATCHES];
}

pl_status pl_sync_keys_ready(pl_sync *sync, int param, const float *grad,
                             const pl_keys *keys)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    pl_sync_keys *own = self->keys;
    int64_t count = taken_last(own)->count;
    if (count > own->grad_room) {
        int64_t room = count + count / 4;
        pl_mem_free(own->grad);
        own->grad_room = 0;
        PL_TRY(PL_NEW_ALIGNED(own->grad, (size_t)room));
        own->grad_room = room;
    }
    PL_ASSERT(keys == NULL || keys->count == count - 1);
    if (param == self->opts.sparse->table && keys->count > 0)
        memcpy(own->grad, grad, (size_t)keys->count * sizeof *grad);
    else if (param == self->opts.sparse->bias)
        own->grad[count - 1] = *grad;
    return PL_OK;
}

void pl_sync_keys_note(pl_ps_sync *self)
{
    pl_sync_keys *own = self->keys;
    if (!own->pushed)
        return;
    own->pushed = false;
    own->outcome = pl_ps_client_look(self->client).answer;
    self->dropped += (own->outcome & PL_ANSWER_DROPPED) != 0;
    pl_ps_sync_hear_end(self);
}

void pl_sync_keys_settle(pl_ps_sync *self)
{
    pl_sync_keys_note(self);
    self->keys->outcome &= ~PL_ANSWER_DROPPED;
}

/* What became of the push before, if there was one. */
static void tell_outcome(pl_ps_sync *self, pl_commit *out)
{
    pl_sync_keys *own = self->keys;
    pl_sync_keys_note(self);
    *out = (pl_commit) {
        .step = pl_ps_client_look(self->client).step,
        .dropped = (own->outcome & PL_ANSWER_DROPPED) != 0,
        .stop = (own->outcome & PL_ANSWER_STOP) != 0,
    };
    own->outcome = 0;
}

static void push(pl_ps_sync *self)
{
    pl_sync_keys *own = self->keys;
    int64_t step = pl_ps_client_look(self->client).step;
    pl_ps_client_push_keys(self->client, step, taken_last(own), own->grad,
                           own->next);
    own->last = own->next;
    own->next = NULL;
    own->pushed = true;
}

pl_status pl_sync_keys_commit(pl_sync *sync, pl_commit *out)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    bool ahead = pl_sync_keys_ahead(sync) > 0;
    pl_heart_tell(self->heart, pl_ps_client_look(self->client).step,
                  PL_PHASE_WAITING);
    PL_TRY(pl_ps_sync_finish(self));
    if (ahead) {
        tell_outcome(self, out);
        out->unsent = out->stop;
    }
    if (!ahead || !out->stop)
        push(self);
    if (!ahead) {
        PL_TRY(pl_ps_sync_finish(self));
        tell_outcome(self, out);
    }
    pl_heart_tell(self->heart, out->step, PL_PHASE_COMPUTING);
    return PL_OK;
}

/* Nobody goes on until the chief pushes again: a test reads the table of one
 * moment, batch by batch. */
pl_status pl_sync_keys_pause(pl_sync *sync, int64_t *step)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    pl_heart_tell(self->heart, *step, PL_PHASE_EVALUATING);
    PL_TRY(pl_ps_sync_finish(self));
    if (self->over)
        return PL_OK;
    pl_sync_keys_note(self);
    pl_ps_client_freeze(self->client);
    PL_TRY(pl_ps_sync_finish(self));
    *step = pl_ps_client_look(self->client).step;
    return PL_OK;
}

pl_status pl_ps_sync_read(pl_ps_sync *sync, int64_t first, int64_t count,
                          float *to)
{
    int64_t floats = pl_params_block_count(sync->opts.params);
    PL_TRY(pl_ps_sync_finish(sync));
    if (sync->keys != NULL)
        pl_sync_keys_note(sync);
    while (count > 0) {
        int64_t n = count < PL_KEY_BATCH_MOST ? count : PL_KEY_BATCH_MOST;
        for (int32_t j = 0; j < sync->ps; j++) {
            int64_t begin, have;
            pl_pieces_shard(floats, sync->ps, j, &begin, &have);
            if (first >= begin && first < begin + have)
                n = n < begin + have - first ? n : begin + have - first;
        }
        pl_ps_client_read(sync->client, first, n, to);
        PL_TRY(pl_ps_sync_finish(sync));
        first += n;
        to += n;
        count -= n;
    }
    return PL_OK;
}
