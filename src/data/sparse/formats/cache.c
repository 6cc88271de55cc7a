/* cache.c - reads the binary cache: its footer lists the blocks, each of which
 * is checked and decoded separately. */
#include "data/sparse/formats/cache.h"

#include "base/bytes.h"
#include "base/hash/crc32c.h"
#include "data/sparse/formats/format.h"

#include <string.h>

/* The content of the footer. */
typedef struct footer {
    uint64_t index, blocks, rows, ids, features;
    uint32_t index_crc;
} footer;

static pl_status read_footer(const pl_sparse_file *file, footer *out)
{
    const uint8_t *data = file->data;
    if (file->bytes < PL_CACHE_HEADER_BYTES ||
        memcmp(data, PL_CACHE_MAGIC, 8) != 0)
        return PL_FAIL(PL_FORMAT,
                       "%s: not a cache file: it does not begin "
                       "with " PL_CACHE_MAGIC,
                       file->path);
    uint32_t version = pl_get_u32(data + 8);
    if (version < PL_CACHE_PLAIN || version > PL_CACHE_VERSION)
        return PL_FAIL(PL_FORMAT, "%s: cache of version %u, expected %d or %d",
                       file->path, version, PL_CACHE_PLAIN, PL_CACHE_VERSION);
    uint8_t at[PL_CACHE_FOOTER_BYTES] = { 0 };
    if (file->bytes >= PL_CACHE_HEADER_BYTES + PL_CACHE_FOOTER_BYTES)
        memcpy(at, data + file->bytes - sizeof at, sizeof at);
    if (memcmp(at + 48, PL_CACHE_MAGIC, 8) != 0 ||
        pl_crc32c(0, at, 44) != pl_get_u32(at + 44))
        return PL_FAIL(PL_FORMAT,
                       "%s: truncated or damaged: no sound footer ends its "
                       "%zu bytes",
                       file->path, file->bytes);
    *out = (footer) {
        .index = pl_get_u64(at),
        .blocks = pl_get_u64(at + 8),
        .rows = pl_get_u64(at + 16),
        .ids = pl_get_u64(at + 24),
        .features = pl_get_u64(at + 32),
        .index_crc = pl_get_u32(at + 40),
    };
    uint64_t end = file->bytes - PL_CACHE_FOOTER_BYTES;
    if (out->index < PL_CACHE_HEADER_BYTES || out->index > end ||
        (end - out->index) / PL_CACHE_ENTRY_BYTES != out->blocks ||
        (end - out->index) % PL_CACHE_ENTRY_BYTES != 0 ||
        out->features > PL_SPARSE_ID_MOST + 1)
        return PL_FAIL(PL_FORMAT,
                       "%s: an index of %llu blocks from byte %llu does not "
                       "fit in %zu bytes",
                       file->path, (unsigned long long)out->blocks,
                       (unsigned long long)out->index, file->bytes);
    return PL_OK;
}

static pl_status read_entry(pl_sparse_block *out, const pl_sparse_file *file,
                            const uint8_t *at, uint64_t end)
{
    *out = (pl_sparse_block) { .offset = pl_get_u64(at),
                               .bytes = pl_get_u64(at + 8),
                               .rows = (int64_t)pl_get_u64(at + 16) };
    if (out->offset < PL_CACHE_HEADER_BYTES || out->offset > end ||
        out->bytes > end - out->offset || out->rows < 1 ||
        out->rows > PL_CACHE_MOST_ROWS)
        return PL_FAIL(PL_FORMAT,
                       "%s: a block of %lld examples in %llu bytes at %llu is "
                       "not inside the file",
                       file->path, (long long)out->rows,
                       (unsigned long long)out->bytes,
                       (unsigned long long)out->offset);
    return PL_OK;
}

static pl_status split(pl_sparse_blocks *blocks, const pl_decode *decode,
                       int32_t index, uint64_t target)
{
    (void)target;
    const pl_sparse_file *file = decode->file;
    footer foot;
    PL_TRY(read_footer(file, &foot));
    const uint8_t *at = file->data + foot.index;
    if (pl_crc32c(0, at, foot.blocks * PL_CACHE_ENTRY_BYTES) != foot.index_crc)
        return PL_FAIL(PL_FORMAT, "%s: the checksum of the index is wrong",
                       file->path);
    for (uint64_t b = 0; b < foot.blocks; b++) {
        pl_sparse_block block;
        PL_TRY(read_entry(&block, file, at + b * PL_CACHE_ENTRY_BYTES,
                          foot.index));
        block.file = index;
        PL_TRY(pl_sparse_blocks_add(blocks, block));
    }
    return PL_OK;
}

static pl_status decode(pl_decode *decode, pl_sparse_rows *rows)
{
    const pl_sparse_block *block = decode->block;
    int64_t before = rows->count;
    pl_status status = pl_cache_decode(rows, decode->data, block->bytes,
                                       decode->bound, &decode->largest);
    if (status == PL_OK && rows->count - before != block->rows)
        status =
            PL_FAIL(PL_FORMAT, "%lld examples, expected %lld",
                    (long long)(rows->count - before), (long long)block->rows);
    if (status == PL_OK)
        return PL_OK;
    rows->count = before;
    status = pl_context(status, "%s: block at byte %llu", decode->file->path,
                        (unsigned long long)block->offset);
    PL_TRY(pl_decode_pass(decode, status));
    decode->bad += block->rows - 1; /* all of them */
    return decode->bad > decode->allowed ? status : PL_OK;
}

static pl_status width(const pl_sparse_file *file, int64_t *features)
{
    footer foot;
    PL_TRY(read_footer(file, &foot));
    *features = (int64_t)foot.features;
    return PL_OK;
}

/* Split has checked the header. */
static uint32_t numbering(const pl_sparse_file *file)
{
    return pl_get_u32(file->data + 8) == PL_CACHE_PLAIN
               ? 0
               : pl_get_u32(file->data + 12);
}

const pl_sparse_format pl_cache_format = {
    .name = "cache",
    .split = split,
    .decode = decode,
    .width = width,
    .numbering = numbering,
    .writer = &pl_cache_writer,
};
