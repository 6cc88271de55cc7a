/* image_set.c - decodes the files of a folder, chunk by chunk with all
 * threads, into a cache file that is then mapped.
 *
 * A cache file is: the pixels of all good images, a byte for each file (1:
 * good), a footer of 64 bytes.  Its name is a digest of everything it depends
 * on: the options and each file's name, size and time of change.  When it
 * cannot be written the pixels stay in memory.  Of several broken files the
 * first one is reported. */
#include "data/images/image_set.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/file/file.h"
#include "base/hash/crc32c.h"
#include "base/hash/sha256.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/thread.h"
#include "data/dense/set.h"
#include "data/images/folder.h"
#include "tensor/shape.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FOOTER_BYTES 64
#define CHUNK_BYTES  ((size_t)32 << 20)
#define FILE_MOST    ((size_t)256 << 20) /* of one image */

static const char magic[8] = { 'P', 'L', 'I', 'M', 'A', 'G', 'E', '1' };

typedef struct loader {
    const pl_source_opts *opts;
    pl_image_list list;
    uint32_t *order; /* file number of each place */
    pl_image_form form;
    size_t row; /* bytes of an image */
    pl_pool *pool;
    /* The current chunk: places first .. first + chunk - 1. */
    size_t first, chunk;
    uint8_t *pixels; /* [chunk, row] */
    uint8_t *good;   /* [count] */
    size_t good_count, broken;
    pl_mutex lock;
    size_t failed; /* the first place that failed in the chunk; lock */
    pl_error why;
    /* Destination of pixels: a file, or memory if that fails. */
    pl_file_writer *writer;
    uint32_t crc;
    uint8_t *memory;
    size_t used;
    pl_map map;
} loader;

static const char *name_at(const loader *l, size_t place)
{
    return l->list.files[l->order[place]].name;
}

/* Training examples are shuffled, so that a held-out part has all classes. */
static pl_status make_order(loader *l, pl_split split)
{
    size_t count = l->list.count;
    PL_TRY(PL_NEW(l->order, count));
    for (size_t i = 0; i < count; i++)
        l->order[i] = (uint32_t)i;
    if (split == PL_SPLIT_TRAIN && !l->opts->unlabelled)
        pl_rng_permute(pl_rng_key_text(0, "images"), count, 0, (uint32_t)count,
                       l->order);
    return PL_OK;
}

static pl_status read_file(const loader *l, size_t place, pl_map *map)
{
    char *path;
    PL_TRY(pl_file_join(&path, l->list.folder, name_at(l, place)));
    pl_status status = pl_map_read(map, path, FILE_MOST);
    pl_mem_free(path);
    return status;
}

/* Take size and colors from the first image that can be read. */
static pl_status find_form(loader *l)
{
    pl_status status = PL_OK;
    PL_TRY(pl_image_form_init(&l->form, l->opts));
    for (size_t i = 0; i < l->list.count; i++) {
        pl_map map = { .data = NULL };
        if (l->form.width > 0 && l->form.channels > 0)
            return PL_OK;
        status = read_file(l, i, &map);
        if (status == PL_OK)
            status = pl_image_form_measure(&l->form, map.data, map.bytes);
        pl_map_close(&map);
        if (status == PL_OK)
            return PL_OK;
        if (l->opts->skip_bad == 0)
            return pl_context(status, "%s/%s", l->list.folder, name_at(l, i));
    }
    return status;
}

static pl_status decode(const loader *l, size_t place)
{
    pl_map map;
    PL_TRY(read_file(l, place, &map));
    pl_status status = pl_image_form_decode(
        &l->form, map.data, map.bytes, l->pixels + (place - l->first) * l->row);
    pl_map_close(&map);
    return status == PL_OK
               ? PL_OK
               : pl_context(status, "%s/%s", l->list.folder, name_at(l, place));
}

static void decode_one(void *arg, int item, int thread)
{
    (void)thread;
    loader *l = arg;
    size_t place = l->first + (size_t)item;
    pl_status status = decode(l, place);
    l->good[place] = status == PL_OK;
    if (status == PL_OK)
        return;
    pl_mutex_lock(&l->lock);
    if (place < l->failed) {
        l->failed = place;
        pl_error_save(&l->why, status);
    }
    pl_mutex_unlock(&l->lock);
}

/* A broken file ends the load, or is skipped within --skip-bad. */
static pl_status judge(loader *l)
{
    for (size_t i = l->first; i < l->first + l->chunk; i++)
        l->broken += l->good[i] == 0;
    if (l->broken > (size_t)l->opts->skip_bad) {
        pl_status status = pl_error_raise(&l->why);
        return l->opts->skip_bad > 0
                   ? pl_context(status, "more than --skip-bad %lld images",
                                (long long)l->opts->skip_bad)
                   : pl_context(status,
                                "skip damaged images with --skip-bad N");
    }
    for (size_t i = l->first; i < l->first + l->chunk; i++)
        if (l->good[i] == 0)
            pl_log(PL_LOG_WARN, "skipped: %s/%s cannot be read as an image",
                   l->list.folder, name_at(l, i));
    return PL_OK;
}

static pl_status put(loader *l, const uint8_t *data, size_t bytes)
{
    if (l->writer != NULL) {
        l->crc = pl_crc32c(l->crc, data, bytes);
        return pl_file_writer_put(l->writer, data, bytes);
    }
    memcpy(l->memory + l->used, data, bytes);
    l->used += bytes;
    return PL_OK;
}

static pl_status decode_chunk(loader *l)
{
    l->failed = SIZE_MAX;
    pl_pool_run(l->pool, (int)l->chunk, decode_one, l);
    if (l->failed != SIZE_MAX)
        PL_TRY(judge(l));
    for (size_t i = 0; i < l->chunk; i++)
        if (l->good[l->first + i] != 0) {
            l->good_count++;
            PL_TRY(put(l, l->pixels + i * l->row, l->row));
        }
    return PL_OK;
}

static pl_status decode_all(loader *l)
{
    size_t chunk = CHUNK_BYTES / l->row;
    chunk = chunk < 16 ? 16 : chunk > 1024 ? 1024 : chunk;
    PL_TRY(PL_NEW_ALIGNED(l->pixels, chunk * l->row));
    PL_TRY(pl_pool_new(&l->pool, l->opts->threads > 0 ? l->opts->threads
                                                      : pl_thread_cores()));
    for (l->first = 0; l->first < l->list.count; l->first += l->chunk) {
        size_t left = l->list.count - l->first;
        l->chunk = left < chunk ? left : chunk;
        PL_TRY(decode_chunk(l));
        if (l->opts->progress != NULL)
            l->opts->progress("decoded images", (int64_t)(l->first + l->chunk),
                              (int64_t)l->list.count);
    }
    return l->good_count > 0
               ? PL_OK
               : PL_FAIL(PL_FORMAT, "%s: none of the images can be read",
                         l->list.folder);
}

/* --- the cache ---------------------------------------------------------- */

static void make_footer(const loader *l, uint8_t footer[FOOTER_BYTES])
{
    memset(footer, 0, FOOTER_BYTES);
    memcpy(footer, magic, sizeof magic);
    pl_put_u64(footer + 8, l->list.count);
    pl_put_u64(footer + 16, l->good_count);
    pl_put_u64(footer + 24, l->row);
    pl_put_u32(footer + 32, (uint32_t)l->form.width);
    pl_put_u32(footer + 36, (uint32_t)l->form.height);
    pl_put_u32(footer + 40, (uint32_t)l->form.channels);
    pl_put_u32(footer + 44, pl_crc32c(l->crc, l->good, l->list.count));
}

static pl_status hash_file(pl_sha256 *sha, const loader *l, size_t place)
{
    char *path;
    struct stat info = { .st_size = 0 };
    const pl_image_file *file = &l->list.files[l->order[place]];
    PL_TRY(pl_file_join(&path, l->list.folder, file->name));
    (void)stat(path, &info); /* a missing file fails when it is read */
    pl_mem_free(path);
    uint8_t facts[24];
    pl_put_u64(facts, (uint64_t)info.st_size);
    pl_put_u64(facts + 8, (uint64_t)info.st_mtim.tv_sec);
    pl_put_u64(facts + 16, (uint64_t)info.st_mtim.tv_nsec);
    pl_sha256_update(sha, file->name, strlen(file->name) + 1);
    pl_sha256_update(sha, facts, sizeof facts);
    return PL_OK;
}

/* "DIR/images-0123456789abcdef.cache" */
static pl_status name_cache(const loader *l, char **out)
{
    pl_sha256 sha;
    uint8_t digest[PL_SHA256_BYTES];
    char text[PL_SHA256_TEXT];
    pl_sha256_init(&sha);
    int used = snprintf(text, sizeof text, "%dx%dx%d %d ", l->form.width,
                        l->form.height, l->form.channels, l->form.given);
    pl_sha256_update(&sha, text, (size_t)used);
    pl_sha256_update(&sha, l->list.folder, strlen(l->list.folder) + 1);
    for (size_t i = 0; i < l->list.count; i++)
        PL_TRY(hash_file(&sha, l, i));
    pl_sha256_final(&sha, digest);
    pl_sha256_text(digest, text);
    return pl_mem_format(out, "%s/images-%.16s.cache", l->opts->cache_dir,
                         text);
}

/* A mapped cache is used only when it is exactly what would be written. */
static pl_status check_cache(loader *l, const pl_map *map)
{
    uint8_t footer[FOOTER_BYTES], expected[FOOTER_BYTES];
    size_t count = l->list.count;
    if (map->bytes < FOOTER_BYTES + count)
        return PL_FAIL(PL_FORMAT, "%zu bytes", map->bytes);
    PL_TRY(pl_map_copy(map, map->bytes - FOOTER_BYTES, footer, FOOTER_BYTES));
    l->good_count = (size_t)pl_get_u64(footer + 16);
    if (l->good_count < 1 || l->good_count > count ||
        map->bytes != l->good_count * l->row + count + FOOTER_BYTES)
        return PL_FAIL(PL_FORMAT, "%zu bytes for %zu images", map->bytes,
                       l->good_count);
    size_t pixels = l->good_count * l->row, good = 0;
    PL_TRY(pl_map_copy(map, pixels, l->good, count));
    for (size_t i = 0; i < count; i++)
        good += l->good[i] == 1;
    l->crc = pl_crc32c(0, map->data, pixels);
    make_footer(l, expected);
    if (good != l->good_count || memcmp(footer, expected, FOOTER_BYTES) != 0)
        return PL_FAIL(PL_FORMAT, "its checksum does not match");
    return pl_map_check(map);
}

static bool load_cache(loader *l, const char *path)
{
    pl_map map;
    pl_status status = pl_map_init(&map, path);
    if (status == PL_OK) {
        status = check_cache(l, &map);
        if (status == PL_OK)
            l->map = map;
        else
            pl_map_close(&map);
    }
    if (status == PL_OK &&
        l->list.count - l->good_count > (size_t)l->opts->skip_bad) {
        pl_map_close(&l->map);
        l->map = (pl_map) { .data = NULL };
        status = PL_NOTFOUND; /* decoding reports the broken file */
    } else if (status != PL_OK && status != PL_NOTFOUND) {
        pl_log(PL_LOG_DEBUG, "%s is made again: %s", path, pl_error_message());
    }
    l->crc = 0;
    if (status != PL_OK)
        l->good_count = 0;
    return status == PL_OK;
}

static pl_status store_cache(loader *l, const char *path)
{
    uint8_t footer[FOOTER_BYTES];
    PL_TRY(decode_all(l));
    make_footer(l, footer);
    PL_TRY(pl_file_writer_put(l->writer, l->good, l->list.count));
    PL_TRY(pl_file_writer_put(l->writer, footer, FOOTER_BYTES));
    PL_TRY(pl_file_writer_commit(l->writer));
    PL_TRY(pl_map_init(&l->map, path));
    l->crc = 0;
    return check_cache(l, &l->map);
}

static pl_status open_writer(loader *l, const char *path)
{
    PL_TRY(pl_file_make_folder(l->opts->cache_dir));
    return pl_file_writer_new(&l->writer, path);
}

static pl_status load_memory(loader *l)
{
    PL_TRY(PL_NEW_ALIGNED(l->memory, l->list.count * l->row));
    return decode_all(l);
}

static pl_status load(loader *l)
{
    char *path = NULL;
    PL_TRY(PL_NEW(l->good, l->list.count));
    if (l->opts->cache_dir == NULL || l->opts->unlabelled)
        return load_memory(l);
    PL_TRY(name_cache(l, &path));
    pl_status status = PL_OK;
    if (!load_cache(l, path)) {
        status = open_writer(l, path);
        if (status == PL_OK) {
            status = store_cache(l, path);
        } else if (status != PL_NOMEM) {
            pl_log(PL_LOG_WARN,
                   "images are decoded at each start, since they cannot be "
                   "cached: %s",
                   pl_error_message());
            status = load_memory(l);
        }
    }
    pl_mem_free(path);
    return status;
}

/* --- the set ------------------------------------------------------------ */

static pl_status make_labels(const loader *l, pl_dense_parts *parts)
{
    const pl_encoding *encoding = l->opts->encoding;
    size_t at = 0;
    parts->classes = (int32_t)l->list.class_count;
    if (encoding != NULL && encoding->fixed)
        parts->classes = 0; /* as many as the labels need */
    if (l->list.class_count == 0)
        return PL_OK;
    PL_TRY(PL_NEW(parts->labels, l->good_count));
    for (size_t i = 0; i < l->list.count; i++)
        if (l->good[i] != 0)
            parts->labels[at++] = l->list.files[l->order[i]].class;
    return PL_OK;
}

/* The names of the good images, stored after the pointers to them. */
static pl_status make_names(const loader *l, pl_dense_parts *parts)
{
    size_t bytes = 0, at = 0;
    for (size_t i = 0; i < l->list.count; i++)
        bytes += strlen(name_at(l, i)) + 1;
    char **names = pl_mem_alloc(1, l->good_count * sizeof *names + bytes);
    PL_TRY(pl_mem_check(names, 1, bytes));
    char *text = (char *)(names + l->good_count);
    for (size_t i = 0; i < l->list.count; i++)
        if (l->good[i] != 0) {
            names[at++] = text;
            text = stpcpy(text, name_at(l, i)) + 1;
        }
    parts->row_names = names;
    return PL_OK;
}

static pl_status make_set(pl_dataset **out, loader *l, const char *folder)
{
    pl_dense_parts parts = {
        .map = l->map,
        .memory = l->memory,
        .data = l->memory != NULL ? l->memory : l->map.data,
        .dtype = PL_UINT8,
        .count = (int64_t)l->good_count,
        .shape = pl_image_form_shape(&l->form),
    };
    l->map = (pl_map) { .data = NULL };
    l->memory = NULL;
    pl_status status = make_labels(l, &parts);
    if (status == PL_OK)
        status = make_names(l, &parts);
    if (status == PL_OK)
        status = pl_mem_format(&parts.name, "images:%s", folder);
    if (status == PL_OK)
        return pl_dense_set_new(out, &parts);
    pl_dense_parts_close(&parts);
    return status;
}

static pl_status open_list(loader *l, const char *folder, pl_split split)
{
    PL_TRY(pl_image_list_init(&l->list, folder, split, l->opts));
    PL_TRY(make_order(l, split));
    PL_TRY(find_form(l));
    l->row = (size_t)pl_shape_row(pl_image_form_shape(&l->form));
    if (l->row > (size_t)PL_SHAPE_ELEMENTS / l->list.count)
        return PL_FAIL(PL_UNSUPPORTED, "%zu images of %zu bytes are too many",
                       l->list.count, l->row);
    return load(l);
}

pl_status pl_images_open(pl_dataset **out, const char *folder, pl_split split,
                         const pl_source_opts *opts)
{
    loader l = { .opts = opts };
    pl_mutex_init(&l.lock);
    pl_status status = open_list(&l, folder, split);
    if (status == PL_OK)
        status = make_set(out, &l, folder);
    pl_mutex_close(&l.lock);
    pl_file_writer_free(l.writer);
    pl_pool_free(l.pool);
    pl_map_close(&l.map);
    pl_image_list_close(&l.list);
    pl_mem_free(l.memory);
    pl_mem_free(l.pixels);
    pl_mem_free(l.good);
    pl_mem_free(l.order);
    return status;
}
