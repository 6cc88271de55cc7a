/* tfrecord.c - reads sparse examples from TFRecord files of tf.train.Example:
 * frames by their checksums, then label, index and value lists by their feature
 * names. */
#include "data/sparse/formats/tfrecord.h"

#include "base/bytes.h"
#include "data/sparse/formats/format.h"
#include "proto/tf_example.h"
#include "proto/tfrecord.h"

#include <string.h>

typedef struct record {
    uint64_t offset; /* of the frame in the file */
    const uint8_t *data;
    uint64_t bytes;
} record;

/* The frame at `offset` of the file, with `left` bytes at `at`; checks that its
 * length is right and its record within them.  The head is copied, so that the
 * checked bytes are the ones used. */
static pl_status read_frame(const pl_sparse_file *file, uint64_t offset,
                            const uint8_t *at, uint64_t left, record *out)
{
    uint8_t head[PL_TFRECORD_HEAD];
    if (left < PL_TFRECORD_HEAD + PL_TFRECORD_TAIL)
        return PL_FAIL(PL_FORMAT,
                       "%s: truncated: a record begins at byte %llu, and the "
                       "file ends %llu bytes later",
                       file->path, (unsigned long long)offset,
                       (unsigned long long)left);
    memcpy(head, at, sizeof head);
    uint32_t crc = pl_tfrecord_sum(head, 8), stated = pl_get_u32(head + 8);
    if (crc != stated)
        return PL_FAIL(PL_FORMAT,
                       "%s: record at byte %llu: the checksum of its length is "
                       "0x%08x, expected 0x%08x; not a TFRecord file, or "
                       "damaged",
                       file->path, (unsigned long long)offset, stated, crc);
    uint64_t bytes = pl_get_u64(head);
    if (bytes > left - PL_TFRECORD_HEAD - PL_TFRECORD_TAIL)
        return PL_FAIL(PL_FORMAT,
                       "%s: truncated: the record at byte %llu has %llu bytes, "
                       "and the file ends %llu bytes later",
                       file->path, (unsigned long long)offset,
                       (unsigned long long)bytes, (unsigned long long)left);
    *out = (record) { offset, at + PL_TFRECORD_HEAD, bytes };
    return PL_OK;
}

static uint64_t frame_end(const record *r)
{
    return r->offset + PL_TFRECORD_HEAD + r->bytes + PL_TFRECORD_TAIL;
}

static bool plain(const uint8_t *data, size_t bytes)
{
    return bytes >= PL_TFRECORD_HEAD &&
           pl_tfrecord_sum(data, 8) == pl_get_u32(data + 8);
}

/* After a broken length no record can be found: the rest is one bad example. */
static pl_status split(pl_sparse_blocks *blocks, const pl_decode *decode,
                       int32_t index, uint64_t target)
{
    const pl_sparse_file *file = decode->file;
    pl_sparse_block block = { .file = index };
    for (uint64_t at = 0; at < file->bytes;) {
        record r;
        pl_status status =
            read_frame(file, at, file->data + at, file->bytes - at, &r);
        if (status != PL_OK && decode->allowed == 0)
            return status;
        at = status == PL_OK ? frame_end(&r) : file->bytes;
        block.rows++;
        block.bytes = at - block.offset;
        if (block.bytes >= target || at == file->bytes) {
            PL_TRY(pl_sparse_blocks_add(blocks, block));
            block = (pl_sparse_block) { .file = index, .offset = at };
        }
    }
    return PL_OK;
}

enum {
    LABEL,
    INDEX,
    VALUE,
    LISTS
};

static pl_tf_list list_of(const char *given, const char *usual)
{
    const char *name = given != NULL ? given : usual;
    return (pl_tf_list) { .name = name, .name_bytes = strlen(name) };
}

static pl_status wrong_list(const pl_tf_list *list, const char *expected)
{
    static const char *const kinds[] = { "missing", "empty", "a list of bytes",
                                         "a list of floats",
                                         "a list of integers" };
    return PL_FAIL(PL_FORMAT, "feature '%s' is %s, expected %s", list->name,
                   kinds[list->kind], expected);
}

static pl_status read_label(pl_decode *decode, const pl_tf_list *list,
                            pl_sparse_rows *rows)
{
    int64_t ints[16];
    float floats[16], label = -2;
    size_t count = 0;
    bool small = list->bytes <= 16;
    if (list->kind == PL_TF_INTS && small) {
        PL_TRY(pl_tf_list_ints(list, ints, &count));
        if (count == 1 && ints[0] >= -1 && ints[0] <= 1)
            label = (float)ints[0];
    } else if (list->kind == PL_TF_FLOATS && small) {
        PL_TRY(pl_tf_list_floats(list, floats, &count));
        label = count == 1 ? floats[0] : label;
    } else if (list->kind != PL_TF_INTS && list->kind != PL_TF_FLOATS) {
        return wrong_list(list, "a number (--label-feature names it)");
    }
    if (label != 0 && label != 1 && label != -1)
        return PL_FAIL(PL_FORMAT,
                       "feature '%s' is not one number that is 0 or 1, or -1 "
                       "or 1",
                       list->name);
    unsigned kind = label == 1   ? 0
                    : label == 0 ? PL_LABEL_ZERO
                                 : PL_LABEL_MINUS;
    kind |= decode->labels;
    if (kind == (PL_LABEL_ZERO | PL_LABEL_MINUS))
        return PL_FAIL(PL_FORMAT,
                       "label %g, expected either 0 and 1 or -1 and "
                       "1 in one set",
                       (double)label);
    decode->labels = kind;
    rows->labels[rows->count] = label == 1;
    return PL_OK;
}

static pl_status read_ids(pl_decode *decode, const pl_tf_list *list,
                          uint64_t *ids, size_t *count)
{
    *count = 0;
    if (list->kind == PL_TF_EMPTY)
        return PL_OK;
    if (list->kind != PL_TF_INTS)
        return wrong_list(list,
                          "a list of integers (--index-feature names it)");
    PL_TRY(pl_tf_list_ints(list, (int64_t *)ids, count));
    uint64_t most = 0;
    for (size_t i = 0; i < *count; i++)
        most = ids[i] > most ? ids[i] : most;
    if (*count > 0 && most >= decode->bound)
        return PL_FAIL(PL_FORMAT, "id %lld, expected 0 to %llu",
                       (long long)most, (unsigned long long)decode->bound - 1);
    decode->largest = most > decode->largest ? most : decode->largest;
    return PL_OK;
}

/* `count` values from `used` on; without the feature all are 1, and the array
 * is filled only once there are others. */
static pl_status read_values(const pl_tf_list *list, pl_sparse_rows *rows,
                             int64_t used, size_t count)
{
    size_t found = 0;
    float *values = rows->values + used;
    if (list->kind == PL_TF_NONE || list->kind == PL_TF_EMPTY) {
        if (rows->weighted)
            pl_sparse_rows_fill(values, (int64_t)count);
        return PL_OK;
    }
    if (list->kind != PL_TF_FLOATS)
        return wrong_list(list, "a list of floats");
    PL_TRY(pl_tf_list_floats(list, values, &found));
    if (found != count)
        return PL_FAIL(PL_FORMAT, "%zu values for %zu ids", found, count);
    bool weighted = false;
    for (size_t i = 0; i < count; i++) {
        if (!__builtin_isfinite(values[i]))
            return PL_FAIL(PL_FORMAT, "value %zu is not finite", i);
        weighted = weighted || values[i] != 1;
    }
    if (weighted && !rows->weighted) {
        pl_sparse_rows_fill(rows->values, used);
        rows->weighted = true;
    }
    return PL_OK;
}

/* Append one record as a row; room was reserved. */
static pl_status read_record(pl_decode *decode, const record *r,
                             pl_tf_list lists[LISTS], pl_sparse_rows *rows)
{
    uint32_t crc = pl_tfrecord_sum(r->data, r->bytes);
    uint32_t stated = pl_get_u32(r->data + r->bytes);
    int64_t used = pl_sparse_rows_ids(rows);
    size_t count;
    if (crc != stated)
        return PL_FAIL(PL_FORMAT, "checksum 0x%08x, expected 0x%08x", stated,
                       crc);
    PL_TRY(pl_tf_example_find(r->data, r->bytes, lists, LISTS));
    PL_TRY(read_label(decode, &lists[LABEL], rows));
    PL_TRY(read_ids(decode, &lists[INDEX], rows->ids + used, &count));
    PL_TRY(read_values(&lists[VALUE], rows, used, count));
    rows->count++;
    rows->start[rows->count] = used + (int64_t)count;
    return PL_OK;
}

static pl_status decode(pl_decode *decode, pl_sparse_rows *rows)
{
    const pl_sparse_block *block = decode->block;
    const pl_source_opts *opts = decode->opts;
    pl_tf_list lists[LISTS] = {
        [LABEL] = list_of(opts->label_feature, PL_TFRECORD_LABEL),
        [INDEX] = list_of(opts->index_feature, PL_TFRECORD_INDEX),
        [VALUE] = list_of(opts->value_feature, PL_TFRECORD_VALUE),
    };
    /* An id takes at least one byte, a value four. */
    int64_t before = rows->count;
    PL_TRY(pl_sparse_rows_reserve(rows, before + block->rows + 1,
                                  pl_sparse_rows_ids(rows) +
                                      (int64_t)block->bytes));
    uint64_t end = block->offset + block->bytes;
    for (uint64_t at = block->offset; at < end;) {
        record r;
        pl_status status =
            read_frame(decode->file, at, decode->data + (at - block->offset),
                       end - at, &r);
        if (status != PL_OK)
            return pl_decode_pass(decode, status); /* as counted by split */
        status = read_record(decode, &r, lists, rows);
        if (status != PL_OK) {
            status = pl_context(status, "%s: record at byte %llu",
                                decode->file->path, (unsigned long long)at);
            PL_TRY(pl_decode_pass(decode, status));
        }
        PL_TRY(pl_decode_check_rows(decode, rows->count - before));
        at = frame_end(&r);
    }
    return PL_OK;
}

const pl_sparse_format pl_tfrecord_format = {
    .name = "tfrecord",
    .plain = plain,
    .split = split,
    .decode = decode,
    .writer = &pl_tfrecord_writer,
};
