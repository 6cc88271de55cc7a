/* digits.c - makes the built-in data set, or maps it from its cache file after
 * checking that the file was written by this generator and is complete. */
#include "data/digits/digits.h"

#include "base/file/file.h"
#include "base/hash/crc32c.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "data/digits/digits_priv.h"

#include <string.h>

#define BLOCK 128 /* images a thread takes at a time */

/* The cache file: a header, the images, the labels.  All numbers are
 * little-endian. */
#define HEADER_BYTES 64
#define CACHE_FORMAT 1
static const char magic[8] = "PLDIGITS";

typedef struct digits_dataset {
    pl_dataset base;
    uint32_t first; /* of the set's images */
    uint8_t *made;  /* images, then labels; NULL when mapped */
    pl_map map;     /* the cache file; empty when images were made */
    uint8_t *kept;  /* labels of the cache file: they index memory */
} digits_dataset;

static void release(pl_dataset *base)
{
    digits_dataset *set = (digits_dataset *)base;
    pl_map_close(&set->map);
    pl_mem_free(set->kept);
    pl_mem_free(set->made);
    pl_mem_free(set->base.name);
    pl_mem_free(set);
}

static const pl_map *source(const pl_dataset *base)
{
    return &((const digits_dataset *)base)->map;
}

static const pl_dataset_ops digits_ops = {
    .kind = "digits",
    .free = release,
    .source = source,
};

static size_t payload_bytes(const digits_dataset *set)
{
    return (size_t)set->base.count * (PL_DIGITS_PIXELS + 1);
}

static void use(digits_dataset *set, const uint8_t *payload)
{
    set->base.features.data = payload;
    set->base.labels.data = payload + set->base.count * PL_DIGITS_PIXELS;
}

static void put(uint8_t **at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        *(*at)++ = (uint8_t)(value >> (8 * i));
}

/* The only valid header of this set's cache file. */
static void make_header(uint8_t header[HEADER_BYTES], const digits_dataset *set,
                        uint32_t checksum)
{
    memset(header, 0, HEADER_BYTES);
    memcpy(header, magic, sizeof magic);
    uint8_t *at = header + sizeof magic;
    put(&at, CACHE_FORMAT, 4);
    put(&at, PL_DIGITS_GENERATOR, 4);
    put(&at, PL_DIGITS_SEED, 8);
    put(&at, set->first, 4);
    put(&at, (uint64_t)set->base.count, 4);
    put(&at, PL_DIGITS_SIDE, 4);
    put(&at, PL_DIGITS_SIDE, 4);
    put(&at, checksum, 4);
}

/* PL_FORMAT when the file is not what this generator writes. */
static pl_status check(const digits_dataset *set, const pl_map *map,
                       const char *path)
{
    size_t bytes = payload_bytes(set);
    if (map->bytes != HEADER_BYTES + bytes)
        return PL_FAIL(PL_FORMAT, "%s: %zu bytes, expected %zu", path,
                       map->bytes, HEADER_BYTES + bytes);
    uint8_t header[HEADER_BYTES];
    make_header(header, set, pl_crc32c(0, map->data + HEADER_BYTES, bytes));
    if (memcmp(header, map->data, HEADER_BYTES) != 0)
        return PL_FAIL(PL_FORMAT,
                       "%s: of another version, or its checksum is wrong",
                       path);
    return PL_OK;
}

/* Copy the labels, then check the copy. */
static pl_status keep_labels(digits_dataset *set, const char *path)
{
    size_t count = (size_t)set->base.count;
    PL_TRY(PL_NEW(set->kept, count));
    memcpy(set->kept, set->base.labels.data, count);
    set->base.labels.data = set->kept;
    for (size_t i = 0; i < count; i++)
        if (set->kept[i] >= set->base.classes)
            return PL_FAIL(PL_FORMAT, "%s changed while it was read", path);
    return pl_map_check(&set->map);
}

static pl_status load(digits_dataset *set, const char *path)
{
    pl_map map;
    PL_TRY(pl_map_init(&map, path));
    pl_status status = check(set, &map, path);
    if (status != PL_OK) {
        pl_map_close(&map);
        return status;
    }
    set->map = map;
    use(set, map.data + HEADER_BYTES);
    status = keep_labels(set, path);
    if (status != PL_OK) {
        pl_map_close(&set->map);
        pl_mem_free(set->kept);
        set->kept = NULL;
    }
    return status;
}

static void draw_block(void *arg, int item, int thread)
{
    (void)thread;
    digits_dataset *set = arg;
    uint32_t count = (uint32_t)set->base.count;
    uint8_t *labels = set->made + (size_t)count * PL_DIGITS_PIXELS;
    uint32_t from = (uint32_t)item * BLOCK;
    for (uint32_t i = from; i < from + BLOCK && i < count; i++)
        labels[i] = pl_digits_draw(set->made + (size_t)i * PL_DIGITS_PIXELS,
                                   set->first + i);
}

static pl_status draw_all(digits_dataset *set, int threads)
{
    pl_pool *pool;
    PL_TRY(PL_NEW_ALIGNED(set->made, payload_bytes(set)));
    set->base.held_bytes = (int64_t)payload_bytes(set);
    PL_TRY(pl_pool_new(&pool, threads > 0 ? threads : pl_thread_cores()));
    int blocks = (int)((set->base.count + BLOCK - 1) / BLOCK);
    pl_pool_run(pool, blocks, draw_block, set);
    pl_pool_free(pool);
    use(set, set->made);
    return PL_OK;
}

static pl_status store(const digits_dataset *set, const char *folder,
                       const char *path)
{
    pl_status status;
    pl_file_writer *writer = NULL;
    size_t bytes = payload_bytes(set);
    uint8_t header[HEADER_BYTES];
    make_header(header, set, pl_crc32c(0, set->made, bytes));
    PL_TRY_OUT(status, pl_file_make_folder(folder));
    PL_TRY_OUT(status, pl_file_writer_new(&writer, path));
    PL_TRY_OUT(status, pl_file_writer_put(writer, header, HEADER_BYTES));
    PL_TRY_OUT(status, pl_file_writer_put(writer, set->made, bytes));
    PL_TRY_OUT(status, pl_file_writer_commit(writer));
out:
    pl_file_writer_free(writer);
    return status;
}

/* Map the images, or draw and keep them.  Only lack of memory is an error: any
 * other problem with the cache costs time and is logged. */
static pl_status load_or_draw(digits_dataset *set, const char *folder,
                              const char *path, int threads)
{
    pl_status status = load(set, path);
    if (status == PL_OK || status == PL_NOMEM)
        return status;
    if (status != PL_NOTFOUND)
        pl_log(PL_LOG_DEBUG, "digits: generated again: %s", pl_error_message());
    PL_TRY(draw_all(set, threads));
    status = store(set, folder, path);
    if (status == PL_OK || status == PL_NOMEM)
        return status;
    /* Both splits fail alike; warn only for the large one. */
    pl_log_level level = set->first == 0 ? PL_LOG_WARN : PL_LOG_DEBUG;
    pl_log(level,
           "digits: generated at each start, since they cannot be "
           "cached: %s",
           pl_error_message());
    return PL_OK;
}

static pl_status fill(digits_dataset *set, const pl_source_opts *opts)
{
    PL_TRY(pl_mem_copy_text(&set->base.name, "digits"));
    if (opts->cache_dir == NULL)
        return draw_all(set, opts->threads);
    char *path;
    const char *split = set->first == 0 ? "train" : "test";
    PL_TRY(pl_mem_format(&path, "%s/digits-%s.cache", opts->cache_dir, split));
    pl_status status = load_or_draw(set, opts->cache_dir, path, opts->threads);
    pl_mem_free(path);
    return status;
}

pl_status pl_digits_open(pl_dataset **out, pl_split split,
                         const pl_source_opts *opts)
{
    bool train = split == PL_SPLIT_TRAIN;
    digits_dataset *set;
    PL_TRY(PL_NEW(set, 1));
    set->first = train ? 0 : PL_DIGITS_TRAIN;
    set->base.ops = &digits_ops;
    set->base.count = train ? PL_DIGITS_TRAIN : PL_DIGITS_TEST;
    set->base.shape = PL_SHAPE(PL_DIGITS_SIDE, PL_DIGITS_SIDE);
    set->base.classes = 10;
    set->base.features = (pl_view) {
        .stride = PL_DIGITS_PIXELS,
        .dtype = PL_UINT8,
        .scale = 1.0f / 255.0f,
    };
    set->base.labels = (pl_view) {
        .stride = 1,
        .dtype = PL_UINT8,
        .scale = 1.0f,
    };
    pl_status status = fill(set, opts);
    if (status != PL_OK) {
        release(&set->base);
        return pl_context(status, "digits");
    }
    *out = &set->base;
    return PL_OK;
}
