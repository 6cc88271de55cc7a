#include "train/ahead.h"

#include "base/assert.h"
#include "base/mem.h"

/* The batch at hand, and as many as are asked for. */
#define SLOTS 3

typedef struct slot {
    pl_compute *compute;
    pl_batch batch; /* rows and labels; the rest is in `compute` */
    uint8_t *labels;
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
    pl_compute_opts own = *compute;
    for (int i = 0; i < SLOTS && status == PL_OK; i++) {
        status = open_slot(&ahead->slots[i], &own);
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
    for (int i = SLOTS - 1; i >= 0; i--) {
        pl_compute_free(ahead->slots[i].compute);
        pl_mem_free(ahead->slots[i].labels);
    }
    pl_mem_free(ahead);
}

/* Read one more batch and ask for its values. */
static pl_status read_one(pl_ahead *ahead, bool later)
{
    slot *s = &ahead->slots[ahead->read % SLOTS];
    pl_batch batch;
    const pl_keys *keys;
    pl_reader_position(ahead->reader, &s->position);
    PL_TRY(pl_reader_next(ahead->reader, &batch));
    PL_TRY(pl_compute_prepare(s->compute, &batch));
    for (int64_t r = 0; r < batch.rows; r++)
        s->labels[r] = pl_view_label(&batch.labels, r) != 0;
    s->batch = (pl_batch) {
        .rows = batch.rows,
        .labels = { .data = s->labels, .stride = 1, .dtype = PL_UINT8 },
    };
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

void pl_ahead_turn(pl_ahead *ahead, pl_reader *reader)
{
    PL_ASSERT(ahead->begun == ahead->read);
    ahead->reader = reader;
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
