/* Sparse parameters on one server: pulls and pushes name their keys.
 *
 * A worker's request has the keys of a batch that it will compute soon; the
 * answer has their values.  The gradient of that batch follows later in a
 * message with its floats only: the server kept the keys, under the number that
 * the worker gave the list.  If it has no such list it requests the message
 * again (NEED), this time with the keys.  So a request is one message.
 *
 * A trace shows the work done for a message: "keys" reads a list, "combine"
 * adds up the gradients of a step, "update" changes weights and slots, "find"
 * collects the values of an answer.
 *
 *   K1  A gradient is applied to the keys of the list it names, or requested
 *       again; never to other keys.
 *   K2  All parameters are keys, a bias as well as a table; but L1, L2 and
 *       other optimizer rules for sparse weights apply only to the table. */
#include "sync/ps/store/store.h"

#include "base/assert.h"
#include "base/mem.h"
#include "kernels/sparse.h"
#include "state/frozen.h"
#include "sync/ps/messages/key_list.h"
#include "sync/ps/modes/mode.h"
#include "sync/ps/worker/key_batch.h"
#include "train/compute/sparse_sum.h"
#include "train/loop/first.h"

#include <math.h>
#include <string.h>

/* A worker requests at most two batches ahead of its gradient. */
#define LISTS 4
/* Bytes moved for a key: its id, and some floats. */
#define KEY_BYTES(floats)                                                      \
    ((int64_t)sizeof(uint64_t) + (floats) * (int64_t)sizeof(float))
#define FILL_TEXT_MOST ((uint32_t)1 << 20)

/* Keys count from the first of this server's partition. */
typedef struct list {
    int64_t number; /* 0: none */
    pl_keys keys;
    uint64_t *ids;
    int64_t room;
} list;

typedef struct asker {
    list lists[LISTS];    /* list n is at n % LISTS */
    list peek;            /* a list without a gradient */
    const list *wanted;   /* the answer has its values; or NULL */
    int64_t first, count; /* ... or this range, if count is not 0 */
    /* The current gradient: of a list and in a message, or kept. */
    pl_keys keys;
    const float *gradient;
    list kept;
    float *kept_values;
    int64_t kept_room;
    /* Memory for answers that do not fit into the shared memory. */
    float *answer;
    int64_t answer_room;
    int turn; /* the half of the shared memory to use next */
} asker;

struct pl_ps_table {
    const pl_ps_core_opts *opts;
    asker *askers;      /* the workers, then the evaluator */
    int64_t first, end; /* of the table in this partition */
    pl_sparse_sum sum;
};

static pl_status open_table(pl_ps_core *core)
{
    const pl_ps_core_opts *opts = &core->opts;
    pl_ps_table *table;
    PL_TRY(PL_NEW(table, 1));
    core->table = table;
    table->opts = opts;
    int64_t end = opts->table_first + opts->table_count - opts->first;
    table->first = opts->table_first - opts->first;
    table->first = table->first > 0 ? table->first : 0;
    table->end = end < opts->count ? end : opts->count;
    return PL_NEW(table->askers, (size_t)opts->workers + 1);
}

static void close_table(pl_ps_core *core)
{
    pl_ps_table *table = core->table;
    if (table == NULL)
        return;
    for (int32_t i = 0; table->askers != NULL && i <= table->opts->workers;
         i++) {
        asker *a = &table->askers[i];
        for (int l = 0; l < LISTS; l++)
            pl_mem_free(a->lists[l].ids);
        pl_mem_free(a->peek.ids);
        pl_mem_free(a->kept.ids);
        pl_mem_free(a->kept_values);
        pl_mem_free(a->answer);
    }
    pl_sparse_sum_close(&table->sum);
    pl_mem_free(table->askers);
    pl_mem_free(table);
}

static asker *asker_of(const pl_ps_core *core, const pl_member *member)
{
    int32_t id = pl_core_id(core, member);
    PL_ASSERT(id <= core->opts.workers);
    return &core->table->askers[id];
}

static void forget(pl_ps_core *core, const pl_member *member)
{
    if (core->table == NULL || pl_core_id(core, member) > core->opts.workers)
        return;
    asker *a = asker_of(core, member);
    for (int l = 0; l < LISTS; l++)
        a->lists[l].number = 0;
    a->wanted = NULL;
    a->count = 0;
}

static pl_status fill(pl_ps_core *core, const pl_message *message)
{
    const pl_ps_core_opts *opts = &core->opts;
    pl_first_range part = { opts->first, opts->count };
    if (message->frame.payload_bytes > FILL_TEXT_MOST)
        return PL_FAIL(PL_FORMAT, "first parameters described in %u bytes",
                       message->frame.payload_bytes);
    pl_json *description;
    PL_TRY(pl_json_parse(&description, message->payload,
                         message->frame.payload_bytes, "first parameters"));
    pl_status status = pl_first_fill(description, part, opts->params);
    pl_json_free(description);
    PL_TRY(status);
    pl_optim_reset(opts->optim);
    return PL_OK;
}

static pl_status make_room(list *l, int64_t count)
{
    l->number = 0;
    if (count > l->room) {
        size_t room = (size_t)(count + count / 4);
        pl_mem_free(l->ids);
        l->room = 0;
        PL_TRY(PL_NEW(l->ids, room));
        l->room = (int64_t)room;
    }
    l->keys = (pl_keys) { l->ids, count };
    return PL_OK;
}

/* Read `count` keys as list `number`; *bytes: the rest of the payload. */
static pl_status take_list(const pl_ps_core *core, list *l, int64_t number,
                           int64_t count, const uint8_t **at, size_t *bytes)
{
    size_t used;
    uint64_t begin = pl_trace_mark(core->opts.trace);
    if (count > PL_KEY_BATCH_MOST || count > core->opts.count)
        return PL_FAIL(PL_FORMAT, "a list of %lld keys; there are %lld here",
                       (long long)count, (long long)core->opts.count);
    /* Check before allocating: 32 keys take at least a byte. */
    if ((count + 31) / 32 > (int64_t)*bytes)
        return PL_FAIL(PL_FORMAT, "a list of %lld keys in %zu bytes",
                       (long long)count, *bytes);
    PL_TRY(make_room(l, count));
    PL_TRY(pl_key_list_read(count, *at, *bytes, (uint64_t)core->opts.count,
                            l->ids, &used));
    if (used > 0)
        *at += used;
    *bytes -= used;
    l->number = number;
    pl_core_traced(core, "keys", begin,
                   (int64_t)used + count * (int64_t)sizeof *l->ids);
    return PL_OK;
}

/* The place of list `number`; PL_FORMAT: invalid number. */
static pl_status list_place(asker *a, int64_t number, list **out)
{
    if (number < 1)
        return PL_FAIL(PL_FORMAT, "list %lld; they are numbered from 1",
                       (long long)number);
    *out = &a->lists[number % LISTS];
    return PL_OK;
}

static const list *find_list(const asker *a, int64_t number)
{
    const list *l = number > 0 ? &a->lists[number % LISTS] : NULL;
    return l != NULL && l->number == number ? l : NULL;
}

/* Read the requested keys as list `number`; the lists of a peek have no
 * gradient. */
static pl_status take_wanted(pl_ps_core *core, asker *a, int64_t number,
                             uint32_t count, bool peek, const uint8_t **at,
                             size_t *bytes)
{
    a->wanted = NULL;
    a->count = 0;
    if (number == 0 && count == 0)
        return PL_OK;
    list *l = &a->peek;
    if (!peek)
        PL_TRY(list_place(a, number, &l));
    PL_TRY(take_list(core, l, number, count, at, bytes));
    a->wanted = l;
    return PL_OK;
}

static pl_status begin_pull(pl_ps_core *core, const pl_member *member,
                            const pl_message *message)
{
    const pl_ps_pull *pull = &member->request.pull;
    const uint8_t *at = message->payload; /* NULL if empty */
    size_t bytes = message->frame.payload_bytes;
    if (pl_core_id(core, member) > core->opts.workers)
        return PL_FAIL(PL_FORMAT, "only workers and the evaluator pull");
    asker *a = asker_of(core, member);
    a->wanted = NULL;
    a->count = 0;
    if ((pull->flags & PL_PULL_RANGE) == 0)
        return take_wanted(core, a, pull->list, pull->key_count,
                           (pull->flags & PL_PULL_PEEK) != 0, &at, &bytes);
    int64_t first =
        pull->first < core->opts.first ? -1 : pull->first - core->opts.first;
    if (first < 0 || first > core->opts.count ||
        pull->count > PL_KEY_BATCH_MOST ||
        pull->count > core->opts.count - first)
        return PL_FAIL(PL_FORMAT, "pull of %lld floats at %lld",
                       (long long)pull->count, (long long)pull->first);
    a->first = first;
    a->count = pull->count;
    return PL_OK;
}

/* Take the keys that a push requests, and find those of its gradient.
 * PL_AGAIN, without a message: not found; PL_FORMAT: malformed. */
static pl_status take_keys(pl_ps_core *core, const pl_member *member,
                           const pl_ps_push *push, const pl_message *message)
{
    size_t floats = push->count * sizeof(float);
    const uint8_t *at = message->payload; /* NULL if empty */
    if (floats > message->frame.payload_bytes)
        return PL_FAIL(PL_FORMAT, "gradient of %u floats in %u bytes",
                       push->count, message->frame.payload_bytes);
    size_t bytes = message->frame.payload_bytes - floats;
    asker *a = asker_of(core, member);
    if (floats > 0)
        at += floats;
    PL_TRY(
        take_wanted(core, a, push->want, push->key_count, false, &at, &bytes));
    if (push->with_list) {
        list *l;
        PL_TRY(list_place(a, push->of, &l));
        PL_TRY(take_list(core, l, push->of, push->count, &at, &bytes));
    }
    const list *of = find_list(a, push->of);
    if (of == NULL)
        return PL_AGAIN;
    if (of == a->wanted || of->keys.count != push->count)
        return PL_FAIL(
            PL_FORMAT, "gradient of %u floats for list %lld of %lld keys",
            push->count, (long long)push->of, (long long)of->keys.count);
    return PL_OK;
}

static pl_status keep(pl_ps_core *core, pl_member *member)
{
    asker *a = asker_of(core, member);
    int64_t count = a->keys.count;
    if (a->gradient == NULL || a->gradient == a->kept_values)
        return PL_OK;
    PL_TRY(make_room(&a->kept, count));
    if (count > a->kept_room) {
        pl_mem_free(a->kept_values);
        a->kept_room = 0;
        PL_TRY(PL_NEW_ALIGNED(a->kept_values, (size_t)a->kept.room));
        a->kept_room = a->kept.room;
    }
    if (count > 0) {
        memcpy(a->kept.ids, a->keys.ids, (size_t)count * sizeof *a->kept.ids);
        memcpy(a->kept_values, a->gradient,
               (size_t)count * sizeof *a->gradient);
    }
    a->keys = a->kept.keys;
    a->gradient = a->kept_values;
    return PL_OK;
}

/* Then take the gradient itself: it is copied unless it is applied
 * immediately. */
static pl_status take_gradient(pl_ps_core *core, pl_member *member,
                               const pl_ps_push *push,
                               const pl_message *message)
{
    asker *a = asker_of(core, member);
    const list *of = find_list(a, push->of);
    PL_ASSERT(of != NULL);
    a->keys = of->keys;
    a->gradient = message->payload;
    bool at_once = !core->mode->lock_step && core->opts.ps == 1;
    return at_once ? PL_OK : keep(core, member);
}

/* Whole pieces are copied: touch each once. */
static bool touch_keys(const pl_ps_core *core, const pl_keys *keys)
{
    uint64_t last = UINT64_MAX;
    for (int64_t k = 0; k < keys->count; k++) {
        uint64_t piece = keys->ids[k] / (uint64_t)PL_FROZEN_FLOATS;
        if (piece == last)
            continue;
        last = piece;
        if (!core->opts.ops->touch(core->opts.context, (int64_t)keys->ids[k],
                                   1))
            return false;
    }
    return true;
}

static bool touch(const pl_ps_core *core, const pl_member *member)
{
    bool may = true;
    if (member != NULL)
        return touch_keys(core, &asker_of(core, member)->keys);
    for (int32_t w = 0; w < core->opts.workers && may; w++)
        if (core->members[w].fresh || core->members[w].held)
            may = touch_keys(core, &core->table->askers[w].keys);
    return may;
}

static bool is_finite(const pl_ps_core *core, const pl_member *member)
{
    const asker *a = asker_of(core, member);
    return a->keys.count == 0 ||
           isfinite(core->opts.kernels->sum(a->keys.count, a->gradient));
}

/* The index of the first key that is at least `place`. */
static int64_t find_key(const pl_keys *keys, int64_t place)
{
    int64_t low = 0, high = keys->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if ((int64_t)keys->ids[middle] < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void apply(const pl_ps_core *core, const pl_keys *keys,
                  const float *grad)
{
    const pl_ps_core_opts *opts = &core->opts;
    uint64_t begin = pl_trace_mark(opts->trace);
    int64_t from = find_key(keys, core->table->first);
    int64_t to = find_key(keys, core->table->end);
    to = to > from ? to : from;
    for (int64_t k = 0; k < keys->count; k++) {
        if (k == from)
            k = to;
        if (k < keys->count)
            pl_optim_update(opts->optim, (int64_t)keys->ids[k], 1, grad + k,
                            opts->params);
    }
    if (to > from) /* a list may have no keys, nor memory for them */
        pl_optim_update_keys(opts->optim, 0, to - from, keys->ids + from,
                             grad + from, opts->params);
    /* An id, its gradient, and the weight before and after; optimizer slots are
     * not counted. */
    pl_core_traced(core, "update", begin, keys->count * KEY_BYTES(3));
}

static pl_status update(pl_ps_core *core, const int32_t *workers, int32_t count)
{
    pl_sparse_sum *sum = &core->table->sum;
    const asker *first = &core->table->askers[workers[0]];
    if (count == 1) {
        apply(core, &first->keys, first->gradient);
        return PL_OK;
    }
    uint64_t begin = pl_trace_mark(core->opts.trace);
    pl_sparse_sum_clear(sum);
    for (int32_t i = 0; i < count; i++) {
        const asker *a = &core->table->askers[workers[i]];
        PL_TRY(pl_sparse_sum_put(sum, &a->keys, a->gradient));
    }
    if (!core->opts.sum)
        pl_sparse_sum_scale(sum, 1.0f / (float)count);
    pl_core_traced(core, "combine", begin, 0);
    apply(core, &sum->keys, sum->values);
    return PL_OK;
}

/* Memory for an answer; the previous answer may still be read. */
static pl_status answer_room(const pl_ps_core *core, const pl_member *member,
                             int64_t count, float **out)
{
    asker *a = asker_of(core, member);
    int64_t half = core->opts.answer_floats / 2;
    if (count <= half) {
        a->turn = 1 - a->turn;
        *out = core->opts.answers +
               pl_core_id(core, member) * core->opts.answer_floats +
               a->turn * half;
        return PL_OK;
    }
    if (count > a->answer_room) {
        pl_mem_free(a->answer);
        a->answer_room = 0;
        PL_TRY(PL_NEW_ALIGNED(a->answer, (size_t)count));
        a->answer_room = count;
    }
    *out = a->answer;
    return PL_OK;
}

static void deliver(pl_ps_core *core, pl_member *member)
{
    const asker *a = asker_of(core, member);
    bool over = member->request.kind == PL_REQUEST_PUSH &&
                (member->answer & PL_ANSWER_STOP) != 0;
    float *values = NULL;
    int64_t count = 0;
    if (a->wanted != NULL && !over)
        count = a->wanted->keys.count;
    else if (!over)
        count = a->count;
    if (count > 0 && answer_room(core, member, count, &values) != PL_OK) {
        pl_core_end(core, true, "%s", pl_error_message());
        return;
    }
    uint64_t begin = pl_trace_mark(core->opts.trace);
    if (count > 0 && a->wanted != NULL)
        pl_sparse_gather(count, a->wanted->ids, core->opts.params, values);
    else if (count > 0)
        memcpy(values, core->opts.params + a->first,
               (size_t)count * sizeof *values);
    if (count > 0)
        pl_core_traced(core, "find", begin, count * KEY_BYTES(2));
    pl_ps_params params = {
        .answer = member->answer,
        .step = core->step,
        .first = core->opts.first + (a->count > 0 ? a->first : 0),
        .count = (uint32_t)count,
        .made = member->made,
        .own = member->own,
    };
    pl_core_reply(core, member, pl_ps_params_encode(&params), values, false);
}

/* All of a push has arrived. */
static void take_push(pl_ps_core *core, pl_member *member,
                      const pl_ps_push *push, const pl_message *message)
{
    pl_status status = take_keys(core, member, push, message);
    if (status == PL_AGAIN) {
        pl_core_ack(core, member, PL_ACKED_NEED);
        return;
    }
    if (status != PL_OK) {
        pl_core_turn_down(core, member, pl_error_message());
        return;
    }
    if (pl_core_settle_early(core, member))
        return;
    status = take_gradient(core, member, push, message);
    if (status != PL_OK)
        pl_core_end(core, true, "%s", pl_error_message());
    else
        pl_core_gradient(core, member);
}

static void begin_push(pl_ps_core *core, pl_member *member,
                       const pl_message *message)
{
    if (member->request.push.has_data)
        take_push(core, member, &member->request.push, message);
    else
        pl_core_ack(core, member, PL_ACKED_NEED);
}

static void take(pl_ps_core *core, pl_member *member,
                 const pl_ps_request *request, const pl_message *message)
{
    if (request->kind == PL_REQUEST_PUSH)
        take_push(core, member, &request->push, message);
}

/* The first parameters are made here, not sent. */
static void begin_init(pl_ps_core *core, pl_member *member,
                       const pl_message *message)
{
    const pl_ps_core_ops *ops = core->opts.ops;
    if (ops->touch != NULL &&
        !ops->touch(core->opts.context, 0, core->opts.count))
        member->stage = PL_STAGE_NONE; /* wait for a save to end */
    else if (fill(core, message) != PL_OK)
        pl_core_turn_down(core, member, pl_error_message());
    else
        pl_core_complete(core, member);
}

const pl_ps_store_ops pl_ps_store_keyed = {
    .name = "keyed",
    .open = open_table,
    .close = close_table,
    .begin_init = begin_init,
    .begin_pull = begin_pull,
    .begin_push = begin_push,
    .take = take,
    .answer = deliver,
    .answer_again = deliver,
    .keep = keep,
    .forget = forget,
    .is_finite = is_finite,
    .touch = touch,
    .update = update,
};
