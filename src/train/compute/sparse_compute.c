/* Design.
 *
 * prepare numbers the distinct keys of a batch (kernels/sparse.h), which needs
 * no weights.  The gradient then gathers the weights of the keys, sums them to
 * logits row by row, and sums the gradient of each key.  The rows of a large
 * batch are split into parts, which threads share; each has its own gradient,
 * and these are added in order.  The number of parts follows from the number of
 * non-zeros, so the bits are the same on any number of threads.
 *
 * Keys are in order of appearance, or sorted if they are sent: every number has
 * the same bits either way.
 *
 * If the parameters are remote, other batches are prepared before this one is
 * computed.  So the object copies what it needs of the batch, which is little
 * since ids have become slots.  Memory that only finding keys needs is shared
 * by all objects (pl_compute_opts.beside), and stays in the second-level cache.
 *
 * A trace has a span for each operator of each part: gather, dot, sigmoid,
 * error, gradient, combine and loss, with the bytes that it moved, which differ
 * from batch to batch.  The caller of prepare traces it, since it may run on
 * any thread.
 *
 * Memory grows with the largest batch seen. */
#include "base/assert.h"
#include "base/mem.h"
#include "kernels/sparse.h"
#include "train/compute/compute_priv.h"

#include <string.h>

#define PART_ENTRIES 16384 /* worth waking a thread */
#define MAX_PARTS    8
#define SCORE_ROWS   64 /* of one work item of a test */
/* Minimum map cells per non-zero: more would exceed the second-level cache,
 * fewer cause too many collisions. */
#define MAP_CELLS 3
/* Non-zeros per example that the memory forecast assumes. */
#define USUAL_ENTRIES 64

/* Memory for finding keys. */
typedef struct finder {
    int64_t room; /* capacity in non-zeros */
    pl_key_map map;
    uint64_t *work[2]; /* for sorting keys */
} finder;

typedef struct sparse {
    pl_compute base;
    pl_compute_opts opts;
    const float *table, *bias; /* of the network; NULL: remote... */
    pl_values values;          /* ... and these are the batch's values */
    int64_t features;
    int id_bits;
    /* The current batch. */
    pl_rows rows;
    pl_slots slots;
    pl_keys keys;
    int parts;
    /* For the trace. */
    int64_t step;   /* for which the batch is computed */
    uint64_t ended; /* end of the last span if there is one part; 0: none */
    /* Per row. */
    int64_t row_room;
    float *logits;
    float *probs;
    float *diff;
    /* Per non-zero. */
    finder *finder; /* owned or shared */
    finder own;
    int64_t room;
    uint64_t *ids;
    float *weights; /* of the local table; NULL: remote */
    float *kept;    /* values of the batch; NULL: local, or none yet */
    /* Per key and part. */
    int64_t grad_room;
    float *grads; /* [parts, keys]; the first becomes the sum */
    float bias_grad;
    double accuracy; /* on the batch of the last gradient */
} sparse;

static void free_finder(finder *f)
{
    pl_mem_free(f->map.cells);
    pl_mem_free(f->work[0]);
    pl_mem_free(f->work[1]);
    *f = (finder) { .room = 0 };
}

static void free_entries(sparse *c)
{
    pl_mem_free(c->slots.list);
    pl_mem_free(c->ids);
    pl_mem_free(c->weights);
    pl_mem_free(c->kept);
    c->slots.list = NULL;
    c->ids = NULL;
    c->weights = c->kept = NULL;
    c->room = 0;
}

static void sparse_free(pl_compute *base)
{
    sparse *c = (sparse *)base;
    free_entries(c);
    free_finder(&c->own);
    pl_mem_free(c->slots.start);
    pl_mem_free(c->logits);
    pl_mem_free(c->probs);
    pl_mem_free(c->diff);
    pl_mem_free(c->grads);
    pl_mem_free(c);
}

static pl_status make_rows(sparse *c, int64_t rows)
{
    size_t count = (size_t)rows;
    PL_TRY(PL_NEW_ALIGNED(c->probs, count));
    if (!c->opts.forward || c->opts.elsewhere)
        PL_TRY(PL_NEW_ALIGNED(c->slots.start, count + 1));
    if (c->opts.forward)
        return PL_OK;
    PL_TRY(PL_NEW_ALIGNED(c->logits, count));
    return PL_NEW_ALIGNED(c->diff, count);
}

static int bits_of(uint64_t most)
{
    return most > 0 ? 64 - __builtin_clzll(most) : 1;
}

static pl_status sparse_new(pl_compute **out, const pl_compute_opts *opts)
{
    const pl_network *network = opts->network;
    int64_t features = pl_params_get(network->params, network->table)->count;
    if (features > PL_SPARSE_MOST_IDS)
        return PL_FAIL(PL_UNSUPPORTED,
                       "%lld features; a table has at most 2^32",
                       (long long)features);
    sparse *c;
    PL_TRY(PL_NEW(c, 1));
    c->opts = *opts;
    if (!opts->elsewhere) {
        c->table = pl_params_data(network->params, network->table);
        c->bias = pl_params_data(network->params, network->bias);
    }
    c->finder = &c->own;
    if (opts->beside != NULL && opts->beside->ops == &pl_sparse_compute)
        c->finder = ((const sparse *)opts->beside)->finder;
    c->features = features;
    c->id_bits = bits_of((uint64_t)features - 1);
    c->row_room = opts->batch;
    pl_status status = make_rows(c, opts->batch);
    if (status != PL_OK) {
        sparse_free(&c->base);
        return status;
    }
    *out = &c->base;
    return PL_OK;
}

static pl_status sparse_memory(const pl_compute_opts *opts,
                               pl_compute_size *out)
{
    int64_t row = sizeof(float), entry = 0;
    if (!opts->forward || opts->elsewhere) {
        row += 2 * (int64_t)sizeof(float) + (int64_t)sizeof(int64_t);
        /* Slot, weight and gradient; its part of the map, and id. */
        entry = 3 * (int64_t)sizeof(float) +
                2 * MAP_CELLS * (int64_t)sizeof(uint32_t) +
                (int64_t)sizeof(uint64_t);
        if (!opts->any_key_order)
            entry += 2 * (int64_t)sizeof(uint64_t);
    }
    *out = (pl_compute_size) { .bytes = opts->batch *
                                        (row + USUAL_ENTRIES * entry) };
    return PL_OK;
}

static pl_status make_finder(finder *f, int64_t entries, bool sorted)
{
    if (entries <= f->room && (!sorted || f->work[0] != NULL))
        return PL_OK;
    entries = entries > f->room ? entries : f->room;
    size_t count = (size_t)(entries + entries / 4) + 1;
    int bits = bits_of(MAP_CELLS * (uint64_t)entries - 1);
    free_finder(f);
    PL_TRY(PL_NEW_ALIGNED(f->map.cells, (size_t)1 << bits));
    if (sorted) {
        PL_TRY(PL_NEW_ALIGNED(f->work[0], count));
        PL_TRY(PL_NEW_ALIGNED(f->work[1], count));
    }
    f->map.bits = bits;
    f->room = (int64_t)count - 1;
    return PL_OK;
}

static pl_status make_room(sparse *c, int64_t entries)
{
    PL_TRY(make_finder(c->finder, entries, !c->opts.any_key_order));
    if (entries <= c->room)
        return PL_OK;
    int64_t room = entries + entries / 4;
    size_t count = (size_t)room + 1;
    free_entries(c);
    PL_TRY(PL_NEW_ALIGNED(c->slots.list, count));
    PL_TRY(PL_NEW_ALIGNED(c->ids, count));
    if (!c->opts.elsewhere)
        PL_TRY(PL_NEW_ALIGNED(c->weights, count));
    c->room = room;
    return PL_OK;
}

/* Copy what is needed of rows that the reader will release. */
static pl_status keep_rows(sparse *c)
{
    const pl_rows from = c->rows;
    c->rows = (pl_rows) { .count = from.count, .start = c->slots.start };
    if (from.values == NULL)
        return PL_OK;
    if (c->kept == NULL)
        PL_TRY(PL_NEW_ALIGNED(c->kept, (size_t)c->room));
    for (int64_t r = 0; r < from.count; r++) {
        int64_t to = c->slots.start[r], n = c->slots.start[r + 1] - to;
        if (n > 0)
            memcpy(c->kept + to,
                   from.values + from.start[pl_rows_source(&from, r)],
                   (size_t)n * sizeof *c->kept);
    }
    c->rows.values = c->kept;
    return PL_OK;
}

/* Split the batch, and allocate a gradient for each part. */
static pl_status make_parts(sparse *c, int64_t entries)
{
    int64_t parts = entries / PART_ENTRIES;
    parts = parts < 1 ? 1 : parts > MAX_PARTS ? MAX_PARTS : parts;
    parts = parts < c->rows.count ? parts : 1;
    c->parts = (int)parts;
    int64_t needed = parts * c->keys.count;
    if (needed <= c->grad_room)
        return PL_OK;
    needed += needed / 4;
    pl_mem_free(c->grads);
    c->grad_room = 0;
    PL_TRY(PL_NEW_ALIGNED(c->grads, (size_t)needed));
    c->grad_room = needed;
    return PL_OK;
}

/* A test reads the table row by row; ids are still checked. */
static pl_status check_ids(const sparse *c)
{
    const pl_rows *rows = &c->rows;
    uint64_t largest = 0;
    for (int64_t r = 0; r < rows->count; r++) {
        int64_t s = pl_rows_source(rows, r);
        for (int64_t j = rows->start[s]; j < rows->start[s + 1]; j++)
            largest = rows->ids[j] > largest ? rows->ids[j] : largest;
    }
    if (largest >= (uint64_t)c->features && rows->count > 0)
        return pl_compute_beyond(largest, c->features);
    return PL_OK;
}

static pl_status sparse_prepare(pl_compute *base, const pl_batch *batch)
{
    sparse *c = (sparse *)base;
    PL_ASSERT(batch->row_start != NULL && batch->rows <= c->row_room);
    c->rows = (pl_rows) {
        .count = batch->rows,
        .start = batch->row_start,
        .index = batch->row_index,
        .ids = batch->ids,
        .values = batch->values,
    };
    if (c->opts.forward && !c->opts.elsewhere)
        return check_ids(c);
    int64_t count = pl_rows_entries(&c->rows);
    if (count > UINT32_MAX)
        return PL_FAIL(PL_UNSUPPORTED,
                       "a batch has %lld non-zeros; at most 2^32 - 1",
                       (long long)count);
    PL_TRY(make_room(c, count));
    uint64_t largest;
    /* Prefetch the weights, unless another thread may compute the batch. */
    c->keys.count = pl_sparse_find(&c->finder->map, &c->rows,
                                   c->opts.early ? NULL : c->table, c->ids,
                                   &c->slots, &largest);
    if (count > 0 && largest >= (uint64_t)c->features)
        return pl_compute_beyond(largest, c->features);
    if (!c->opts.any_key_order)
        pl_sparse_order(c->keys.count, c->id_bits, c->ids, count, c->slots.list,
                        c->finder->work[0], c->finder->work[1]);
    c->keys.ids = c->ids;
    if (c->opts.elsewhere)
        PL_TRY(keep_rows(c));
    return c->opts.forward ? PL_OK : make_parts(c, count);
}

/* Where part `part` begins among `count` elements. */
static int64_t part_from(const sparse *c, int64_t count, int part)
{
    return count * part / c->parts;
}

static void sparse_place(pl_compute *base, const pl_values *values)
{
    sparse *c = (sparse *)base;
    PL_ASSERT(c->opts.elsewhere);
    c->values = *values;
}

/* When an operator begins.  The spans of a single part are contiguous: the
 * clock is read once per span. */
static uint64_t mark(const sparse *c)
{
    return c->ended > 0 ? c->ended : pl_trace_mark(c->opts.trace);
}

/* Record an operator that began at `begin`; returns when the next begins. */
static uint64_t spent(sparse *c, int thread, const char *name, uint64_t begin,
                      int64_t floats)
{
    if (!pl_trace_on(c->opts.trace))
        return 0;
    uint64_t end = pl_ticks_now();
    pl_trace_moved(c->opts.trace, thread, name, c->step, begin, end,
                   floats * (int64_t)sizeof(float));
    if (c->parts == 1)
        c->ended = end;
    return end;
}

/* Floats (and slots, which have the same size) read for the non-zeros of some
 * rows: a slot, its key, and a value unless all are 1. */
static int64_t entry_floats(const sparse *c, int64_t first, int64_t count)
{
    int64_t entries = c->slots.start[first + count] - c->slots.start[first];
    return entries * (c->rows.values != NULL ? 3 : 2);
}

static void gather_part(void *arg, int part, int thread)
{
    sparse *c = arg;
    uint64_t begin = mark(c);
    int64_t first = part_from(c, c->keys.count, part);
    int64_t last = part_from(c, c->keys.count, part + 1);
    pl_sparse_gather(last - first, c->ids + first, c->table,
                     c->weights + first);
    spent(c, thread, "gather", begin, 4 * (last - first));
}

static void forward_part(void *arg, int part, int thread)
{
    sparse *c = arg;
    uint64_t begin = mark(c);
    int64_t first = part_from(c, c->rows.count, part);
    int64_t count = part_from(c, c->rows.count, part + 1) - first;
    pl_sparse_forward(&c->rows, &c->slots, first, count, c->values.table,
                      *c->values.bias, c->logits);
    begin =
        spent(c, thread, "dot", begin, entry_floats(c, first, count) + count);
    c->opts.kernels->sigmoid(count, c->logits + first, c->probs + first);
    spent(c, thread, "sigmoid", begin, 2 * count);
}

static void backward_part(void *arg, int part, int thread)
{
    sparse *c = arg;
    uint64_t begin = mark(c);
    int64_t first = part_from(c, c->rows.count, part);
    int64_t count = part_from(c, c->rows.count, part + 1) - first;
    float *grad = c->grads + part * c->keys.count;
    c->opts.kernels->fill(c->keys.count, 0.0f, grad);
    pl_sparse_backward(&c->rows, &c->slots, first, count, c->diff, grad);
    spent(c, thread, "gradient", begin,
          c->keys.count + count + entry_floats(c, first, count));
}

/* Sum the gradients of all parts for a range of keys. */
static void sum_part(void *arg, int part, int thread)
{
    sparse *c = arg;
    uint64_t begin = mark(c);
    const float *terms[MAX_PARTS];
    int64_t first = part_from(c, c->keys.count, part);
    int64_t last = part_from(c, c->keys.count, part + 1);
    for (int p = 0; p < c->parts; p++)
        terms[p] = c->grads + p * c->keys.count + first;
    c->opts.kernels->sum_parts(last - first, c->parts, terms, c->grads + first);
    spent(c, thread, "combine", begin, (last - first) * (c->parts + 1));
}

/* Each row's contribution to the gradient of the loss, and the number of right
 * answers. */
static void find_errors(sparse *c, const pl_batch *batch)
{
    uint64_t begin = mark(c);
    int64_t rows = batch->rows, right = 0;
    float scale = c->opts.sum ? 1.0f : 1.0f / (float)rows, sum = 0;
    for (int64_t r = 0; r < rows; r++) {
        float label = pl_view_label(&batch->labels, r) != 0 ? 1.0f : 0.0f;
        c->diff[r] = (c->probs[r] - label) * scale;
        if (batch->weights.data != NULL)
            c->diff[r] *= *pl_view_row_f32(&batch->weights, r);
        sum += c->diff[r];
        right += (c->probs[r] >= 0.5f) == (label != 0);
    }
    c->accuracy = (double)right / (double)rows;
    c->bias_grad = sum;
    spent(c, 0, "error", begin, 2 * rows);
}

static double weighted_loss(const sparse *c, const pl_batch *batch)
{
    double sum = 0;
    for (int64_t r = 0; r < batch->rows; r++) {
        pl_view label = pl_view_from(&batch->labels, r);
        sum += (double)*pl_view_row_f32(&batch->weights, r) *
               pl_sparse_loss(1, c->probs + r, &label);
    }
    return sum;
}

static double sparse_gradient(pl_compute *base, const pl_batch *batch,
                              int64_t step, int64_t part, pl_sync *apply)
{
    (void)part;
    sparse *c = (sparse *)base;
    int64_t rows = batch->rows;
    PL_ASSERT(apply == NULL && !c->opts.forward && rows == c->rows.count);
    c->step = step;
    c->ended = 0;
    if (!c->opts.elsewhere) {
        pl_pool_run(c->opts.pool, c->parts, gather_part, c);
        c->values = (pl_values) { .table = c->weights, .bias = c->bias };
    }
    pl_pool_run(c->opts.pool, c->parts, forward_part, c);
    find_errors(c, batch);
    pl_pool_run(c->opts.pool, c->parts, backward_part, c);
    if (c->parts > 1)
        pl_pool_run(c->opts.pool, c->parts, sum_part, c);
    uint64_t begin = mark(c);
    double loss = batch->weights.data == NULL
                      ? pl_sparse_loss(rows, c->probs, &batch->labels)
                      : weighted_loss(c, batch);
    spent(c, 0, "loss", begin, rows);
    return loss / (double)rows;
}

static const float *sparse_grad(const pl_compute *base, int param,
                                const pl_keys **keys)
{
    const sparse *c = (const sparse *)base;
    bool table = param == c->opts.network->table;
    *keys = table ? &c->keys : NULL;
    return table ? c->grads : &c->bias_grad;
}

static void score_part(void *arg, int part, int thread)
{
    (void)thread;
    sparse *c = arg;
    int64_t rows = c->rows.count;
    int64_t first = rows * part / c->parts, last = rows * (part + 1) / c->parts;
    if (c->opts.elsewhere)
        pl_sparse_forward(&c->rows, &c->slots, first, last - first,
                          c->values.table, *c->values.bias, c->probs);
    else
        pl_sparse_rows(&c->rows, first, last - first, c->table, *c->bias,
                       c->probs + first);
    c->opts.kernels->sigmoid(last - first, c->probs + first, c->probs + first);
}

static pl_score sparse_score(pl_compute *base, const pl_batch *batch)
{
    sparse *c = (sparse *)base;
    int64_t rows = batch->rows, right = 0;
    PL_ASSERT(c->opts.forward && rows == c->rows.count);
    int64_t parts = (rows + SCORE_ROWS - 1) / SCORE_ROWS;
    c->parts = (int)(parts < INT16_MAX ? parts : INT16_MAX);
    pl_pool_run(c->opts.pool, c->parts, score_part, c);
    for (int64_t r = 0; r < rows; r++)
        right +=
            (c->probs[r] >= 0.5f) == (pl_view_label(&batch->labels, r) != 0);
    return (pl_score) {
        .loss = pl_sparse_loss(rows, c->probs, &batch->labels) / (double)rows,
        .accuracy = (double)right / (double)rows,
    };
}

static double sparse_accuracy(const pl_compute *base, const pl_batch *batch)
{
    (void)batch;
    return ((const sparse *)base)->accuracy;
}

static const float *sparse_probs(const pl_compute *base)
{
    return ((const sparse *)base)->probs;
}

const pl_compute_ops pl_sparse_compute = {
    .make = sparse_new,
    .free = sparse_free,
    .memory = sparse_memory,
    .prepare = sparse_prepare,
    .gradient = sparse_gradient,
    .grad = sparse_grad,
    .place = sparse_place,
    .score = sparse_score,
    .accuracy = sparse_accuracy,
    .probs = sparse_probs,
};
