/* Selects the rows of a batch of a set in memory: those at the batch's
 * positions in the permutation of the epoch.  Only the place of the next batch
 * is stored, so a reader can start anywhere. */
#include "data/shuffle.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/rng.h"

#include <stdio.h>
#include <string.h>

#define POSITION_VERSION 1
#define POSITION_USED    60
/* Sparse examples stay together in runs of this many: singly, each would cost
 * one memory access per weight. */
#define RUN 16

/* Kinds of order, as stored in positions. */
#define ORDER_ONE_PASS  1u
#define ORDER_KEEP_REST 2u
#define ORDER_RUNS      4u /* with a moving incomplete run */

/* A place in the order; a one_pass reader counts its batches in `step`. */
typedef struct place {
    int64_t epoch;
    int64_t step;
    int32_t micro;
} place;

typedef struct shuffle_reader {
    pl_reader base;
    pl_reader_opts opts;
    int64_t count;      /* examples in the set */
    pl_batch all;       /* the set as one batch */
    uint64_t key;       /* of this data order; epochs derive theirs */
    uint64_t epoch_key; /* of `at.epoch` */
    int64_t rest_slot;  /* in that epoch: runs before the incomplete one */
    place at;           /* of the next batch */
    uint32_t index[];   /* the rows of the last batch; none in one_pass */
} shuffle_reader;

static void go_to(shuffle_reader *reader, place to)
{
    reader->at = to;
    reader->epoch_key = pl_rng_key(reader->key, (uint64_t)to.epoch);
    uint32_t runs = (uint32_t)(reader->count / RUN);
    reader->rest_slot =
        pl_rng_below(pl_rng_key_text(reader->epoch_key, "rest"), 0, runs + 1);
}

/* The run that a position is in, and where in it.  The incomplete run, number
 * count / RUN, is between two whole ones. */
static int64_t slot_of(const shuffle_reader *reader, int64_t position,
                       int64_t *offset)
{
    int64_t rest = reader->count % RUN, rest_at = reader->rest_slot * RUN;
    bool behind = position >= rest_at + rest;
    if (position >= rest_at && !behind) {
        *offset = position - rest_at;
        return reader->count / RUN;
    }
    position -= behind ? rest : 0;
    *offset = position % RUN;
    return position / RUN;
}

/* The rows of positions first .. first+count-1 where runs of rows stay
 * together. */
static void permute_runs(const shuffle_reader *reader, int64_t first,
                         int64_t count, uint32_t *out)
{
    int64_t runs = reader->count / RUN, end = first + count;
    while (first < end) {
        int64_t offset, slot = slot_of(reader, first, &offset);
        int64_t rows = slot < runs ? RUN : reader->count % RUN;
        uint32_t run = (uint32_t)slot;
        if (slot < runs)
            pl_rng_permute(reader->epoch_key, (uint64_t)runs, (uint64_t)slot, 1,
                           &run);
        for (; offset < rows && first < end; offset++, first++)
            *out++ = (uint32_t)((int64_t)run * RUN + offset);
    }
}

static pl_status next_shuffled(pl_reader *base, pl_batch *out)
{
    shuffle_reader *reader = (shuffle_reader *)base;
    const pl_reader_opts *opts = &reader->opts;
    place at = reader->at;
    int64_t shard = at.step * opts->workers + opts->worker;
    int64_t first = (shard * opts->micro_batches + at.micro) * opts->batch;
    int64_t rows = reader->count - first; /* keep_rest: may be fewer */
    rows = rows < opts->batch ? rows : opts->batch;
    if (reader->all.row_start != NULL)
        permute_runs(reader, first, rows, reader->index);
    else
        pl_rng_permute(reader->epoch_key, (uint64_t)reader->count,
                       (uint64_t)first, (uint32_t)rows, reader->index);
    *out = reader->all;
    out->rows = rows;

    if (++reader->at.micro < opts->micro_batches)
        return PL_OK;
    reader->at.micro = 0;
    if (++reader->at.step == base->steps_per_epoch)
        go_to(reader, (place) { .epoch = at.epoch + 1 });
    return PL_OK;
}

static pl_status next_in_order(pl_reader *base, pl_batch *out)
{
    shuffle_reader *reader = (shuffle_reader *)base;
    *out = (pl_batch) { .rows = 0 };
    if (reader->at.step == base->steps_per_epoch)
        return PL_OK;
    int64_t first = reader->at.step++ * reader->opts.batch;
    int64_t left = reader->count - first;
    *out = reader->all;
    out->rows = left < reader->opts.batch ? left : reader->opts.batch;
    if (out->labels.data != NULL)
        out->labels = pl_view_from(&out->labels, first);
    if (out->weights.data != NULL)
        out->weights = pl_view_from(&out->weights, first);
    if (out->row_start != NULL)
        out->row_start += first;
    else
        out->features = pl_view_from(&out->features, first);
    return PL_OK;
}

static void put(pl_position *out, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        out->bytes[out->used++] = (uint8_t)(value >> (8 * i));
}

static uint32_t kind_of_order(const shuffle_reader *reader)
{
    if (reader->opts.one_pass)
        return ORDER_ONE_PASS;
    bool runs = reader->all.row_start != NULL && reader->count % RUN != 0;
    return (reader->opts.keep_rest ? ORDER_KEEP_REST : 0) |
           (runs ? ORDER_RUNS : 0);
}

/* The settings of a position, which must match; all but its place. */
static void put_settings(const shuffle_reader *reader, pl_position *out)
{
    put(out, POSITION_VERSION, 4);
    put(out, kind_of_order(reader), 4);
    put(out, (uint64_t)reader->count, 8);
    put(out, reader->opts.seed, 8);
    put(out, (uint64_t)reader->opts.batch, 8);
    put(out, (uint64_t)reader->opts.micro_batches, 4);
    put(out, (uint64_t)reader->opts.workers, 4);
}

static void save(const pl_reader *base, pl_position *out)
{
    const shuffle_reader *reader = (const shuffle_reader *)base;
    *out = (pl_position) { .used = 0 };
    put_settings(reader, out);
    put(out, (uint64_t)reader->at.epoch, 8);
    put(out, (uint64_t)reader->at.step, 8);
    put(out, (uint64_t)reader->at.micro, 4);
    PL_ASSERT(out->used == POSITION_USED);
}

static uint64_t get(const uint8_t *bytes, unsigned count)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

static pl_status restore(pl_reader *base, const pl_position *position)
{
    shuffle_reader *reader = (shuffle_reader *)base;
    if (position->used != POSITION_USED)
        return PL_FAIL(PL_FORMAT, "a data position has %u bytes, expected %d",
                       position->used, POSITION_USED);
    uint64_t version = get(position->bytes, 4);
    if (version != POSITION_VERSION)
        return PL_FAIL(PL_FORMAT, "data position of version %llu, expected %d",
                       (unsigned long long)version, POSITION_VERSION);
    pl_position here = { .used = 0 };
    put_settings(reader, &here);
    if (memcmp(here.bytes, position->bytes, here.used) != 0)
        return PL_FAIL(PL_UNSUPPORTED,
                       "data position of another order: examples, seed, batch, "
                       "micro-batches or workers differ");

    const uint8_t *bytes = position->bytes + here.used;
    uint64_t epoch = get(bytes, 8), step = get(bytes + 8, 8);
    uint64_t micro = get(bytes + 16, 4);
    uint64_t steps = (uint64_t)base->steps_per_epoch;
    bool one_pass = reader->opts.one_pass; /* its end is a place, too */
    if (epoch > (one_pass ? 0 : (uint64_t)INT64_MAX - 1) ||
        step >= steps + (one_pass ? 1 : 0) ||
        micro >= (uint64_t)reader->opts.micro_batches)
        return PL_FAIL(PL_FORMAT,
                       "data position at epoch %llu, step %llu, micro-batch "
                       "%llu; an epoch has %llu steps of %d micro-batches",
                       (unsigned long long)epoch, (unsigned long long)step,
                       (unsigned long long)micro, (unsigned long long)steps,
                       reader->opts.micro_batches);
    go_to(reader, (place) { (int64_t)epoch, (int64_t)step, (int32_t)micro });
    return PL_OK;
}

static void go(pl_reader *base, int64_t step)
{
    PL_ASSERT(step >= 0);
    go_to((shuffle_reader *)base, (place) {
                                      .epoch = step / base->steps_per_epoch,
                                      .step = step % base->steps_per_epoch,
                                  });
}

static void release(pl_reader *reader)
{
    pl_mem_free(reader);
}

/* Every worker has the whole set, and takes its batches of one order. */
static void describe(const pl_reader *base, char text[PL_READS_TEXT])
{
    const shuffle_reader *reader = (const shuffle_reader *)base;
    const pl_reader_opts *opts = &reader->opts;
    int64_t used = (reader->count - base->left_out) / opts->workers;
    snprintf(text, PL_READS_TEXT, "%lld of %lld examples an epoch, from memory",
             (long long)used, (long long)reader->count);
}

static const pl_reader_ops shuffled_ops = {
    .next = next_shuffled,
    .position = save,
    .seek = restore,
    .go = go,
    .describe = describe,
    .free = release,
};

static const pl_reader_ops in_order_ops = {
    .next = next_in_order,
    .position = save,
    .seek = restore,
    .go = go,
    .describe = describe,
    .free = release,
};

/* Steps of an epoch; 0 when the set is too small for one. */
static int64_t count_steps(int64_t count, const pl_reader_opts *opts)
{
    if (opts->one_pass || opts->keep_rest)
        return count / opts->batch + (count % opts->batch != 0);
    return count / opts->batch / opts->micro_batches / opts->workers;
}

static int64_t count_left_out(int64_t count, int64_t steps,
                              const pl_reader_opts *opts)
{
    if (opts->one_pass || opts->keep_rest)
        return 0;
    return count - steps * opts->batch * opts->micro_batches * opts->workers;
}

pl_status pl_shuffle_reader_new(pl_reader **out, const pl_dataset *set,
                                const pl_reader_opts *opts)
{
    if (set->count < 1 || set->count > UINT32_MAX)
        return PL_FAIL(PL_UNSUPPORTED,
                       "%lld examples in memory, expected 1 to 2^32 - 1",
                       (long long)set->count);
    int64_t steps = count_steps(set->count, opts);
    if (steps == 0)
        return pl_reader_too_few(set, opts, set->count / opts->workers);

    int64_t most = opts->batch < set->count ? opts->batch : set->count;
    size_t rows = opts->one_pass ? 0 : (size_t)most;
    size_t bytes = sizeof(shuffle_reader) + rows * sizeof(uint32_t);
    shuffle_reader *reader = pl_mem_alloc(1, bytes);
    PL_TRY(pl_mem_check(reader, 1, bytes));
    reader->base.ops = opts->one_pass ? &in_order_ops : &shuffled_ops;
    reader->base.steps_per_epoch = steps;
    reader->base.left_out = count_left_out(set->count, steps, opts);
    reader->opts = *opts;
    reader->count = set->count;
    reader->all = (pl_batch) {
        .features = set->features,
        .labels = set->labels,
        .weights = set->weights,
        .row_start = set->row_start,
        .ids = set->ids,
        .values = set->values,
    };
    if (!opts->one_pass) {
        reader->all.labels.index = reader->index;
        reader->all.weights.index = reader->index;
        reader->all.features.index = reader->index;
        reader->all.row_index = reader->index;
    }
    reader->key = pl_rng_key_text(opts->seed, "data order");
    go_to(reader, (place) { .epoch = 0 });
    *out = &reader->base;
    return PL_OK;
}

int64_t pl_shuffle_reader_epoch(const pl_reader *reader)
{
    return ((const shuffle_reader *)reader)->at.epoch;
}
