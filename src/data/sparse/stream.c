/* Assembles the batches of a set that is not in memory from the windows of the
 * epoch's plan that hold their positions; one window is always decoded ahead. A
 * position only stores the place of the next batch. */
#include "data/sparse/stream.h"

#include "base/assert.h"
#include "base/hash/crc32c.h"
#include "base/mem.h"
#include "data/sparse/loader.h"

#include <stdio.h>
#include <string.h>

#define POSITION_VERSION 2
#define SETTINGS_BYTES   40
#define POSITION_USED    64

typedef struct place {
    int64_t epoch, step;
    int32_t micro;
} place;

typedef struct stream_reader {
    pl_reader base;
    pl_reader_opts opts;
    pl_sparse_set *set;
    pl_stream_share share;
    pl_stream_plan plan;  /* of at.epoch */
    pl_loader *loader;    /* NULL before the first batch */
    int64_t used;         /* positions of an epoch that are used */
    place at;             /* of the next batch */
    pl_sparse_rows batch; /* the last one, when it was assembled */
} stream_reader;

static pl_loader_key following(const stream_reader *reader, int64_t window)
{
    const pl_stream_plan *plan = &reader->plan;
    if (window + 1 < plan->count &&
        plan->windows[window + 1].first < reader->used)
        return (pl_loader_key) { plan->epoch, window + 1 };
    return (pl_loader_key) { reader->opts.one_pass ? -1 : plan->epoch + 1, 0 };
}

static pl_batch batch_of(const pl_sparse_rows *rows, int64_t first,
                         int64_t count)
{
    return (pl_batch) {
        .rows = count,
        .labels = { .data = rows->labels + first,
                    .stride = 1,
                    .dtype = PL_INT32,
                    .scale = 1.0f },
        .row_start = rows->start + first,
        .ids = rows->ids,
        .values = rows->weighted ? rows->values : NULL,
    };
}

/* A run of rows in a window. */
typedef struct piece {
    const pl_sparse_rows *rows;
    int64_t first, count;
    int64_t positions; /* covered; more than count when some are bad */
} piece;

/* The rows at a position, at most `most`. */
static pl_status find_piece(stream_reader *reader, int64_t position,
                            int64_t most, piece *out)
{
    int64_t number = pl_stream_plan_find(&reader->plan, position);
    const pl_stream_window *window = &reader->plan.windows[number];
    const pl_sparse_rows *rows;
    PL_TRY(pl_loader_take(reader->loader,
                          (pl_loader_key) { reader->plan.epoch, number },
                          following(reader, number), &rows));
    int64_t at = position - window->first, left = window->rows - at;
    most = most < left ? most : left;
    *out = (piece) { rows, at, most, most };
    if (at + most <= rows->count)
        return PL_OK;
    if (at < rows->count) {
        out->count = out->positions = rows->count - at;
    } else if (reader->opts.one_pass) {
        out->count = 0;
    } else if (rows->count == 0) {
        return PL_FAIL(PL_FORMAT, "%lld malformed examples in a row",
                       (long long)window->rows);
    } else { /* reuse the first ones */
        out->first = (at - rows->count) % rows->count;
        int64_t there = rows->count - out->first;
        out->count = out->positions = most < there ? most : there;
    }
    return PL_OK;
}

static pl_status read_range(stream_reader *reader, int64_t position,
                            int64_t count, pl_batch *out)
{
    piece part;
    pl_sparse_rows *batch = &reader->batch;
    PL_TRY(find_piece(reader, position, count, &part));
    if (part.count == count) {
        *out = batch_of(part.rows, part.first, count);
        return PL_OK;
    }
    pl_sparse_rows_clear(batch);
    for (;;) {
        PL_TRY(pl_sparse_rows_append(batch, part.rows, part.first, part.count));
        position += part.positions;
        count -= part.positions;
        if (count == 0)
            break;
        PL_TRY(find_piece(reader, position, count, &part));
    }
    if (batch->count > 0)
        *out = batch_of(batch, 0, batch->count);
    return PL_OK;
}

static pl_status prepare(stream_reader *reader)
{
    if (reader->loader == NULL)
        PL_TRY(pl_loader_new(&reader->loader, reader->set, &reader->share,
                             &reader->opts));
    pl_stream_plan_make(&reader->plan, &reader->share, reader->set,
                        &reader->opts, reader->at.epoch);
    return PL_OK;
}

static pl_status next_shuffled(pl_reader *base, pl_batch *out)
{
    stream_reader *reader = (stream_reader *)base;
    const pl_reader_opts *opts = &reader->opts;
    place *at = &reader->at;
    PL_TRY(prepare(reader));
    int64_t number = at->step * opts->micro_batches + at->micro;
    int64_t left = reader->used - number * opts->batch;
    PL_TRY(read_range(reader, number * opts->batch,
                      left < opts->batch ? left : opts->batch, out));
    if (++at->micro < opts->micro_batches)
        return PL_OK;
    at->micro = 0;
    if (++at->step == base->steps_per_epoch)
        *at = (place) { .epoch = at->epoch + 1 };
    return PL_OK;
}

static pl_status next_in_order(pl_reader *base, pl_batch *out)
{
    stream_reader *reader = (stream_reader *)base;
    *out = (pl_batch) { .rows = 0 };
    PL_TRY(prepare(reader));
    while (out->rows == 0 && reader->at.step < base->steps_per_epoch) {
        int64_t first = reader->at.step++ * reader->opts.batch;
        int64_t left = reader->used - first;
        PL_TRY(read_range(reader, first,
                          left < reader->opts.batch ? left : reader->opts.batch,
                          out));
    }
    return PL_OK;
}

static void put(pl_position *out, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        out->bytes[out->used++] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t *bytes, unsigned count)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

/* Of everything the order depends on besides the plain settings. */
static uint32_t fingerprint(const stream_reader *reader)
{
    int64_t parts[] = { reader->set->opts.shuffle_buffer,
                        reader->set->blocks.count, reader->share.rows };
    return pl_crc32c(0, parts, sizeof parts);
}

static void put_settings(const stream_reader *reader, pl_position *out)
{
    put(out, POSITION_VERSION, 4);
    put(out, reader->opts.one_pass ? 1 : 2 * reader->opts.keep_rest, 4);
    put(out, (uint64_t)reader->set->base.count, 8);
    put(out, reader->opts.seed, 8);
    put(out, (uint64_t)reader->opts.batch, 8);
    put(out, (uint64_t)reader->opts.micro_batches, 4);
    put(out, (uint64_t)reader->opts.workers, 4);
    PL_ASSERT(out->used == SETTINGS_BYTES);
}

static void save(const pl_reader *base, pl_position *out)
{
    const stream_reader *reader = (const stream_reader *)base;
    *out = (pl_position) { .used = 0 };
    put_settings(reader, out);
    put(out, (uint64_t)reader->at.epoch, 8);
    put(out, (uint64_t)reader->at.step, 8);
    put(out, (uint64_t)reader->at.micro, 4);
    put(out, fingerprint(reader), 4);
    PL_ASSERT(out->used == POSITION_USED);
}

static pl_status restore(pl_reader *base, const pl_position *position)
{
    stream_reader *reader = (stream_reader *)base;
    pl_position here = { .used = 0 };
    put_settings(reader, &here);
    if (position->used < 4 || (position->used == POSITION_USED &&
                               get(position->bytes, 4) > POSITION_VERSION))
        return PL_FAIL(PL_FORMAT, "a data position of %u bytes, expected %d",
                       position->used, POSITION_USED);
    const uint8_t *bytes = position->bytes + SETTINGS_BYTES;
    if (position->used != POSITION_USED ||
        memcmp(here.bytes, position->bytes, here.used) != 0 ||
        get(bytes + 20, 4) != fingerprint(reader))
        return PL_FAIL(PL_UNSUPPORTED,
                       "data position of another order: examples, seed, batch, "
                       "micro-batches, workers or shuffle buffer differ");
    uint64_t epoch = get(bytes, 8), step = get(bytes + 8, 8);
    uint64_t micro = get(bytes + 16, 4);
    bool one_pass = reader->opts.one_pass; /* its end is a place, too */
    if (epoch > (one_pass ? 0 : (uint64_t)INT64_MAX - 1) ||
        step >= (uint64_t)base->steps_per_epoch + (one_pass ? 1 : 0) ||
        micro >= (uint64_t)reader->opts.micro_batches)
        return PL_FAIL(PL_FORMAT,
                       "data position at epoch %llu, step %llu, micro-batch "
                       "%llu; an epoch has %lld steps of %d micro-batches",
                       (unsigned long long)epoch, (unsigned long long)step,
                       (unsigned long long)micro,
                       (long long)base->steps_per_epoch,
                       reader->opts.micro_batches);
    reader->at = (place) { (int64_t)epoch, (int64_t)step, (int32_t)micro };
    return PL_OK;
}

static void go(pl_reader *base, int64_t step)
{
    PL_ASSERT(step >= 0);
    ((stream_reader *)base)->at = (place) {
        .epoch = step / base->steps_per_epoch,
        .step = step % base->steps_per_epoch,
    };
}

static void describe(const pl_reader *base, char text[PL_READS_TEXT])
{
    const stream_reader *reader = (const stream_reader *)base;
    const pl_sparse_set *set = reader->set;
    snprintf(text, PL_READS_TEXT,
             "%lld of %lld blocks in %d %s: %lld of %lld examples",
             (long long)reader->share.count, (long long)set->blocks.count,
             set->file_count, set->file_count == 1 ? "file" : "files",
             (long long)reader->share.rows, (long long)set->base.count);
}

static void release(pl_reader *base)
{
    stream_reader *reader = (stream_reader *)base;
    pl_loader_free(reader->loader);
    pl_stream_plan_close(&reader->plan);
    pl_stream_share_close(&reader->share);
    pl_sparse_rows_close(&reader->batch);
    pl_mem_free(reader);
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

static pl_status count_steps(stream_reader *reader)
{
    const pl_reader_opts *opts = &reader->opts;
    int64_t least = reader->share.least, steps;
    if (opts->one_pass || opts->keep_rest) {
        steps = least / opts->batch + (least % opts->batch != 0);
        reader->used = least;
    } else {
        steps = least / opts->batch / opts->micro_batches;
        reader->used = steps * opts->micro_batches * opts->batch;
    }
    if (steps == 0)
        return pl_reader_too_few(&reader->set->base, opts, least);
    reader->base.steps_per_epoch = steps;
    reader->base.left_out =
        reader->set->base.count - opts->workers * reader->used;
    return PL_OK;
}

pl_status pl_stream_reader_new(pl_reader **out, pl_sparse_set *set,
                               const pl_reader_opts *opts)
{
    pl_status status;
    stream_reader *reader;
    PL_TRY(PL_NEW(reader, 1));
    reader->base.ops = opts->one_pass ? &in_order_ops : &shuffled_ops;
    reader->opts = *opts;
    reader->set = set;
    PL_TRY_OUT(status, pl_stream_share_init(&reader->share, set, opts));
    PL_TRY_OUT(status, pl_stream_plan_init(&reader->plan, &reader->share));
    PL_TRY_OUT(status, count_steps(reader));
    *out = &reader->base;
    return PL_OK;
out:
    release(&reader->base);
    return status;
}
