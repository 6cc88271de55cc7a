/* Prepares sparse batches early. If the parameters are on a server: requests
 * the keys of the next batches while the current one is computed. If they are
 * local: uses two halves of slots, one being computed while other threads
 * prepare the other. */
#include "train/compute/ahead.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

/* The current batch and those requested. */
#define ASKED_SLOTS 3
/* Otherwise slots form two halves: batches of one are computed while those of
 * the other are prepared.  Many slots, so that threads seldom wait for each
 * other; few rows in all, so that both halves stay in the second-level
 * cache. */
#define MOST_SLOTS 32
#define SOME_SLOTS 16
#define SLOT_ROWS  2048

typedef struct slot {
    pl_compute *compute;
    pl_batch batch; /* rows and labels; the rest is in `compute` */
    uint8_t *labels;
    float *weights;       /* NULL: all weigh 1 */
    pl_position position; /* of the reader before this batch */
    int64_t step;         /* of the requested values */
    int64_t traced;       /* expected step, for the trace */
    /* If the weights are local. */
    pl_batch read; /* as read, with... */
    uint32_t *index;
    bool good;
} slot;

struct pl_ahead {
    slot slots[MOST_SLOTS];
    int count;
    /* Batch n is in slot n % count. */
    int64_t read, begun;
    int64_t prepared; /* how many after `begun` are in preparation */
    pl_reader *reader;
    pl_sync *sync;
    pl_pool *pool;
    pl_trace *trace;
    int64_t next; /* the step of the next batch to begin */
    bool asks;    /* the weights are remote... */
    int table;    /* ... in this keyed parameter */
    int distance; /* batches requested beyond the next one */
};

int pl_ahead_batches(bool elsewhere, int64_t rows, int threads)
{
    if (elsewhere)
        return ASKED_SLOTS;
    if (threads < 2)
        return 1;
    int64_t some = SLOT_ROWS / rows;
    some = some < SOME_SLOTS ? some : SOME_SLOTS;
    some = some > 2 * threads ? some : 2 * threads;
    return (int)(some < MOST_SLOTS ? some / 2 * 2 : MOST_SLOTS);
}

static pl_status open_slot(slot *s, const pl_compute_opts *compute)
{
    PL_TRY(pl_compute_new(&s->compute, compute));
    if (!compute->elsewhere)
        PL_TRY(PL_NEW(s->index, (size_t)compute->batch));
    return PL_NEW(s->labels, (size_t)compute->batch);
}

pl_status pl_ahead_new(pl_ahead **out, const pl_compute_opts *compute,
                       pl_reader *reader, pl_sync *sync)
{
    pl_ahead *ahead;
    pl_status status = PL_OK;
    PL_TRY(PL_NEW(ahead, 1));
    ahead->reader = reader;
    ahead->sync = sync;
    ahead->pool = compute->pool;
    ahead->trace = compute->trace;
    ahead->asks = compute->elsewhere;
    ahead->table = compute->network->table;
    ahead->count = pl_ahead_batches(ahead->asks, compute->batch,
                                    pl_pool_threads(compute->pool));
    pl_compute_opts own = *compute;
    own.early = !ahead->asks;
    for (int i = 0; i < ahead->count && status == PL_OK; i++) {
        status = open_slot(&ahead->slots[i], &own);
        if (ahead->asks) /* one after another */
            own.beside = ahead->slots[0].compute;
    }
    if (status != PL_OK) {
        pl_ahead_free(ahead);
        return status;
    }
    *out = ahead;
    return PL_OK;
}

void pl_ahead_free(pl_ahead *ahead)
{
    if (ahead == NULL)
        return;
    pl_pool_finish(ahead->pool);
    for (int i = MOST_SLOTS - 1; i >= 0; i--) {
        pl_compute_free(ahead->slots[i].compute);
        pl_mem_free(ahead->slots[i].labels);
        pl_mem_free(ahead->slots[i].weights);
        pl_mem_free(ahead->slots[i].index);
    }
    pl_mem_free(ahead);
}

static pl_status keep_weights(slot *s, const pl_batch *batch)
{
    if (batch->weights.data == NULL)
        return PL_OK;
    PL_TRY(PL_RESIZE(s->weights, (size_t)batch->rows));
    for (int64_t r = 0; r < batch->rows; r++)
        s->weights[r] = *pl_view_row_f32(&batch->weights, r);
    s->batch.weights = (pl_view) {
        .data = s->weights, .stride = 1, .dtype = PL_FLOAT32, .scale = 1
    };
    return PL_OK;
}

/* Find the keys of a batch and keep its labels. */
static pl_status prepare(const pl_ahead *ahead, slot *s, const pl_batch *batch,
                         int thread)
{
    uint64_t begin = pl_trace_mark(ahead->trace);
    PL_TRY(pl_compute_prepare(s->compute, batch));
    /* The stepping thread may switch the recorder on meanwhile. */
    if (begin > 0 && pl_trace_on(ahead->trace))
        pl_trace_span(ahead->trace, thread, "find", s->traced, begin,
                      pl_ticks_now());
    for (int64_t r = 0; r < batch->rows; r++)
        s->labels[r] = pl_view_label(&batch->labels, r) != 0;
    s->batch = (pl_batch) {
        .rows = batch->rows,
        .labels = { .data = s->labels, .stride = 1, .dtype = PL_UINT8 },
    };
    return keep_weights(s, batch);
}

/* Read one more batch and request its values. */
static pl_status ask_one(pl_ahead *ahead, bool later)
{
    slot *s = &ahead->slots[ahead->read % ahead->count];
    pl_batch batch;
    const pl_keys *keys;
    pl_reader_position(ahead->reader, &s->position);
    PL_TRY(pl_reader_next(ahead->reader, &batch));
    s->traced = ahead->next + ahead->read - ahead->begun;
    PL_TRY(prepare(ahead, s, &batch, 0));
    pl_compute_grad(s->compute, ahead->table, &keys);
    PL_TRY(ahead->sync->ops->keyed->ask(ahead->sync, keys, later));
    ahead->read++;
    return PL_OK;
}

/* Wait for the values of the next batch. */
static pl_status take_one(pl_ahead *ahead, slot *s)
{
    pl_values values;
    while (ahead->read - ahead->begun <= ahead->distance)
        PL_TRY(ask_one(ahead, false));
    PL_TRY(ahead->sync->ops->keyed->take(ahead->sync, &values));
    pl_compute_place(s->compute, &values);
    s->step = values.step;
    return PL_OK;
}

/* For a set in memory the reader yields row numbers; only these are kept. */
static pl_status read_one(pl_ahead *ahead)
{
    slot *s = &ahead->slots[ahead->read % ahead->count];
    pl_reader_position(ahead->reader, &s->position);
    PL_TRY(pl_reader_next(ahead->reader, &s->read));
    PL_ASSERT(s->read.row_index != NULL);
    memcpy(s->index, s->read.row_index,
           (size_t)s->read.rows * sizeof *s->index);
    s->read.row_index = s->read.labels.index = s->index;
    s->read.weights.index = s->index;
    s->traced = ahead->next + ahead->read - ahead->begun;
    ahead->read++;
    return PL_OK;
}

static void prepare_item(void *arg, int item, int thread)
{
    pl_ahead *ahead = arg;
    slot *s = &ahead->slots[(ahead->prepared + item) % ahead->count];
    s->good = prepare(ahead, s, &s->read, thread) == PL_OK;
}

static pl_status start_half(pl_ahead *ahead)
{
    int half = ahead->count / 2;
    for (int i = 0; i < half; i++)
        PL_TRY(read_one(ahead));
    pl_pool_start(ahead->pool, half, prepare_item, ahead);
    return PL_OK;
}

/* An error that another thread found in a batch is found again, and reported,
 * when the batch is due here. */
static pl_status await_one(pl_ahead *ahead, slot *s)
{
    if (ahead->begun == ahead->prepared) {
        if (ahead->read == ahead->prepared)
            PL_TRY(start_half(ahead));
        pl_pool_finish(ahead->pool);
        ahead->prepared = ahead->read;
        PL_TRY(start_half(ahead));
    }
    return s->good ? PL_OK : prepare(ahead, s, &s->read, 0);
}

static void forget(pl_ahead *ahead)
{
    pl_pool_finish(ahead->pool);
    ahead->read = ahead->begun = ahead->prepared = 0;
}

void pl_ahead_reset(pl_ahead *ahead, int distance)
{
    PL_ASSERT(!ahead->asks || distance + 2 <= ahead->count);
    forget(ahead);
    ahead->distance = distance;
}

pl_status pl_ahead_skip(pl_ahead *ahead)
{
    pl_values values;
    if (!ahead->asks)
        forget(ahead);
    for (; ahead->begun < ahead->read; ahead->begun++)
        PL_TRY(ahead->sync->ops->keyed->take(ahead->sync, &values));
    return PL_OK;
}

void pl_ahead_turn(pl_ahead *ahead, pl_reader *reader)
{
    PL_ASSERT(ahead->begun == ahead->read);
    ahead->reader = reader;
}

pl_status pl_ahead_begin(pl_ahead *ahead, int64_t step, pl_ahead_batch *out)
{
    slot *s = &ahead->slots[ahead->begun % ahead->count];
    ahead->next = step;
    PL_TRY(ahead->asks ? take_one(ahead, s) : await_one(ahead, s));
    ahead->begun++;
    ahead->next++;
    *out = (pl_ahead_batch) { s->compute, &s->batch, s->step };
    return PL_OK;
}

pl_status pl_ahead_next(pl_ahead *ahead)
{
    return ahead->asks ? ask_one(ahead, true) : PL_OK;
}

void pl_ahead_position(const pl_ahead *ahead, pl_position *out)
{
    if (ahead->begun < ahead->read)
        *out = ahead->slots[ahead->begun % ahead->count].position;
    else
        pl_reader_position(ahead->reader, out);
}
