/* examples_write.c - writes dense examples as TensorFlow's script for MNIST
 * does: image_raw, or floats as features, with height, width, depth and
 * label. */
#include "base/assert.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/file/file.h"
#include "data/dense/writer.h"
#include "data/pack/pack.h"
#include "proto/tfrecord.h"
#include "tensor/shape.h"

#include <string.h>

typedef struct output {
    pl_file_writer *file;
    pl_packer *packer;                                /* NULL: not packed */
    pl_buffer list, feature, entry, features, record; /* from inside out */
} output;

static void put_number(pl_buffer *out, uint64_t value)
{
    uint8_t bytes[PL_VARINT_MOST];
    pl_buffer_put(out, bytes, pl_put_varint(bytes, value));
}

/* A field with a length. */
static void put_field(pl_buffer *out, unsigned number, const void *data,
                      size_t bytes)
{
    put_number(out, number << 3 | 2);
    put_number(out, bytes);
    pl_buffer_put(out, data, bytes);
}

/* An entry of the map: its list is field `kind` of the feature (1: bytes, 2:
 * floats, 3: integers) and is in o->list. */
static void put_entry(output *o, const char *name, unsigned kind)
{
    pl_buffer_clear(&o->feature);
    pl_buffer_clear(&o->entry);
    put_field(&o->feature, kind, o->list.data, o->list.bytes);
    put_field(&o->entry, 1, name, strlen(name));
    put_field(&o->entry, 2, o->feature.data, o->feature.bytes);
    put_field(&o->features, 1, o->entry.data, o->entry.bytes);
}

static void put_int(output *o, const char *name, int64_t value)
{
    uint8_t bytes[PL_VARINT_MOST];
    size_t used = pl_put_varint(bytes, (uint64_t)value);
    pl_buffer_clear(&o->list);
    put_field(&o->list, 1, bytes, used);
    put_entry(o, name, 3);
}

/* Pixels with their channels last, as TensorFlow has them. */
static void put_bytes(output *o, const pl_dataset *set, int64_t row)
{
    int64_t count = pl_shape_row(set->shape);
    int64_t depth = set->shape.rank == 3 ? set->shape.dim[0] : 1;
    const uint8_t *from = pl_view_row_u8(&set->features, row);
    pl_buffer_clear(&o->list);
    put_number(&o->list, 1 << 3 | 2);
    put_number(&o->list, (uint64_t)count);
    for (int64_t p = 0; p < count / depth; p++)
        for (int64_t c = 0; c < depth; c++)
            pl_buffer_put(&o->list, from + c * (count / depth) + p, 1);
    put_entry(o, "image_raw", 1);
}

static void put_floats(output *o, const pl_dataset *set, int64_t row)
{
    int64_t count = pl_shape_row(set->shape);
    const float *from = pl_view_row_f32(&set->features, row);
    pl_buffer_clear(&o->list);
    put_number(&o->list, 1 << 3 | 2);
    put_number(&o->list, 4 * (uint64_t)count);
    for (int64_t i = 0; i < count; i++) {
        uint8_t bytes[4];
        uint32_t bits;
        memcpy(&bits, &from[i], 4);
        pl_put_u32(bytes, bits);
        pl_buffer_put(&o->list, bytes, 4);
    }
    put_entry(o, "features", 2);
}

static void put_sizes(output *o, pl_shape shape)
{
    if (shape.rank != 2 && shape.rank != 3)
        return;
    put_int(o, "height", shape.dim[shape.rank - 2]);
    put_int(o, "width", shape.dim[shape.rank - 1]);
    put_int(o, "depth", shape.rank == 3 ? shape.dim[0] : 1);
}

static pl_status write_record(output *o, const pl_dataset *set, int64_t row)
{
    bool bytes = set->features.dtype == PL_UINT8;
    pl_buffer_clear(&o->features);
    pl_buffer_clear(&o->record);
    if (bytes)
        put_bytes(o, set, row);
    else
        put_floats(o, set, row);
    if (bytes)
        put_sizes(o, set->shape);
    if (set->labels.data != NULL)
        put_int(o, "label", pl_view_label(&set->labels, row));
    (void)pl_buffer_grow(&o->record, PL_TFRECORD_HEAD);
    put_field(&o->record, 1, o->features.data, o->features.bytes);
    size_t message = o->record.bytes - PL_TFRECORD_HEAD;
    (void)pl_buffer_grow(&o->record, PL_TFRECORD_TAIL);
    pl_buffer *const all[] = { &o->list, &o->feature, &o->entry, &o->features,
                               &o->record };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        PL_TRY(pl_buffer_status(all[i]));
    size_t sealed = pl_tfrecord_seal((uint8_t *)o->record.data, message);
    return o->packer != NULL
               ? pl_packer_put(o->packer, o->record.data, sealed)
               : pl_file_writer_put(o->file, o->record.data, sealed);
}

static pl_status write_all(output *o, const pl_dataset *set)
{
    for (int64_t r = 0; r < set->count; r++)
        PL_TRY(write_record(o, set, r));
    if (o->packer != NULL)
        PL_TRY(pl_packer_finish(o->packer));
    return pl_file_writer_commit(o->file);
}

pl_status pl_examples_write(const pl_dataset *set, const char *place,
                            pl_split split, const pl_encoding *encoding)
{
    (void)split;
    (void)encoding;
    output o = { .file = NULL };
    pl_packing packing = pl_packing_of_name(place);
    PL_ASSERT(!set->sparse);
    pl_status status = pl_file_writer_new_output(&o.file, place);
    if (status == PL_OK && packing != PL_PACKING_NONE)
        status = pl_packer_new(&o.packer, packing, o.file);
    if (status == PL_OK)
        status = write_all(&o, set);
    pl_buffer_close(&o.list);
    pl_buffer_close(&o.feature);
    pl_buffer_close(&o.entry);
    pl_buffer_close(&o.features);
    pl_buffer_close(&o.record);
    pl_packer_free(o.packer);
    pl_file_writer_free(o.file);
    return status;
}
