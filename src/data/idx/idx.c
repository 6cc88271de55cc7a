/* idx.c - opens IDX files, plain ones mapped and gzip ones unpacked, and checks
 * every size in a header against the file's length. */
#include "data/idx/idx.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

#define ZLIB_CONST /* what zlib reads is const */
#include <zlib.h>

#define MOST_HEADER  (4 + 4 * PL_MAX_RANK)
#define MOST_ELEMENT ((uint64_t)1 << 40)

/* Deflate expands one byte to at most 1032; a gzip header to none. */
#define MOST_RATIO 1032

static uint32_t get_u32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
           (uint32_t)bytes[2] << 8 | bytes[3];
}

static const struct type {
    uint8_t code;
    pl_element element;
} types[] = {
    { 0x08, { PL_ELEMENT_UNSIGNED, 1, true } },
    { 0x09, { PL_ELEMENT_SIGNED, 1, true } },
    { 0x0b, { PL_ELEMENT_SIGNED, 2, true } },
    { 0x0c, { PL_ELEMENT_SIGNED, 4, true } },
    { 0x0d, { PL_ELEMENT_FLOAT, 4, true } },
    { 0x0e, { PL_ELEMENT_FLOAT, 8, true } },
};

static pl_status find_element(pl_element *out, uint8_t code)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].code == code) {
            *out = types[i].element;
            return PL_OK;
        }
    return PL_FAIL(PL_FORMAT,
                   "element type 0x%02x, expected 0x08 (unsigned byte), 0x09, "
                   "0x0b, 0x0c, 0x0d (float32) or 0x0e",
                   code);
}

/* Read the dimensions of a header that starts with `rank` of them. */
static pl_status read_shape(pl_shape *shape, const uint8_t *bytes, int rank)
{
    uint64_t elements = 1;
    shape->rank = rank;
    for (int d = 0; d < rank; d++) {
        uint32_t size = get_u32(bytes + 4 + 4 * d);
        if (size == 0)
            return PL_FAIL(PL_FORMAT,
                           "dimension %d of %d is 0, expected at "
                           "least 1",
                           d + 1, rank);
        if (size > MOST_ELEMENT / elements)
            return PL_FAIL(PL_FORMAT, "the header states more than 2^40 "
                                      "elements");
        elements *= size;
        shape->dim[d] = size;
    }
    return PL_OK;
}

/* Read the header from the first `count` bytes of a file: type, shape and how
 * many bytes the header takes. */
static pl_status read_header(pl_idx *idx, size_t *header, const uint8_t *bytes,
                             size_t count)
{
    if (count < 4)
        return PL_FAIL(PL_FORMAT, "truncated: %zu bytes, expected at least 8",
                       count);
    if (bytes[0] != 0 || bytes[1] != 0)
        return PL_FAIL(PL_FORMAT,
                       "not an IDX file: magic number 0x%08x, expected "
                       "0x000008 and the number of dimensions",
                       (unsigned)get_u32(bytes));
    PL_TRY(find_element(&idx->element, bytes[2]));
    int rank = bytes[3];
    if (rank < 1 || rank > PL_MAX_RANK)
        return PL_FAIL(PL_FORMAT, "%d dimensions, expected 1 to %d", rank,
                       PL_MAX_RANK);
    *header = 4 + 4 * (size_t)rank;
    if (count < *header)
        return PL_FAIL(PL_FORMAT,
                       "truncated: %zu bytes, expected a header of %zu", count,
                       *header);
    return read_shape(&idx->shape, bytes, rank);
}

static size_t element_bytes(const pl_idx *idx)
{
    return (size_t)pl_shape_row(idx->shape) * (size_t)idx->element.bytes;
}

/* A file in memory, not packed: the elements are read in place. */
static pl_status open_plain(pl_idx *idx, const uint8_t *bytes, size_t count)
{
    size_t header = 0;
    PL_TRY(read_header(idx, &header, bytes, count));
    uint64_t expected = header + element_bytes(idx);
    char text[PL_SHAPE_TEXT];
    if (count != expected)
        return PL_FAIL(PL_FORMAT, "%s: %zu bytes, expected %llu for %s",
                       count < expected ? "truncated" : "trailing bytes", count,
                       (unsigned long long)expected,
                       pl_shape_text(idx->shape, text));
    idx->data = bytes + header;
    return PL_OK;
}

/* Unpack until `count` bytes are written or the stream ends; sets *written to
 * the number written and *ended to whether it ended. */
static pl_status unpack(z_stream *stream, uint8_t *out, size_t count,
                        size_t *written, bool *ended)
{
    size_t left = count;
    *ended = false;
    stream->next_out = out;
    while (left > 0 && !*ended) {
        stream->avail_out = left > UINT32_MAX ? UINT32_MAX : (unsigned)left;
        unsigned before = stream->avail_out;
        int code = inflate(stream, Z_NO_FLUSH);
        left -= before - stream->avail_out;
        if (code == Z_MEM_ERROR)
            return PL_FAIL(PL_NOMEM, "out of memory: unpacking gzip");
        if (code == Z_BUF_ERROR) /* nothing left to read */
            return PL_FAIL(PL_FORMAT,
                           "truncated gzip stream: it ends after %llu "
                           "unpacked bytes",
                           (unsigned long long)stream->total_out);
        if (code != Z_OK && code != Z_STREAM_END)
            return PL_FAIL(PL_FORMAT, "broken gzip stream: %s",
                           stream->msg != NULL ? stream->msg : zError(code));
        *ended = code == Z_STREAM_END;
    }
    stream->next_out = NULL; /* the caller may free its memory */
    *written = count - left;
    return PL_OK;
}

/* After the last element: the stream must end here with the right checksum, and
 * nothing may follow. */
static pl_status finish(z_stream *stream, bool ended, uint64_t expected)
{
    uint8_t extra;
    size_t written = 0;
    if (!ended)
        PL_TRY(unpack(stream, &extra, 1, &written, &ended));
    if (written != 0)
        return PL_FAIL(PL_FORMAT,
                       "trailing bytes: the gzip stream holds more than the "
                       "%llu bytes its IDX header states",
                       (unsigned long long)expected);
    if (stream->avail_in != 0)
        return PL_FAIL(PL_FORMAT, "trailing bytes: %u after the gzip stream",
                       stream->avail_in);
    return PL_OK;
}

/* Unpack header and elements; `packed` is the size of the gzip file. */
static pl_status open_stream(pl_idx *idx, z_stream *stream, size_t packed)
{
    /* Four bytes determine the length of the header. */
    uint8_t start[MOST_HEADER];
    size_t written = 0, more = 0, header = 0;
    bool ended;
    PL_TRY(unpack(stream, start, 4, &written, &ended));
    if (!ended && start[3] >= 1 && start[3] <= PL_MAX_RANK)
        PL_TRY(unpack(stream, start + 4, 4 * (size_t)start[3], &more, &ended));
    written += more;
    PL_TRY(read_header(idx, &header, start, written));

    uint64_t elements = element_bytes(idx);
    uint64_t expected = header + elements;
    if (expected / MOST_RATIO > packed)
        return PL_FAIL(PL_FORMAT,
                       "truncated: the IDX header states %llu bytes, %zu "
                       "bytes of gzip cannot hold them",
                       (unsigned long long)expected, packed);
    PL_TRY(PL_NEW_ALIGNED(idx->unpacked, elements));
    written = 0;
    if (!ended)
        PL_TRY(unpack(stream, idx->unpacked, elements, &written, &ended));
    if (written != elements)
        return PL_FAIL(PL_FORMAT,
                       "truncated: %llu bytes unpacked, expected %llu",
                       (unsigned long long)(header + written),
                       (unsigned long long)expected);
    idx->data = idx->unpacked;
    return finish(stream, ended, expected);
}

static pl_status open_gzip(pl_idx *idx, const uint8_t *bytes, size_t count)
{
    if (count > UINT32_MAX)
        return PL_FAIL(PL_UNSUPPORTED, "%zu bytes of gzip, at most 2^32 - 1",
                       count);
    z_stream stream = {
        .next_in = bytes,
        .avail_in = (unsigned)count,
        .zalloc = pl_mem_zlib_alloc,
        .zfree = pl_mem_zlib_free,
    };
    if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK)
        return PL_FAIL(PL_NOMEM, "out of memory: unpacking gzip");
    pl_status status = open_stream(idx, &stream, count);
    inflateEnd(&stream);
    return status;
}

pl_status pl_idx_init_memory(pl_idx *idx, const uint8_t *bytes, size_t count)
{
    bool gzip = count >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
    *idx = (pl_idx) { .data = NULL };
    pl_status status =
        gzip ? open_gzip(idx, bytes, count) : open_plain(idx, bytes, count);
    if (status != PL_OK)
        pl_idx_close(idx);
    return status;
}

pl_status pl_idx_init(pl_idx *idx, const char *path)
{
    pl_map map;
    PL_TRY(pl_map_init(&map, path));
    pl_status status = pl_idx_init_memory(idx, map.data, map.bytes);
    pl_status whole = pl_map_check(&map);
    if (whole != PL_OK) {
        if (status == PL_OK)
            pl_idx_close(idx);
        pl_map_close(&map);
        return whole;
    }
    if (status == PL_OK && idx->unpacked == NULL)
        idx->map = map; /* read in place */
    else
        pl_map_close(&map);
    return status == PL_OK ? PL_OK : pl_context(status, "%s", path);
}

void pl_idx_close(pl_idx *idx)
{
    pl_mem_free(idx->unpacked);
    pl_map_close(&idx->map);
    *idx = (pl_idx) { .data = NULL };
}

/* Write float32 in the format's byte order, piece by piece. */
static pl_status put_floats(pl_file_writer *writer, const float *values,
                            size_t count)
{
    uint8_t piece[4096];
    while (count > 0) {
        size_t some = count < sizeof piece / 4 ? count : sizeof piece / 4;
        for (size_t i = 0; i < some; i++) {
            uint32_t bits;
            memcpy(&bits, &values[i], 4);
            for (int b = 0; b < 4; b++)
                piece[4 * i + (size_t)b] = (uint8_t)(bits >> (24 - 8 * b));
        }
        PL_TRY(pl_file_writer_put(writer, piece, 4 * some));
        values += some;
        count -= some;
    }
    return PL_OK;
}

pl_status pl_idx_write(const char *path, pl_shape shape, pl_dtype dtype,
                       const void *data)
{
    PL_ASSERT(shape.rank >= 1 && !pl_shape_batched(shape));
    PL_TRY(pl_shape_check(shape));
    uint8_t code = dtype == PL_UINT8 ? 0x08 : 0x0d;
    uint8_t header[MOST_HEADER] = { 0, 0, code, (uint8_t)shape.rank };
    for (int d = 0; d < shape.rank; d++) {
        if (shape.dim[d] > UINT32_MAX)
            return PL_FAIL(PL_UNSUPPORTED,
                           "%s: a dimension of %lld, IDX holds at most 2^32 - "
                           "1",
                           path, (long long)shape.dim[d]);
        for (int i = 0; i < 4; i++)
            header[4 + 4 * d + i] = (uint8_t)(shape.dim[d] >> (24 - 8 * i));
    }

    pl_status status;
    pl_file_writer *writer = NULL;
    size_t bytes = 4 + 4 * (size_t)shape.rank;
    PL_TRY_OUT(status, pl_file_writer_new_output(&writer, path));
    PL_TRY_OUT(status, pl_file_writer_put(writer, header, bytes));
    bytes = (size_t)pl_shape_row(shape);
    PL_TRY_OUT(status, dtype == PL_UINT8
                           ? pl_file_writer_put(writer, data, bytes)
                           : put_floats(writer, data, bytes));
    PL_TRY_OUT(status, pl_file_writer_commit(writer));
out:
    pl_file_writer_free(writer);
    return status;
}
