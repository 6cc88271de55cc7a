/* npy_write.c - writes .npy files, and .npz archives of stored members with
 * the data aligned, so that they are read in place. */
#include "base/assert.h"
#include "base/bytes.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "data/dense/writer.h"
#include "data/npy/npy.h"
#include "tensor/shape.h"

#include <stdio.h>
#include <string.h>

#define ZLIB_CONST /* what zlib reads is const */
#include <zlib.h>

#define BIG     (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#define MEMBERS 2
#define ALIGN   64
#define PIECE   ((size_t)1 << 30)

/* An array to write: head and elements. */
typedef struct part {
    char name[16]; /* "x_train.npy" */
    uint8_t head[PL_NPY_WRITE_MOST];
    size_t head_bytes;
    const void *data;
    size_t bytes;
    uint32_t crc;
    uint64_t local; /* where its local header is */
} part;

static void make_examples(part *p, const pl_dataset *set)
{
    pl_shape shape = PL_SHAPE(set->count);
    bool bytes = set->features.dtype == PL_UINT8;
    for (int d = 0; d < set->shape.rank && shape.rank < PL_MAX_RANK; d++)
        shape.dim[shape.rank++] = set->shape.dim[d];
    p->head_bytes = pl_npy_head(p->head,
                                bytes ? "|u1"
                                : BIG ? ">f4"
                                      : "<f4",
                                shape);
    p->data = set->features.data;
    p->bytes = (size_t)(set->count * pl_shape_row(set->shape) *
                        pl_dtype_bytes(set->features.dtype));
}

/* Numbers as they are: [N], or [N, K]. */
static pl_status make_numbers(part *p, const pl_dataset *set)
{
    size_t width = (size_t)set->classes;
    float *labels;
    PL_TRY(PL_NEW(labels, (size_t)set->count * width));
    for (int64_t i = 0; i < set->count; i++)
        memcpy(labels + (size_t)i * width, pl_view_row_f32(&set->labels, i),
               width * sizeof *labels);
    p->head_bytes =
        pl_npy_head(p->head, BIG ? ">f4" : "<f4",
                    width == 1 ? PL_SHAPE(set->count)
                               : PL_SHAPE(set->count, (int64_t)width));
    p->data = labels;
    p->bytes = (size_t)set->count * width * sizeof *labels;
    return PL_OK;
}

/* Classes as int64, NumPy's default; the caller frees p->data. */
static pl_status make_labels(part *p, const pl_dataset *set)
{
    int64_t *labels;
    if (set->numeric)
        return make_numbers(p, set);
    PL_TRY(PL_NEW(labels, (size_t)set->count));
    for (int64_t i = 0; i < set->count; i++)
        labels[i] = pl_view_label(&set->labels, i);
    p->head_bytes =
        pl_npy_head(p->head, BIG ? ">i8" : "<i8", PL_SHAPE(set->count));
    p->data = labels;
    p->bytes = (size_t)set->count * sizeof *labels;
    return PL_OK;
}

static pl_status write_file(const char *path, const part *p)
{
    pl_file_writer *writer;
    PL_TRY(pl_file_writer_new_output(&writer, path));
    pl_status status = pl_file_writer_put(writer, p->head, p->head_bytes);
    if (status == PL_OK)
        status = pl_file_writer_put(writer, p->data, p->bytes);
    if (status == PL_OK)
        status = pl_file_writer_commit(writer);
    pl_file_writer_free(writer);
    return status;
}

static pl_status check_set(const pl_dataset *set)
{
    PL_ASSERT(!set->sparse && set->features.index == NULL);
    return set->shape.rank < PL_MAX_RANK
               ? PL_OK
               : PL_FAIL(PL_UNSUPPORTED,
                         "%s: examples of %d dimensions are too many",
                         set->name, set->shape.rank);
}

pl_status pl_npy_write(const pl_dataset *set, const char *place, pl_split split,
                       const pl_encoding *encoding)
{
    (void)split;
    (void)encoding;
    part examples = { .bytes = 0 }, labels = { .data = NULL };
    char *path;
    PL_TRY(check_set(set));
    PL_TRY(pl_mem_copy_text(&path, place));
    char *comma = strchr(path, ',');
    pl_status status = PL_OK;
    if (comma != NULL)
        *comma++ = '\0';
    if ((comma != NULL) != (set->labels.data != NULL))
        status =
            PL_FAIL(PL_USAGE, "npy:%s names %s, but %s has %s", place,
                    comma != NULL ? "a file of labels" : "no file of labels",
                    set->name, comma != NULL ? "none" : "some");
    make_examples(&examples, set);
    if (status == PL_OK && comma != NULL)
        status = make_labels(&labels, set);
    if (status == PL_OK)
        status = write_file(path, &examples);
    if (status == PL_OK && comma != NULL)
        status = write_file(comma, &labels);
    pl_mem_free((void *)labels.data);
    pl_mem_free(path);
    return status;
}

/* --- archives ----------------------------------------------------------- */

static uint32_t sum(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    while (bytes > 0) {
        size_t piece = bytes < PIECE ? bytes : PIECE;
        crc = (uint32_t)crc32(crc, at, (unsigned)piece);
        at += piece;
        bytes -= piece;
    }
    return crc;
}

static void put_u16(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)value;
    to[1] = (uint8_t)(value >> 8);
}

/* The fields that local headers and the directory share, from `to` on: version,
 * flags, method, time, sum, sizes, length of the name. */
static void put_common(uint8_t *to, const part *p)
{
    uint32_t bytes = (uint32_t)(p->head_bytes + p->bytes);
    put_u16(to, 20);
    put_u16(to + 8, 0x21); /* 1 January 1980 */
    pl_put_u32(to + 10, p->crc);
    pl_put_u32(to + 14, bytes);
    pl_put_u32(to + 18, bytes);
    put_u16(to + 22, (uint32_t)strlen(p->name));
}

/* An extra field pads the header so that the elements are aligned. */
static pl_status write_member(pl_file_writer *writer, part *p, uint64_t *at)
{
    uint8_t head[30 + 16 + ALIGN + 4] = { 'P', 'K', 3, 4 };
    size_t name = strlen(p->name), used = 30 + name;
    size_t extra = ALIGN - (size_t)((*at + used + 4) % ALIGN) + 4;
    p->local = *at;
    p->crc = sum(sum(0, p->head, p->head_bytes), p->data, p->bytes);
    put_common(head + 4, p);
    put_u16(head + 28, (uint32_t)extra);
    memcpy(head + 30, p->name, name);
    put_u16(head + used, 0xd935); /* the id of zipalign's padding */
    put_u16(head + used + 2, (uint32_t)extra - 4);
    PL_TRY(pl_file_writer_put(writer, head, used + extra));
    PL_TRY(pl_file_writer_put(writer, p->head, p->head_bytes));
    *at += used + extra + p->head_bytes + p->bytes;
    return pl_file_writer_put(writer, p->data, p->bytes);
}

static pl_status write_directory(pl_file_writer *writer, const part *parts,
                                 int count, uint64_t at)
{
    uint8_t end[22] = { 'P', 'K', 5, 6 };
    uint32_t bytes = 0;
    for (int i = 0; i < count; i++) {
        uint8_t entry[46 + 16] = { 'P', 'K', 1, 2, 20 };
        size_t name = strlen(parts[i].name);
        put_common(entry + 6, &parts[i]);
        pl_put_u32(entry + 42, (uint32_t)parts[i].local);
        memcpy(entry + 46, parts[i].name, name);
        PL_TRY(pl_file_writer_put(writer, entry, 46 + name));
        bytes += (uint32_t)(46 + name);
    }
    put_u16(end + 8, (uint32_t)count);
    put_u16(end + 10, (uint32_t)count);
    pl_put_u32(end + 12, bytes);
    pl_put_u32(end + 16, (uint32_t)at);
    return pl_file_writer_put(writer, end, sizeof end);
}

static pl_status write_archive(const char *path, part *parts, int count)
{
    pl_file_writer *writer;
    uint64_t at = 0;
    PL_TRY(pl_file_writer_new_output(&writer, path));
    pl_status status = PL_OK;
    for (int i = 0; i < count && status == PL_OK; i++)
        status = write_member(writer, &parts[i], &at);
    if (status == PL_OK)
        status = write_directory(writer, parts, count, at);
    if (status == PL_OK)
        status = pl_file_writer_commit(writer);
    pl_file_writer_free(writer);
    return status;
}

pl_status pl_npz_write(const pl_dataset *set, const char *place, pl_split split,
                       const pl_encoding *encoding)
{
    (void)encoding;
    bool train = split == PL_SPLIT_TRAIN;
    part parts[MEMBERS] = { { .data = NULL }, { .data = NULL } };
    int count = set->labels.data != NULL ? 2 : 1;
    PL_TRY(check_set(set));
    make_examples(&parts[0], set);
    for (int i = 0; i < MEMBERS; i++)
        snprintf(parts[i].name, sizeof parts[i].name, "%c_%s.npy", "xy"[i],
                 train ? "train" : "test");
    if (count == 2)
        PL_TRY(make_labels(&parts[1], set));
    pl_status status = PL_OK;
    if (parts[0].bytes + parts[1].bytes > UINT32_MAX - 4096)
        status = PL_FAIL(PL_UNSUPPORTED,
                         "%s has %zu bytes, too many for an archive of ours; "
                         "write npy:FILE,LABELS",
                         set->name, parts[0].bytes);
    if (status == PL_OK)
        status = write_archive(place, parts, count);
    pl_mem_free((void *)parts[1].data);
    return status;
}
