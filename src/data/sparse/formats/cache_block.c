/* Encodes and decodes one block of the binary cache. Rows of equal length
 * store each column with its own least value and bit width, others store
 * differences; every size is checked against the block before use. */
#include "data/sparse/formats/cache.h"

#include "base/bytes.h"
#include "base/hash/crc32c.h"
#include "base/mem.h"

#include <string.h>

#define MOST_PACKED 56 /* bits that one load of eight bytes always holds */
#define ROUND_8(n)  (((n) + 7) / 8 * 8)

/* Append `more` zero bytes; returns their address. */
static uint8_t *extend(pl_cache_bytes *out, size_t more)
{
    if (out->room - out->used < more) {
        size_t room = 2 * out->room + more;
        uint8_t *grown = pl_mem_resize(out->data, room, 1);
        if (grown == NULL)
            return NULL;
        out->data = grown;
        out->room = room;
    }
    uint8_t *at = out->data + out->used;
    memset(at, 0, more);
    out->used += more;
    return at;
}

#define EXTEND(at, out, more)                                                  \
    PL_TRY(pl_mem_check((at) = extend((out), (more)), (more), 1))

/* The common length of all rows; 0 when it varies or saves nothing. */
static int64_t common_length(const pl_sparse_rows *rows)
{
    int64_t length = rows->start[1] - rows->start[0];
    if (length < 1 || length > PL_CACHE_MOST_COLUMNS)
        return 0;
    for (int64_t r = 1; r < rows->count; r++)
        if (rows->start[r + 1] - rows->start[r] != length)
            return 0;
    return length;
}

/* Least and width in bits of the ids in a column. */
static unsigned measure_column(const pl_sparse_rows *rows, int64_t length,
                               int64_t column, uint64_t *base)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (int64_t r = 0; r < rows->count; r++) {
        uint64_t id = rows->ids[r * length + column];
        least = id < least ? id : least;
        most = id > most ? id : most;
    }
    *base = least;
    uint64_t span = most - least;
    unsigned width = span == 0 ? 0 : 64 - (unsigned)__builtin_clzll(span);
    return width > MOST_PACKED ? 64 : width;
}

static void pack_column(uint8_t *to, const pl_sparse_rows *rows, int64_t length,
                        int64_t column, uint64_t base, unsigned width)
{
    uint64_t bit = 0;
    for (int64_t r = 0; r < rows->count; r++, bit += width) {
        uint64_t value = rows->ids[r * length + column] - base;
        uint8_t *at = to + bit / 8;
        pl_put_u64(at, pl_get_u64(at) | value << bit % 8);
    }
}

static size_t column_bytes(int64_t rows, unsigned width)
{
    return ((size_t)rows * width + 7) / 8;
}

static pl_status encode_columns(pl_cache_bytes *out, const pl_sparse_rows *rows,
                                int64_t length)
{
    uint8_t *at;
    size_t bases = out->used, widths = bases + (size_t)length * 8;
    EXTEND(at, out, (size_t)length * 8 + ROUND_8((size_t)length));
    for (int64_t c = 0; c < length; c++) {
        uint64_t base;
        unsigned width = measure_column(rows, length, c, &base);
        size_t bytes = column_bytes(rows->count, width);
        EXTEND(at, out, bytes + PL_CACHE_PAD);
        pack_column(at, rows, length, c, base, width);
        out->used -= PL_CACHE_PAD;
        pl_put_u64(out->data + bases + (size_t)c * 8, base);
        out->data[widths + (size_t)c] = (uint8_t)width;
    }
    EXTEND(at, out, PL_CACHE_PAD);
    return PL_OK;
}

static uint64_t zigzag(uint64_t difference)
{
    return difference << 1 ^ (uint64_t)((int64_t)difference >> 63);
}

static pl_status encode_differences(pl_cache_bytes *out,
                                    const pl_sparse_rows *rows)
{
    uint8_t *at;
    size_t most =
        (size_t)(rows->count + pl_sparse_rows_ids(rows)) * PL_VARINT_MOST;
    EXTEND(at, out, most);
    uint8_t *begin = at;
    for (int64_t r = 0; r < rows->count; r++) {
        uint64_t before = 0;
        at +=
            pl_put_varint(at, (uint64_t)(rows->start[r + 1] - rows->start[r]));
        for (int64_t i = rows->start[r]; i < rows->start[r + 1]; i++) {
            at += pl_put_varint(at, zigzag(rows->ids[i] - before));
            before = rows->ids[i];
        }
    }
    out->used -= most - (size_t)(at - begin);
    return PL_OK;
}

pl_status pl_cache_encode(pl_cache_bytes *out, const pl_sparse_rows *rows)
{
    uint8_t *at;
    size_t begin = out->used;
    int64_t length = common_length(rows), ids = pl_sparse_rows_ids(rows);
    uint32_t flags = (length > 0 ? PL_CACHE_FLAG_COLUMNS : 0) |
                     (rows->weighted ? PL_CACHE_FLAG_VALUES : 0);
    EXTEND(at, out, PL_CACHE_BLOCK_BYTES + ROUND_8((size_t)rows->count) / 8);
    pl_put_u32(at + 4, flags);
    pl_put_u32(at + 8, (uint32_t)rows->count);
    pl_put_u32(at + 12, (uint32_t)length);
    pl_put_u64(at + 16, (uint64_t)ids);
    for (int64_t r = 0; r < rows->count; r++)
        at[PL_CACHE_BLOCK_BYTES + r / 8] |=
            (uint8_t)(rows->labels[r] << (r % 8));
    if (length > 0)
        PL_TRY(encode_columns(out, rows, length));
    else
        PL_TRY(encode_differences(out, rows));
    if (rows->weighted) {
        EXTEND(at, out, (size_t)ids * 4);
        for (int64_t i = 0; i < ids; i++) {
            uint32_t bits;
            memcpy(&bits, &rows->values[i], 4);
            pl_put_u32(at + 4 * i, bits);
        }
    }
    pl_put_u32(out->data + begin,
               pl_crc32c(0, out->data + begin + 4, out->used - begin - 4));
    return PL_OK;
}

/* A block being decoded. */
typedef struct block {
    pl_sparse_rows *rows;
    const uint8_t *at, *end;
    int64_t count, length, ids; /* rows, of each, in all */
    int64_t first_row, first_id;
    uint64_t bound, largest;
} block;

static pl_status bad_id(const block *b)
{
    return PL_FAIL(PL_FORMAT, "id %llu, expected ids below %llu",
                   (unsigned long long)b->largest,
                   (unsigned long long)b->bound);
}

static pl_status cut_short(void)
{
    return PL_FAIL(PL_FORMAT, "the ids take more bytes than the block has");
}

typedef struct column {
    const uint8_t *data;
    uint64_t base, mask;
    uint64_t width;
} column;

static inline uint64_t load_u64(const uint8_t *at)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
#else
    return pl_get_u64(at);
#endif
}

static uint64_t unpack_columns(const column *columns, int64_t length,
                               int64_t count, uint64_t *ids)
{
    uint64_t most = 0;
    for (uint64_t r = 0; r < (uint64_t)count; r++)
        for (int64_t c = 0; c < length; c++) {
            const column *col = &columns[c];
            uint64_t bit = r * col->width;
            uint64_t id =
                col->base +
                ((load_u64(col->data + bit / 8) >> bit % 8) & col->mask);
            *ids++ = id;
            most = id > most ? id : most;
        }
    return most;
}

static pl_status read_columns(block *b, column *columns)
{
    size_t length = (size_t)b->length, left = (size_t)(b->end - b->at);
    if (length * 8 + ROUND_8(length) > left)
        return cut_short();
    const uint8_t *bases = b->at, *widths = bases + length * 8;
    b->at = widths + ROUND_8(length);
    for (size_t c = 0; c < length; c++) {
        unsigned width = widths[c];
        size_t bytes = column_bytes(b->count, width);
        if ((width > MOST_PACKED && width != 64) ||
            bytes + PL_CACHE_PAD > (size_t)(b->end - b->at))
            return cut_short();
        columns[c] = (column) {
            .data = b->at,
            .base = pl_get_u64(bases + c * 8),
            .mask = width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1,
            .width = width,
        };
        b->at += bytes;
    }
    b->at += PL_CACHE_PAD;
    return PL_OK;
}

static pl_status decode_columns(block *b)
{
    column *columns;
    PL_TRY(PL_NEW(columns, (size_t)b->length));
    pl_status status = read_columns(b, columns);
    if (status == PL_OK) {
        b->largest = unpack_columns(columns, b->length, b->count,
                                    b->rows->ids + b->first_id);
        int64_t *start = b->rows->start + b->first_row;
        for (int64_t r = 0; r < b->count; r++)
            start[r + 1] = b->first_id + (r + 1) * b->length;
    }
    pl_mem_free(columns);
    return status;
}

static pl_status decode_differences(block *b)
{
    uint64_t *ids = b->rows->ids + b->first_id;
    int64_t used = 0;
    for (int64_t r = 0; r < b->count; r++) {
        uint64_t length = 0, packed = 0, id = 0;
        b->at = pl_get_varint(b->at, b->end, &length);
        if (b->at == NULL || length > (uint64_t)(b->ids - used))
            return cut_short();
        for (uint64_t i = 0; i < length; i++) {
            b->at = pl_get_varint(b->at, b->end, &packed);
            if (b->at == NULL)
                return cut_short();
            id += packed >> 1 ^ (0 - (packed & 1));
            ids[used++] = id;
            b->largest = id > b->largest ? id : b->largest;
        }
        b->rows->start[b->first_row + r + 1] = b->first_id + used;
    }
    return used == b->ids ? PL_OK : cut_short();
}

static pl_status decode_values(block *b, bool weighted)
{
    float *values = b->rows->values + b->first_id;
    size_t left = (size_t)(b->end - b->at), ids = (size_t)b->ids;
    if (left != (weighted ? ids * 4 : 0))
        return PL_FAIL(PL_FORMAT, "%zu bytes after the ids, expected %zu", left,
                       weighted ? ids * 4 : 0);
    if (!weighted)
        return PL_OK;
    if (!b->rows->weighted)
        pl_sparse_rows_fill(b->rows->values, b->first_id);
    for (size_t i = 0; i < ids; i++) {
        uint32_t bits = pl_get_u32(b->at + 4 * i);
        memcpy(&values[i], &bits, 4);
        if (!__builtin_isfinite(values[i]))
            return PL_FAIL(PL_FORMAT, "value %zu is not finite", i);
    }
    b->rows->weighted = true;
    return PL_OK;
}

/* Parse the head of a block, and check that its sizes are possible. */
static pl_status read_head(block *b, uint32_t *flags, const uint8_t *data,
                           size_t bytes)
{
    if (bytes < PL_CACHE_BLOCK_BYTES)
        return PL_FAIL(PL_FORMAT, "a block of %zu bytes", bytes);
    uint32_t found = pl_crc32c(0, data + 4, bytes - 4);
    if (found != pl_get_u32(data))
        return PL_FAIL(PL_FORMAT, "checksum 0x%08x, expected 0x%08x", found,
                       pl_get_u32(data));
    *flags = pl_get_u32(data + 4);
    uint64_t rows = pl_get_u32(data + 8), length = pl_get_u32(data + 12);
    uint64_t ids = pl_get_u64(data + 16), labels = ROUND_8(rows) / 8;
    uint64_t most = 8 * (uint64_t)bytes;
    most = most > PL_CACHE_MOST_IDS ? most : PL_CACHE_MOST_IDS;
    bool columns = (*flags & PL_CACHE_FLAG_COLUMNS) != 0;
    if (rows < 1 || rows > PL_CACHE_MOST_ROWS || ids > most ||
        labels > bytes - PL_CACHE_BLOCK_BYTES || *flags > 3 ||
        (columns && (length < 1 || length > PL_CACHE_MOST_COLUMNS ||
                     ids != rows * length)) ||
        (!columns && length != 0))
        return PL_FAIL(PL_FORMAT,
                       "a block of %zu bytes cannot hold %llu examples with "
                       "%llu non-zeros",
                       bytes, (unsigned long long)rows,
                       (unsigned long long)ids);
    b->count = (int64_t)rows;
    b->length = (int64_t)length;
    b->ids = (int64_t)ids;
    b->at = data + PL_CACHE_BLOCK_BYTES + labels;
    b->end = data + bytes;
    return PL_OK;
}

pl_status pl_cache_decode(pl_sparse_rows *rows, const uint8_t *data,
                          size_t bytes, uint64_t bound, uint64_t *largest)
{
    uint32_t flags;
    block b = { .rows = rows, .bound = bound };
    PL_TRY(read_head(&b, &flags, data, bytes));
    b.first_row = rows->count;
    b.first_id = pl_sparse_rows_ids(rows);
    PL_TRY(pl_sparse_rows_reserve(rows, b.first_row + b.count,
                                  b.first_id + b.ids));
    const uint8_t *labels = data + PL_CACHE_BLOCK_BYTES;
    for (int64_t r = 0; r < b.count; r++)
        rows->labels[b.first_row + r] = labels[r / 8] >> (r % 8) & 1;
    if ((flags & PL_CACHE_FLAG_COLUMNS) != 0)
        PL_TRY(decode_columns(&b));
    else
        PL_TRY(decode_differences(&b));
    if (b.ids > 0 && b.largest >= bound)
        return bad_id(&b);
    PL_TRY(decode_values(&b, (flags & PL_CACHE_FLAG_VALUES) != 0));
    if (rows->weighted && (flags & PL_CACHE_FLAG_VALUES) == 0)
        pl_sparse_rows_fill(rows->values + b.first_id, b.ids);
    rows->count += b.count;
    *largest = b.largest > *largest ? b.largest : *largest;
    return PL_OK;
}
