/* set.c - a data set of sparse examples in files: decides whether it is held in
 * memory or streamed, finds its width, and decodes blocks on all threads. */
#include "data/sparse/set.h"

#include "base/log.h"
#include "base/mem.h"
#include "data/sparse/files.h"
#include "data/sparse/stream.h"

#include <string.h>

#define MEMORY_BYTES  ((uint64_t)64 << 20) /* of files held decoded */
#define BLOCK_BYTES   ((uint64_t)1 << 20)
#define BLOCK_LEAST   ((uint64_t)4 << 10)
#define BLOCKS_WANTED 256
#define GROUP         8 /* blocks a thread decodes before they are used */
#define WINDOW_ROWS   32768
#define SHOWN_BAD     10

pl_status pl_sparse_blocks_add(pl_sparse_blocks *blocks, pl_sparse_block block)
{
    if (blocks->count == blocks->room) {
        int64_t room = blocks->room == 0 ? 64 : 2 * blocks->room;
        PL_TRY(PL_RESIZE(blocks->list, (size_t)room));
        blocks->room = room;
    }
    if (blocks->count >= UINT32_MAX - 1)
        return PL_FAIL(PL_UNSUPPORTED, "more than 2^32 - 2 blocks");
    blocks->list[blocks->count++] = block;
    return PL_OK;
}

static pl_status changed(const pl_decode *decode, int64_t found)
{
    return PL_FAIL(PL_IO,
                   "%s changed while it was read: the block at byte %llu had "
                   "%lld examples and has %lld now; do not change it while it "
                   "is in use",
                   decode->file->path,
                   (unsigned long long)decode->block->offset,
                   (long long)decode->block->rows, (long long)found);
}

pl_status pl_decode_check_rows(const pl_decode *decode, int64_t rows)
{
    return rows > decode->block->rows ? changed(decode, rows) : PL_OK;
}

pl_status pl_decode_pass(pl_decode *decode, pl_status status)
{
    if (status != PL_FORMAT)
        return status;
    decode->bad++;
    if (decode->last != NULL)
        pl_error_save(decode->last, status);
    return decode->bad > decode->allowed ? status : PL_OK;
}

static void release(pl_dataset *base)
{
    pl_sparse_set *set = (pl_sparse_set *)base;
    pl_sparse_files_free(set->files, set->file_count);
    pl_mem_free(set->blocks.list);
    pl_sparse_rows_close(&set->rows);
    pl_mutex_close(&set->lock);
    pl_mem_free(set->base.name);
    pl_mem_free(set);
}

static pl_status reader_new(pl_reader **out, pl_dataset *set,
                            const pl_reader_opts *opts)
{
    return pl_stream_reader_new(out, (pl_sparse_set *)set, opts);
}

/* Keep whole blocks, so that no example is in two parts. */
static pl_status keep(pl_dataset *base, int64_t first, int64_t count)
{
    pl_sparse_set *set = (pl_sparse_set *)base;
    int64_t kept = 0, at = 0, rows = 0;
    for (int64_t b = 0; b < set->blocks.count; b++) {
        pl_sparse_block block = set->blocks.list[b];
        if (at >= first && at < first + count && block.rows > 0) {
            set->blocks.list[kept++] = block;
            rows += block.rows;
        }
        at += block.rows;
    }
    if (kept == 0)
        return PL_FAIL(PL_USAGE,
                       "%s: no block begins in examples %lld to %lld; hold "
                       "out more, or give --test-data",
                       base->name, (long long)first,
                       (long long)(first + count));
    set->blocks.count = kept;
    base->count = rows;
    return PL_OK;
}

static const pl_dataset_ops memory_ops = {
    .kind = "sparse",
    .free = release,
};

static const pl_dataset_ops stream_ops = {
    .kind = "sparse stream",
    .free = release,
    .reader_new = reader_new,
    .keep = keep,
};

bool pl_sparse_set_is(const pl_dataset *set)
{
    return set->ops == &memory_ops || set->ops == &stream_ops;
}

/* Add the results of a block; the set's lock is held. */
static pl_status account(pl_sparse_set *set, pl_sparse_block *block,
                         const pl_decode *decode)
{
    int64_t known = block->bad;
    set->labels |= decode->labels;
    if (decode->largest > set->largest)
        set->largest = decode->largest;
    if (set->labels == (PL_LABEL_ZERO | PL_LABEL_MINUS))
        return PL_FAIL(PL_FORMAT,
                       "%s: labels 0 and -1 in one set, expected either 0 and "
                       "1 or -1 and 1",
                       decode->file->path);
    if (decode->bad <= known)
        return PL_OK;
    block->bad = decode->bad;
    set->bad += decode->bad - known;
    if (set->bad > set->opts.skip_bad) {
        pl_status status = pl_error_raise(decode->last);
        return set->opts.skip_bad == 0
                   ? status
                   : pl_context(status,
                                "%lld malformed examples, more than "
                                "--skip-bad %lld; the last",
                                (long long)set->bad,
                                (long long)set->opts.skip_bad);
    }
    if (set->bad <= SHOWN_BAD)
        pl_log(PL_LOG_WARN, "skipped: %s", decode->last->message);
    return PL_OK;
}

static pl_decode decode_of(const pl_sparse_set *set, const pl_sparse_file *file,
                           const pl_sparse_block *block)
{
    return (pl_decode) {
        .file = file,
        .block = block,
        .opts = &set->opts,
        .bound = set->bound,
        .allowed = set->opts.skip_bad,
    };
}

/* The bytes of a block, in memory that cannot change; *copy is to be freed, or
 * NULL. */
static pl_status hold_block(pl_decode *decode, uint8_t **copy)
{
    const pl_sparse_file *file = decode->file;
    uint64_t offset = decode->block->offset, bytes = decode->block->bytes;
    *copy = NULL;
    decode->data = file->data + offset;
    decode->spare = file->bytes - offset - bytes;
    if (!pl_map_shared(&file->map))
        return PL_OK;
    *copy = pl_mem_resize(NULL, bytes + PL_SPARSE_SPARE, 1);
    PL_TRY(pl_mem_check(*copy, bytes + PL_SPARSE_SPARE, 1));
    memset(*copy + bytes, 0, PL_SPARSE_SPARE);
    decode->data = *copy;
    decode->spare = PL_SPARSE_SPARE;
    return pl_map_copy(&file->map, offset, *copy, bytes);
}

static pl_status decode_block(const pl_sparse_set *set, pl_decode *decode,
                              pl_sparse_rows *rows)
{
    uint8_t *copy;
    pl_status status = hold_block(decode, &copy);
    if (status == PL_OK)
        status = set->format->decode(decode, rows);
    if (status == PL_OK && rows->count + decode->bad < decode->block->rows)
        status = changed(decode, rows->count + decode->bad);
    pl_mem_free(copy);
    return status;
}

pl_status pl_sparse_set_decode(pl_sparse_set *set, int64_t index,
                               pl_sparse_rows *rows)
{
    pl_error last;
    pl_sparse_block *block = &set->blocks.list[index];
    pl_decode decode = decode_of(set, &set->files[block->file], block);
    decode.last = &last;
    pl_sparse_rows_clear(rows);
    pl_status status = decode_block(set, &decode, rows);
    if (status != PL_OK && (status != PL_FORMAT || decode.bad == 0))
        return status;
    pl_mutex_lock(&set->lock);
    pl_status counted = account(set, block, &decode);
    pl_mutex_unlock(&set->lock);
    return counted != PL_OK ? counted : status;
}

int64_t pl_sparse_set_bad(pl_sparse_set *set)
{
    pl_mutex_lock(&set->lock);
    int64_t bad = set->bad;
    pl_mutex_unlock(&set->lock);
    return bad;
}

/* A job over all blocks; the error of the first block that failed is kept. */
typedef struct sweep {
    pl_sparse_set *set;
    int64_t first;        /* block of item 0 */
    pl_sparse_rows *rows; /* one per thread or item; NULL: only count */
    bool keep;            /* rows belong to items */
    pl_mutex lock;
    int64_t failed; /* the block; guarded by lock, as is `error` */
    pl_error error;
} sweep;

static pl_status sweep_one(sweep *s, int64_t index, int item, int thread)
{
    pl_sparse_set *set = s->set;
    if (s->rows != NULL)
        return pl_sparse_set_decode(set, index,
                                    &s->rows[s->keep ? item : thread]);
    pl_sparse_block *block = &set->blocks.list[index];
    pl_decode decode = decode_of(set, &set->files[block->file], block);
    return set->format->count(&decode, &block->rows);
}

static void run_item(void *arg, int item, int thread)
{
    sweep *s = arg;
    int64_t index = s->first + item;
    pl_status status = sweep_one(s, index, item, thread);
    if (status == PL_OK)
        return;
    pl_mutex_lock(&s->lock);
    if (s->error.status == PL_OK || index < s->failed) {
        pl_error_save(&s->error, status);
        s->failed = index;
    }
    pl_mutex_unlock(&s->lock);
}

/* Append the rows of a group of blocks. */
static pl_status collect(pl_sparse_set *set, const pl_sparse_rows *rows,
                         int count)
{
    for (int i = 0; i < count; i++)
        PL_TRY(pl_sparse_rows_append(&set->rows, &rows[i], 0, rows[i].count));
    return PL_OK;
}

/* Process all blocks on the pool: count them, scan them or, with `keep`, keep
 * their rows. */
static pl_status sweep_all(pl_sparse_set *set, pl_pool *pool, bool decode,
                           bool keep)
{
    sweep s = { .set = set, .keep = keep };
    int group = GROUP * pl_pool_threads(pool);
    pl_status status = PL_OK;
    if (decode)
        PL_TRY(PL_NEW(s.rows, (size_t)group));
    pl_mutex_init(&s.lock);
    for (; s.first < set->blocks.count && status == PL_OK; s.first += group) {
        int64_t left = set->blocks.count - s.first;
        int items = left < group ? (int)left : group;
        pl_pool_run(pool, items, run_item, &s);
        if (s.error.status != PL_OK)
            status = pl_error_raise(&s.error);
        else if (keep)
            status = collect(set, s.rows, items);
    }
    pl_mutex_close(&s.lock);
    for (int i = 0; decode && i < group; i++)
        pl_sparse_rows_close(&s.rows[i]);
    pl_mem_free(s.rows);
    return status;
}

static uint64_t total_bytes(const pl_sparse_set *set)
{
    uint64_t total = 0;
    for (int32_t i = 0; i < set->file_count; i++)
        total += set->files[i].bytes;
    return total;
}

/* Divide the files into blocks and count their examples. */
static pl_status make_blocks(pl_sparse_set *set, pl_pool *pool)
{
    uint64_t target = total_bytes(set) / BLOCKS_WANTED;
    target = target > BLOCK_BYTES ? BLOCK_BYTES : target;
    target = target < BLOCK_LEAST ? BLOCK_LEAST : target;
    for (int32_t i = 0; i < set->file_count; i++) {
        pl_decode decode = decode_of(set, &set->files[i], NULL);
        PL_TRY(set->format->split(&set->blocks, &decode, i, target));
    }
    if (set->format->count != NULL)
        PL_TRY(sweep_all(set, pool, false, false));
    for (int32_t i = 0; i < set->file_count; i++)
        PL_TRY(pl_map_check(&set->files[i].map));
    set->base.count = 0;
    for (int64_t b = 0; b < set->blocks.count; b++)
        set->base.count += set->blocks.list[b].rows;
    if (set->base.count == 0)
        return PL_FAIL(PL_FORMAT, "%s: no examples", set->files[0].path);
    return PL_OK;
}

/* --features, what the files state, or the largest id in them. */
static pl_status find_width(pl_sparse_set *set, pl_pool *pool)
{
    int64_t *width = &set->base.feature_count;
    *width = set->opts.features;
    if (*width == 0)
        *width = set->format->features;
    if (*width == 0 && set->format->width != NULL) {
        for (int32_t i = 0; i < set->file_count; i++) {
            int64_t stated = 0;
            PL_TRY(set->format->width(&set->files[i], &stated));
            *width = stated > *width ? stated : *width;
        }
    }
    set->bound = *width > 0 ? (uint64_t)*width : PL_SPARSE_ID_MOST + 1;
    if (!set->in_memory && *width == 0 && !set->opts.any_ids) {
        pl_log(PL_LOG_INFO,
               "%s: searching for the largest id; --features saves this pass",
               set->base.name);
        PL_TRY(sweep_all(set, pool, true, false));
    } else if (set->in_memory) {
        PL_TRY(sweep_all(set, pool, true, true));
    }
    if (*width == 0 && !set->opts.any_ids)
        *width = (int64_t)set->largest + 1;
    return PL_OK;
}

/* Fill in the base for examples in memory. */
static pl_status describe_memory(pl_sparse_set *set)
{
    pl_dataset *base = &set->base;
    base->count = set->rows.count;
    if (base->count == 0)
        return PL_FAIL(PL_FORMAT, "%s: none of the examples is valid",
                       set->files[0].path);
    base->ops = &memory_ops;
    base->held_bytes = pl_sparse_rows_bytes(&set->rows);
    base->row_start = set->rows.start;
    base->ids = set->rows.ids;
    base->values = set->rows.weighted ? set->rows.values : NULL;
    base->labels = (pl_view) {
        .data = set->rows.labels,
        .stride = 1,
        .dtype = PL_INT32,
        .scale = 1.0f,
    };
    return PL_OK;
}

/* All files of a set must have the same numbering of ids. */
static pl_status check_numbering(pl_sparse_set *set)
{
    uint32_t (*of)(const pl_sparse_file *) = set->format->numbering;
    for (int32_t i = 0; i < set->file_count && of != NULL; i++) {
        uint32_t here = of(&set->files[i]);
        if (i > 0 && here != set->base.numbering)
            return PL_FAIL(PL_FORMAT,
                           "%s and %s number their ids differently; convert "
                           "both with the same --renumber FILE",
                           set->files[0].path, set->files[i].path);
        set->base.numbering = here;
    }
    return PL_OK;
}

static pl_status load(pl_sparse_set *set)
{
    pl_pool *pool;
    PL_TRY(pl_pool_new(&pool, set->opts.threads));
    pl_status status = make_blocks(set, pool);
    if (status == PL_OK)
        status = check_numbering(set);
    if (status == PL_OK) {
        set->in_memory =
            set->opts.shuffle_buffer == 0 && total_bytes(set) <= MEMORY_BYTES;
        status = find_width(set, pool);
    }
    if (status == PL_OK && set->in_memory)
        status = describe_memory(set);
    pl_pool_free(pool);
    if (status == PL_OK && set->opts.shuffle_buffer == 0)
        set->opts.shuffle_buffer = WINDOW_ROWS;
    set->base.shape = PL_SHAPE(set->base.feature_count);
    return status;
}

static pl_status set_new(pl_sparse_set **out, const pl_sparse_format *format,
                         const char *pattern, const pl_source_opts *opts)
{
    pl_sparse_set *set;
    PL_TRY(PL_NEW(set, 1));
    set->base.ops = &stream_ops;
    set->base.sparse = true;
    set->base.classes = 2;
    set->format = format;
    set->opts = *opts;
    if (set->opts.threads == 0)
        set->opts.threads = pl_thread_cores();
    pl_mutex_init(&set->lock);
    pl_status status =
        pl_mem_format(&set->base.name, "%s:%s", format->name, pattern);
    if (status == PL_OK)
        *out = set;
    else
        release(&set->base);
    return status;
}

pl_status pl_sparse_open(pl_dataset **out, const pl_sparse_format *format,
                         const char *pattern, const pl_source_opts *opts)
{
    pl_sparse_set *set;
    PL_TRY(set_new(&set, format, pattern, opts));
    pl_status status = pl_sparse_files_new(&set->files, &set->file_count,
                                           format, pattern, opts);
    if (status == PL_OK)
        status = load(set);
    if (status == PL_OK)
        *out = &set->base;
    else
        release(&set->base);
    return status == PL_OK ? PL_OK : pl_context(status, "%s", format->name);
}

pl_status pl_sparse_open_memory(pl_dataset **out,
                                const pl_sparse_format *format,
                                const uint8_t *data, size_t bytes,
                                const pl_source_opts *opts)
{
    pl_sparse_set *set;
    PL_TRY(set_new(&set, format, "memory", opts));
    pl_status status =
        pl_sparse_files_new_memory(&set->files, format, data, bytes, opts);
    if (status == PL_OK) {
        set->file_count = 1;
        status = load(set);
    }
    if (status == PL_OK)
        *out = &set->base;
    else
        release(&set->base);
    return status;
}
