/* Design.
 *
 * prepare packs the non-zeros of a batch, sorts them by id and finds the
 * distinct keys (kernels/sparse.h): all that is known without the weights.
 * The gradient then gathers the weights of the keys, adds them up to logits,
 * and adds up the gradient of each key.  A large batch is cut into parts of
 * the sorted entries, which threads share; how many follows from the number
 * of entries, so the logits, which are sums over parts, have the same bits on
 * any number of threads.
 *
 * Memory grows with the largest batch seen. */
#include "base/assert.h"
#include "base/mem.h"
#include "kernels/sparse.h"
#include "train/compute_priv.h"

#define PART_ENTRIES 16384 /* worth waking a thread for */
#define MAX_PARTS    8
#define SCORE_ROWS   64 /* of one item of a test */
/* Non-zeros of an example that memory is foreseen for. */
#define USUAL_ENTRIES 64

typedef struct sparse {
    pl_compute base;
    pl_compute_opts opts;
    const float *table, *bias; /* the network's */
    int64_t features;
    int id_bits;
    /* The batch at hand. */
    pl_rows rows;
    pl_entries entries;
    pl_keys keys;
    const pl_batch *batch;
    int parts;
    int64_t part_key[MAX_PARTS + 1]; /* where its keys begin */
    /* For each row. */
    int64_t row_room;
    float *logits; /* [MAX_PARTS, row_room] */
    float *probs;
    float *diff;
    /* For each entry. */
    int64_t room;
    uint64_t *lists[2];
    uint32_t *row_of; /* these two only where there are values */
    float *value;
    uint64_t *ids;
    uint32_t *first;
    float *weights;
    float *grad;
    float bias_grad;
} sparse;

static void free_entries(sparse *c)
{
    pl_mem_free(c->lists[0]);
    pl_mem_free(c->lists[1]);
    pl_mem_free(c->row_of);
    pl_mem_free(c->value);
    pl_mem_free(c->ids);
    pl_mem_free(c->first);
    pl_mem_free(c->weights);
    pl_mem_free(c->grad);
    c->lists[0] = c->lists[1] = c->ids = NULL;
    c->row_of = c->first = NULL;
    c->value = c->weights = c->grad = NULL;
    c->room = 0;
}

static void sparse_free(pl_compute *base)
{
    sparse *c = (sparse *)base;
    free_entries(c);
    pl_mem_free(c->logits);
    pl_mem_free(c->probs);
    pl_mem_free(c->diff);
    pl_mem_free(c);
}

static pl_status make_rows(sparse *c, int64_t rows)
{
    size_t count = (size_t)rows;
    PL_TRY(PL_NEW_ALIGNED(c->probs, count));
    if (c->opts.forward)
        return PL_OK;
    PL_TRY(PL_NEW_ALIGNED(c->logits, MAX_PARTS * count));
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
    c->table = pl_params_data(network->params, network->table);
    c->bias = pl_params_data(network->params, network->bias);
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
    if (!opts->forward) {
        row += (MAX_PARTS + 1) * (int64_t)sizeof(float);
        entry = 3 * (int64_t)sizeof(uint64_t) + 5 * (int64_t)sizeof(float);
    }
    *out = (pl_compute_size) { .bytes = opts->batch *
                                        (row + USUAL_ENTRIES * entry) };
    return PL_OK;
}

static pl_status make_room(sparse *c, int64_t entries, bool values)
{
    if (entries <= c->room && (!values || c->value != NULL))
        return PL_OK;
    int64_t room = entries > c->room ? entries + entries / 4 : c->room;
    size_t count = (size_t)room + 1;
    free_entries(c);
    PL_TRY(PL_NEW_ALIGNED(c->lists[0], count));
    PL_TRY(PL_NEW_ALIGNED(c->lists[1], count));
    PL_TRY(PL_NEW_ALIGNED(c->ids, count));
    PL_TRY(PL_NEW_ALIGNED(c->first, count));
    PL_TRY(PL_NEW_ALIGNED(c->weights, count));
    PL_TRY(PL_NEW_ALIGNED(c->grad, count));
    if (values) {
        PL_TRY(PL_NEW_ALIGNED(c->row_of, count));
        PL_TRY(PL_NEW_ALIGNED(c->value, count));
    }
    c->room = room;
    return PL_OK;
}

/* The first key whose entries begin at `entry` or later. */
static int64_t key_from(const sparse *c, int64_t entry)
{
    int64_t low = 0, high = c->keys.count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if ((int64_t)c->first[middle] < entry)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void cut_parts(sparse *c)
{
    int64_t count = c->entries.count;
    int64_t parts = count / PART_ENTRIES;
    parts = parts < 1 ? 1 : parts > MAX_PARTS ? MAX_PARTS : parts;
    c->parts = (int)parts;
    for (int64_t p = 0; p < parts; p++)
        c->part_key[p] = key_from(c, count * p / parts);
    c->part_key[parts] = c->keys.count;
}

/* A test reads the table row by row; ids are checked all the same. */
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
    if (c->opts.forward)
        return check_ids(c);
    int64_t count = pl_rows_entries(&c->rows);
    if (count > UINT32_MAX)
        return PL_FAIL(PL_UNSUPPORTED,
                       "a batch has %lld non-zeros; at most 2^32 - 1",
                       (long long)count);
    PL_TRY(make_room(c, count, batch->values != NULL));
    c->entries = (pl_entries) { .list = c->lists[0] };
    if (batch->values != NULL) {
        c->entries.row_of = c->row_of;
        c->entries.value = c->value;
    }
    uint64_t largest;
    pl_sparse_pack(&c->rows, c->table, &c->entries, &largest);
    if (count > 0 && largest >= (uint64_t)c->features)
        return pl_compute_beyond(largest, c->features);
    c->entries.list =
        pl_sparse_sort(count, c->id_bits, c->lists[0], c->lists[1]);
    c->keys.ids = c->ids;
    c->keys.count = pl_sparse_keys(count, c->entries.list, c->ids, c->first);
    cut_parts(c);
    return PL_OK;
}

static void forward_part(void *arg, int part, int thread)
{
    (void)thread;
    sparse *c = arg;
    int64_t key = c->part_key[part], count = c->part_key[part + 1] - key;
    float *logits = c->logits + part * c->row_room;
    c->opts.kernels->fill(c->rows.count, part == 0 ? *c->bias : 0.0f, logits);
    pl_sparse_gather(count, c->ids + key, c->table, c->weights + key);
    pl_sparse_forward(count, c->first + key, &c->entries, c->weights + key,
                      logits);
}

static void backward_part(void *arg, int part, int thread)
{
    (void)thread;
    sparse *c = arg;
    int64_t key = c->part_key[part], count = c->part_key[part + 1] - key;
    pl_sparse_backward(count, c->first + key, &c->entries, c->diff,
                       c->grad + key);
}

static double sparse_gradient(pl_compute *base, const pl_batch *batch,
                              int64_t step, int64_t part, pl_sync *apply)
{
    (void)step, (void)part;
    sparse *c = (sparse *)base;
    const pl_kernels *kernels = c->opts.kernels;
    const float *terms[MAX_PARTS];
    int64_t rows = batch->rows;
    PL_ASSERT(apply == NULL && !c->opts.forward && rows == c->rows.count);
    pl_pool_run(c->opts.pool, c->parts, forward_part, c);
    for (int p = 0; p < c->parts; p++)
        terms[p] = c->logits + p * c->row_room;
    if (c->parts > 1)
        kernels->sum_parts(rows, c->parts, terms, c->logits);
    kernels->sigmoid(rows, c->logits, c->probs);
    float scale = 1.0f / (float)rows, sum = 0;
    for (int64_t r = 0; r < rows; r++) {
        float label = pl_view_label(&batch->labels, r) != 0 ? 1.0f : 0.0f;
        c->diff[r] = (c->probs[r] - label) * scale;
        sum += c->diff[r];
    }
    c->bias_grad = sum;
    pl_pool_run(c->opts.pool, c->parts, backward_part, c);
    return pl_sparse_loss(rows, c->probs, &batch->labels) / (double)rows;
}

static const float *sparse_grad(const pl_compute *base, int param,
                                const pl_keys **keys)
{
    const sparse *c = (const sparse *)base;
    bool table = param == c->opts.network->table;
    *keys = table ? &c->keys : NULL;
    return table ? c->grad : &c->bias_grad;
}

static void score_part(void *arg, int part, int thread)
{
    (void)thread;
    sparse *c = arg;
    int64_t rows = c->rows.count;
    int64_t first = rows * part / c->parts, last = rows * (part + 1) / c->parts;
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
    .score = sparse_score,
    .probs = sparse_probs,
};
