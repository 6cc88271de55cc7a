#include "train/ahead.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

/* The batch at hand, and as many as are asked for. */
#define SLOTS 3

typedef struct slot {
    pl_compute *compute;
    pl_batch batch; /* in memory of its own: */
    int64_t *row_start;
    uint8_t *labels;
    uint64_t *ids;
    float *values;
    int64_t room;         /* non-zeros */
    pl_position position; /* of the reader before it */
} slot;

struct pl_ahead {
    slot slots[SLOTS];
    int64_t read, begun; /* the n-th batch is at n % SLOTS */
    pl_reader *reader;
    pl_sync *sync;
    int table;    /* the parameter with keys */
    int distance; /* batches asked for beyond the one that is next */
};

static pl_status open_slot(slot *s, const pl_compute_opts *compute)
{
    PL_TRY(pl_compute_new(&s->compute, compute));
    PL_TRY(PL_NEW(s->row_start, (size_t)compute->batch + 1));
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
    ahead->table = compute->network->table;
    ahead->distance = sync->ops->ahead(sync);
    PL_ASSERT(ahead->distance + 2 <= SLOTS);
    for (int i = 0; i < SLOTS && status == PL_OK; i++)
        status = open_slot(&ahead->slots[i], compute);
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
    for (int i = 0; i < SLOTS; i++) {
        slot *s = &ahead->slots[i];
        pl_compute_free(s->compute);
        pl_mem_free(s->row_start);
        pl_mem_free(s->labels);
        pl_mem_free(s->ids);
        pl_mem_free(s->values);
    }
    pl_mem_free(ahead);
}

static int64_t source_row(const pl_batch *batch, int64_t row)
{
    return batch->row_index != NULL ? (int64_t)batch->row_index[row] : row;
}

static pl_status make_room(slot *s, int64_t count, bool values)
{
    if (count <= s->room && (!values || s->values != NULL))
        return PL_OK;
    size_t room = (size_t)(count > s->room ? count + count / 4 : s->room);
    pl_mem_free(s->ids);
    pl_mem_free(s->values);
    s->values = NULL;
    s->room = 0;
    PL_TRY(PL_NEW(s->ids, room));
    if (values)
        PL_TRY(PL_NEW(s->values, room));
    s->room = (int64_t)room;
    return PL_OK;
}

static pl_status copy_batch(slot *s, const pl_batch *from)
{
    int64_t count = 0;
    s->row_start[0] = 0;
    for (int64_t r = 0; r < from->rows; r++) {
        int64_t at = source_row(from, r);
        count += from->row_start[at + 1] - from->row_start[at];
        s->row_start[r + 1] = count;
        s->labels[r] = pl_view_label(&from->labels, r) != 0;
    }
    PL_TRY(make_room(s, count, from->values != NULL));
    for (int64_t r = 0; r < from->rows; r++) {
        int64_t begin = from->row_start[source_row(from, r)];
        int64_t to = s->row_start[r];
        size_t n = (size_t)(s->row_start[r + 1] - to);
        memcpy(s->ids + to, from->ids + begin, n * sizeof *s->ids);
        if (from->values != NULL)
            memcpy(s->values + to, from->values + begin, n * sizeof *s->values);
    }
    s->batch = (pl_batch) {
        .rows = from->rows,
        .labels = { .data = s->labels, .stride = 1, .dtype = PL_UINT8 },
        .row_start = s->row_start,
        .ids = s->ids,
        .values = from->values != NULL ? s->values : NULL,
    };
    return PL_OK;
}

/* Read one more batch and ask for its values. */
static pl_status read_one(pl_ahead *ahead, bool later)
{
    slot *s = &ahead->slots[ahead->read % SLOTS];
    pl_batch batch;
    const pl_keys *keys;
    pl_reader_position(ahead->reader, &s->position);
    PL_TRY(pl_reader_next(ahead->reader, &batch));
    PL_TRY(copy_batch(s, &batch));
    PL_TRY(pl_compute_prepare(s->compute, &s->batch));
    pl_compute_grad(s->compute, ahead->table, &keys);
    PL_TRY(ahead->sync->ops->ask(ahead->sync, keys, later));
    ahead->read++;
    return PL_OK;
}

void pl_ahead_reset(pl_ahead *ahead)
{
    ahead->read = ahead->begun = 0;
}

pl_status pl_ahead_skip(pl_ahead *ahead)
{
    pl_values values;
    for (; ahead->begun < ahead->read; ahead->begun++)
        PL_TRY(ahead->sync->ops->take(ahead->sync, &values));
    return PL_OK;
}

pl_status pl_ahead_begin(pl_ahead *ahead, pl_ahead_batch *out)
{
    pl_values values;
    while (ahead->read - ahead->begun <= ahead->distance)
        PL_TRY(read_one(ahead, false));
    slot *s = &ahead->slots[ahead->begun % SLOTS];
    PL_TRY(ahead->sync->ops->take(ahead->sync, &values));
    ahead->begun++;
    pl_compute_place(s->compute, &values);
    *out = (pl_ahead_batch) { s->compute, &s->batch };
    return PL_OK;
}

pl_status pl_ahead_next(pl_ahead *ahead)
{
    return read_one(ahead, true);
}

void pl_ahead_position(const pl_ahead *ahead, pl_position *out)
{
    if (ahead->begun < ahead->read)
        *out = ahead->slots[ahead->begun % SLOTS].position;
    else
        pl_reader_position(ahead->reader, out);
}
