/* cache_write.c - writes the binary cache: collects rows until a block is full,
 * then appends the footer that lists the blocks. */
#include "base/bytes.h"
#include "base/hash/crc32c.h"
#include "base/mem.h"
#include "data/sparse/formats/cache.h"
#include "data/sparse/formats/writer.h"

#include <string.h>

typedef struct cache_writer {
    pl_sparse_writer base;
    pl_sparse_rows rows; /* of the next block */
    pl_cache_bytes block, index;
    uint64_t blocks, count, ids, features;
} cache_writer;

static void release(pl_sparse_writer *base)
{
    cache_writer *writer = (cache_writer *)base;
    pl_sparse_rows_close(&writer->rows);
    pl_mem_free(writer->block.data);
    pl_mem_free(writer->index.data);
}

static pl_status begin(pl_sparse_writer *base)
{
    uint8_t header[PL_CACHE_HEADER_BYTES] = PL_CACHE_MAGIC;
    uint32_t numbering = base->opts->numbering;
    pl_put_u32(header + 8, numbering != 0 ? PL_CACHE_VERSION : PL_CACHE_PLAIN);
    pl_put_u32(header + 12, numbering);
    return pl_sparse_writer_bytes(base, header, sizeof header);
}

static pl_status add_entry(cache_writer *writer)
{
    pl_cache_bytes *index = &writer->index;
    if (index->room - index->used < PL_CACHE_ENTRY_BYTES) {
        size_t room = 2 * index->room + 64 * PL_CACHE_ENTRY_BYTES;
        PL_TRY(PL_RESIZE(index->data, room));
        index->room = room;
    }
    uint8_t *at = index->data + index->used;
    pl_put_u64(at, writer->base.offset);
    pl_put_u64(at + 8, writer->block.used);
    pl_put_u64(at + 16, (uint64_t)writer->rows.count);
    index->used += PL_CACHE_ENTRY_BYTES;
    writer->blocks++;
    return PL_OK;
}

static pl_status flush(cache_writer *writer)
{
    if (writer->rows.count == 0)
        return PL_OK;
    writer->block.used = 0;
    PL_TRY(pl_cache_encode(&writer->block, &writer->rows));
    PL_TRY(add_entry(writer));
    PL_TRY(pl_sparse_writer_bytes(&writer->base, writer->block.data,
                                  writer->block.used));
    writer->count += (uint64_t)writer->rows.count;
    writer->ids += (uint64_t)pl_sparse_rows_ids(&writer->rows);
    pl_sparse_rows_clear(&writer->rows);
    return PL_OK;
}

/* Append one row of a batch to the block. */
static pl_status put_row(cache_writer *writer, const pl_batch *batch,
                         int64_t row)
{
    pl_sparse_rows *rows = &writer->rows;
    int64_t source = batch->row_index != NULL ? batch->row_index[row] : row;
    int64_t begins = batch->row_start[source], used = pl_sparse_rows_ids(rows);
    int64_t length = batch->row_start[source + 1] - begins;
    PL_TRY(pl_sparse_rows_reserve(rows, rows->count + 1, used + length));
    for (int64_t i = 0; i < length; i++) {
        uint64_t id = batch->ids[begins + i];
        float value = batch->values != NULL ? batch->values[begins + i] : 1;
        rows->ids[used + i] = id;
        rows->values[used + i] = value;
        rows->weighted = rows->weighted || value != 1;
        writer->features = id >= writer->features ? id + 1 : writer->features;
    }
    rows->labels[rows->count] = (int32_t)pl_view_label(&batch->labels, row);
    rows->count++;
    rows->start[rows->count] = used + length;
    return rows->count == PL_CACHE_ROWS || used + length >= PL_CACHE_IDS
               ? flush(writer)
               : PL_OK;
}

static pl_status put(pl_sparse_writer *base, const pl_batch *batch)
{
    for (int64_t row = 0; row < batch->rows; row++)
        PL_TRY(put_row((cache_writer *)base, batch, row));
    return PL_OK;
}

static pl_status finish(pl_sparse_writer *base)
{
    cache_writer *writer = (cache_writer *)base;
    uint8_t footer[PL_CACHE_FOOTER_BYTES] = { 0 };
    PL_TRY(flush(writer));
    pl_put_u64(footer, base->offset);
    pl_put_u64(footer + 8, writer->blocks);
    pl_put_u64(footer + 16, writer->count);
    pl_put_u64(footer + 24, writer->ids);
    pl_put_u64(footer + 32, writer->features);
    pl_put_u32(footer + 40,
               pl_crc32c(0, writer->index.data, writer->index.used));
    pl_put_u32(footer + 44, pl_crc32c(0, footer, 44));
    memcpy(footer + 48, PL_CACHE_MAGIC, 8);
    PL_TRY(
        pl_sparse_writer_bytes(base, writer->index.data, writer->index.used));
    return pl_sparse_writer_bytes(base, footer, sizeof footer);
}

const pl_sparse_writer_ops pl_cache_writer = {
    .bytes = sizeof(cache_writer),
    .mapped = true,
    .open = begin,
    .put = put,
    .finish = finish,
    .close = release,
};
