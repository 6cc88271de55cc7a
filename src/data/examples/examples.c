/* examples.c - reads dense examples from TFRecord files: frames are located
 * sequentially, then decoded by all threads in blocks.
 *
 * The first example determines the type, number of values and shape of all.  A
 * record is copied before it is parsed, since a mapped file may change. */
#include "data/examples/examples.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/thread.h"
#include "data/dense/set.h"
#include "data/examples/record.h"
#include "data/images/image_set.h"
#include "data/pack/unpack.h"
#include "data/sparse/formats/tfrecord.h"
#include "proto/tfrecord.h"
#include "tensor/shape.h"

#include <glob.h>
#include <string.h>

#define BLOCK 256

typedef struct record {
    int32_t file;
    uint64_t offset, bytes; /* of the message in the file */
} record;

typedef struct loader {
    const pl_source_opts *opts;
    pl_sparse_file *files;
    int32_t file_count;
    record *records;
    size_t count, room;
    /* The form of all examples. */
    bool floats, images, labelled;
    pl_image_form form; /* of images */
    pl_shape shape;
    size_t row; /* values of an example */
    uint8_t *data;
    int32_t *labels;
    pl_pool *pool;
    pl_mutex lock;
    size_t first;  /* record of the first item of a run */
    size_t failed; /* the first record that failed, and why; lock */
    pl_error why;
} loader;

static pl_status find_records(loader *l, int32_t index)
{
    const pl_sparse_file *file = &l->files[index];
    uint64_t at = 0;
    while (at < file->bytes) {
        uint8_t head[PL_TFRECORD_HEAD];
        uint64_t left = file->bytes - at;
        if (left < PL_TFRECORD_HEAD + PL_TFRECORD_TAIL)
            return PL_FAIL(PL_FORMAT,
                           "%s: truncated: %llu bytes at byte %llu are not a "
                           "record",
                           file->path, (unsigned long long)left,
                           (unsigned long long)at);
        memcpy(head, file->data + at, sizeof head);
        uint64_t bytes = pl_get_u64(head);
        if (pl_get_u32(head + 8) != pl_tfrecord_sum(head, 8))
            return PL_FAIL(PL_FORMAT,
                           "%s: no record at byte %llu: the checksum of its "
                           "length does not match",
                           file->path, (unsigned long long)at);
        left -= PL_TFRECORD_HEAD + PL_TFRECORD_TAIL;
        if (bytes > left)
            return PL_FAIL(PL_FORMAT,
                           "%s: truncated: the record at byte %llu has %llu "
                           "bytes, of which the file has %llu",
                           file->path, (unsigned long long)at,
                           (unsigned long long)bytes, (unsigned long long)left);
        PL_TRY(PL_GROW(l->records, l->count, l->room));
        l->records[l->count++] =
            (record) { index, at + PL_TFRECORD_HEAD, bytes };
        at += PL_TFRECORD_HEAD + bytes + PL_TFRECORD_TAIL;
    }
    return PL_OK;
}

/* A copy of a record whose checksum is right (pl_mem_free). */
static pl_status copy_record(const loader *l, const record *r, uint8_t **out)
{
    const pl_sparse_file *file = &l->files[r->file];
    uint8_t *copy, tail[PL_TFRECORD_TAIL];
    PL_TRY(PL_NEW(copy, (size_t)r->bytes + 1));
    memcpy(copy, file->data + r->offset, (size_t)r->bytes);
    memcpy(tail, file->data + r->offset + r->bytes, sizeof tail);
    if (pl_get_u32(tail) == pl_tfrecord_sum(copy, (size_t)r->bytes)) {
        *out = copy;
        return PL_OK;
    }
    pl_mem_free(copy);
    return PL_FAIL(PL_FORMAT, "its checksum does not match");
}

static pl_status in_record(const loader *l, const record *r, pl_status status)
{
    return pl_context(status, "%s: record at byte %llu", l->files[r->file].path,
                      (unsigned long long)(r->offset - PL_TFRECORD_HEAD));
}

/* The shape that the example states; otherwise its values form one
 * dimension. */
static void find_shape(loader *l, const pl_example_parts *parts)
{
    int64_t h = parts->height, w = parts->width;
    int64_t d = parts->depth > 0 ? parts->depth : 1;
    int64_t row = (int64_t)l->row;
    l->shape = PL_SHAPE(row);
    if (h < 1 || w < 1 || w > row / h || d > row / (h * w) || h * w * d != row)
        return;
    l->shape = d == 1 ? PL_SHAPE(h, w) : PL_SHAPE(h, w, d);
}

static pl_status learn_form(loader *l, const pl_example_parts *parts)
{
    l->labelled = parts->labelled;
    l->floats = parts->floats;
    l->images = !parts->floats && pl_image_is(parts->data, parts->bytes);
    if (l->images) {
        PL_TRY(pl_image_form_init(&l->form, l->opts));
        PL_TRY(pl_image_form_measure(&l->form, parts->data, parts->bytes));
        l->shape = pl_image_form_shape(&l->form);
        l->row = (size_t)pl_shape_row(l->shape);
        return PL_OK;
    }
    l->row = parts->bytes;
    if (parts->floats)
        PL_TRY(pl_example_float_count(parts, &l->row));
    if (l->row == 0)
        return PL_FAIL(PL_FORMAT, "feature \"%s\" is empty", parts->name);
    find_shape(l, parts);
    return PL_OK;
}

static pl_status learn(loader *l)
{
    uint8_t *copy = NULL;
    pl_example_parts parts;
    const record *first = &l->records[0];
    pl_status status = copy_record(l, first, &copy);
    if (status == PL_OK)
        status =
            pl_example_parts_find(&parts, copy, (size_t)first->bytes, l->opts);
    if (status == PL_OK)
        status = learn_form(l, &parts);
    pl_mem_free(copy);
    return status == PL_OK ? PL_OK : in_record(l, first, status);
}

static pl_status take_label(loader *l, size_t index,
                            const pl_example_parts *parts)
{
    if (!l->labelled)
        return PL_OK;
    if (!parts->labelled || parts->label < 0 || parts->label >= INT32_MAX)
        return PL_FAIL(PL_FORMAT, "label %lld, expected 0 or more",
                       (long long)(parts->labelled ? parts->label : -1));
    l->labels[index] = (int32_t)parts->label;
    return PL_OK;
}

static pl_status take_values(loader *l, size_t index,
                             const pl_example_parts *parts)
{
    if (l->floats != parts->floats)
        return PL_FAIL(PL_FORMAT,
                       "feature \"%s\" has %s, that of the first "
                       "example has %s",
                       parts->name, parts->floats ? "floats" : "bytes",
                       l->floats ? "floats" : "bytes");
    if (l->floats)
        return pl_example_floats(
            parts, (float *)(void *)l->data + index * l->row, l->row);
    uint8_t *to = l->data + index * l->row;
    if (l->images)
        return pl_image_form_decode(&l->form, parts->data, parts->bytes, to);
    if (parts->bytes != l->row)
        return PL_FAIL(PL_FORMAT,
                       "feature \"%s\" has %zu bytes, the first "
                       "example has %zu",
                       parts->name, parts->bytes, l->row);
    memcpy(to, parts->data, l->row);
    return PL_OK;
}

static pl_status decode(loader *l, size_t index)
{
    const record *r = &l->records[index];
    pl_example_parts parts;
    uint8_t *copy = NULL;
    pl_status status = copy_record(l, r, &copy);
    if (status == PL_OK)
        status = pl_example_parts_find(&parts, copy, (size_t)r->bytes, l->opts);
    if (status == PL_OK)
        status = take_values(l, index, &parts);
    if (status == PL_OK)
        status = take_label(l, index, &parts);
    pl_mem_free(copy);
    return status == PL_OK ? PL_OK : in_record(l, r, status);
}

static void decode_block(void *arg, int item, int thread)
{
    (void)thread;
    loader *l = arg;
    size_t from = l->first + (size_t)item * BLOCK;
    for (size_t i = from; i < from + BLOCK && i < l->count; i++) {
        pl_status status = decode(l, i);
        if (status == PL_OK)
            continue;
        pl_mutex_lock(&l->lock);
        if (i < l->failed) {
            l->failed = i;
            pl_error_save(&l->why, status);
        }
        pl_mutex_unlock(&l->lock);
        return;
    }
}

static pl_status decode_all(loader *l)
{
    size_t run = (size_t)BLOCK * 65535;
    l->failed = SIZE_MAX;
    for (l->first = 0; l->first < l->count; l->first += run) {
        size_t left = l->count - l->first;
        left = left < run ? left : run;
        pl_pool_run(l->pool, (int)((left + BLOCK - 1) / BLOCK), decode_block,
                    l);
    }
    return l->failed == SIZE_MAX ? PL_OK : pl_error_raise(&l->why);
}

static pl_status load(loader *l)
{
    for (int32_t i = 0; i < l->file_count; i++)
        PL_TRY(find_records(l, i));
    if (l->count == 0)
        return PL_FAIL(PL_FORMAT, "%s holds no records", l->files[0].path);
    PL_TRY(learn(l));
    size_t bytes = l->row * (l->floats ? sizeof(float) : 1);
    if (bytes > (size_t)PL_SHAPE_ELEMENTS / l->count)
        return PL_FAIL(PL_UNSUPPORTED, "%zu examples of %zu bytes are too many",
                       l->count, bytes);
    PL_TRY(PL_NEW_ALIGNED(l->data, bytes * l->count));
    if (l->labelled)
        PL_TRY(PL_NEW(l->labels, l->count));
    PL_TRY(pl_pool_new(&l->pool, l->opts->threads > 0 ? l->opts->threads
                                                      : pl_thread_cores()));
    return decode_all(l);
}

/* A truncated file has unreadable records: report the truncation instead. */
static pl_status load_intact(loader *l)
{
    pl_status status = load(l);
    for (int32_t i = 0; i < l->file_count; i++)
        PL_TRY(pl_map_check(&l->files[i].map));
    return status;
}

static pl_status make_set(pl_dataset **out, loader *l, const char *place)
{
    pl_dense_parts parts = {
        .memory = l->data,
        .data = l->data,
        .dtype = l->floats ? PL_FLOAT32 : PL_UINT8,
        .count = (int64_t)l->count,
        .shape = l->shape,
        .labels = l->labels,
    };
    l->data = NULL;
    l->labels = NULL;
    pl_status status = pl_mem_format(&parts.name, "tfrecord:%s", place);
    if (status == PL_OK && !l->images)
        status = pl_dense_channels_first(&parts, l->opts->channels);
    if (status == PL_OK)
        return pl_dense_set_new(out, &parts);
    pl_dense_parts_close(&parts);
    return status;
}

static pl_status open_files(pl_dataset **out, loader *l, const char *place)
{
    pl_mutex_init(&l->lock);
    pl_status status = load_intact(l);
    if (status == PL_OK)
        status = make_set(out, l, place);
    pl_mutex_close(&l->lock);
    pl_pool_free(l->pool);
    pl_mem_free(l->records);
    pl_mem_free(l->data);
    pl_mem_free(l->labels);
    pl_sparse_files_free(l->files, l->file_count);
    return status;
}

pl_status pl_examples_open(pl_dataset **out, const char *place, pl_split split,
                           const pl_source_opts *opts)
{
    loader l = { .opts = opts };
    if (split == PL_SPLIT_TEST && opts->own_test)
        return pl_dense_no_test(place);
    PL_TRY(pl_sparse_files_new(&l.files, &l.file_count, &pl_tfrecord_format,
                               place, opts));
    return open_files(out, &l, place);
}

pl_status pl_examples_open_memory(pl_dataset **out, const uint8_t *data,
                                  size_t bytes, const pl_source_opts *opts)
{
    loader l = { .opts = opts, .file_count = 1 };
    PL_TRY(pl_sparse_files_new_memory(&l.files, &pl_tfrecord_format, data,
                                      bytes, opts));
    return open_files(out, &l, "memory");
}

/* Is the file not packed, and its first record without ids? */
static bool is_dense(const pl_map *map, const pl_source_opts *opts)
{
    pl_sparse_file file = {
        .path = (char *)"", .map = *map, .data = map->data, .bytes = map->bytes
    };
    loader l = { .opts = opts, .files = &file };
    const char *index =
        opts->index_feature != NULL ? opts->index_feature : PL_TFRECORD_INDEX;
    pl_example_parts parts;
    uint8_t *copy;
    if (map->bytes < PL_TFRECORD_HEAD + PL_TFRECORD_TAIL)
        return false;
    uint64_t bytes = pl_get_u64(map->data);
    if (bytes > map->bytes - PL_TFRECORD_HEAD - PL_TFRECORD_TAIL)
        return false;
    record first = { 0, PL_TFRECORD_HEAD, bytes };
    if (copy_record(&l, &first, &copy) != PL_OK)
        return false;
    bool dense =
        !pl_example_has(copy, (size_t)bytes, index) &&
        pl_example_parts_find(&parts, copy, (size_t)bytes, opts) == PL_OK;
    pl_mem_free(copy);
    return dense;
}

bool pl_examples_are_dense(const char *place, const pl_source_opts *opts)
{
    glob_t found;
    pl_map map;
    bool dense = false;
    if (opts->image_feature != NULL)
        return true;
    const char *path = place;
    bool there = pl_file_exists(place);
    bool pattern = !there && glob(place, 0, NULL, &found) == 0;
    if (pattern && found.gl_pathc > 0)
        path = found.gl_pathv[0];
    if ((there || pattern) && pl_map_init(&map, path) == PL_OK) {
        dense = is_dense(&map, opts);
        pl_map_close(&map);
    }
    if (pattern)
        globfree(&found);
    return dense;
}
