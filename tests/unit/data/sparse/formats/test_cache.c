#include "support/folder.h"
#include "support/sparse.h"

#include "base/rng.h"
#include "data/sparse/formats/cache.h"
#include "data/sparse/formats/writer.h"

#include <stdlib.h>

/* Rows by a seed: of `length` ids, or of 0 .. -length-1 ones. */
static void make_rows(pl_sparse_rows *rows, int64_t count, int64_t length,
                      uint64_t span, bool weighted)
{
    *rows = (pl_sparse_rows) { .count = 0 };
    int64_t used = 0, most = length < 0 ? -length : length;
    assert_ok(pl_sparse_rows_reserve(rows, count, count * most + 1));
    for (int64_t r = 0; r < count; r++) {
        int64_t ids =
            length >= 0 ? length
                        : (int64_t)pl_rng_below(7, (uint64_t)r, (uint32_t)most);
        for (int64_t i = 0; i < ids; i++, used++) {
            rows->ids[used] = pl_rng_u64(1, (uint64_t)used) % span;
            rows->values[used] =
                weighted ? (float)pl_rng_uniform(2, (uint64_t)used) : 1;
        }
        rows->labels[r] = (int32_t)pl_rng_below(3, (uint64_t)r, 2);
        rows->start[r + 1] = used;
    }
    rows->count = count;
    rows->weighted = weighted && used > 0;
}

static void assert_same(const pl_sparse_rows *a, const pl_sparse_rows *b)
{
    int64_t ids = pl_sparse_rows_ids(a);
    assert_int_equal(a->count, b->count);
    assert_int_equal(ids, pl_sparse_rows_ids(b));
    assert_int_equal(a->weighted, b->weighted);
    assert_memory_equal(a->start, b->start, (size_t)(a->count + 1) * 8);
    assert_memory_equal(a->labels, b->labels, (size_t)a->count * 4);
    assert_memory_equal(a->ids, b->ids, (size_t)ids * 8);
    if (a->weighted)
        assert_memory_equal(a->values, b->values, (size_t)ids * 4);
}

static void cache_blocks_round_trip(void **state)
{
    (void)state;
    static const struct {
        int64_t count, length;
        uint64_t span;
        bool weighted;
    } cases[] = {
        { 1, 1, 1, false },
        { 100, 39, 33762578, false },
        { 33, 7, 1000, true },
        { 100, 3, UINT64_MAX / 2, false },
        { 9, 2, UINT64_MAX / 128, false },
        { 9, 2, UINT64_MAX / 256, true },
        { 50, -20, 500000, false },
        { 50, -20, UINT64_MAX / 2, true },
        { 5, 0, 1, false },
        { 3, 5000, 100, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_sparse_rows rows, back = { .count = 0 };
        pl_cache_bytes bytes = { NULL, 0, 0 };
        uint64_t largest = 0;
        make_rows(&rows, cases[i].count, cases[i].length, cases[i].span,
                  cases[i].weighted);
        assert_ok(pl_cache_encode(&bytes, &rows));
        assert_ok(pl_cache_decode(&back, bytes.data, bytes.used, UINT64_MAX,
                                  &largest));
        assert_same(&rows, &back);
        if (pl_sparse_rows_ids(&rows) > 0) /* one too large */
            assert_fails(PL_FORMAT, "expected ids below",
                         pl_cache_decode(&back, bytes.data, bytes.used, largest,
                                         &largest));
        bytes.data[bytes.used / 2] ^= 4;
        assert_fails(PL_FORMAT, "checksum",
                     pl_cache_decode(&back, bytes.data, bytes.used, UINT64_MAX,
                                     &largest));
        pl_sparse_rows_close(&rows);
        pl_sparse_rows_close(&back);
        pl_mem_free(bytes.data);
    }
    assert_int_equal(0, pl_mem_live());
}

static const char text[] = "1 3:1 9:1\n0 2:0.5\n0\n1 1:1 5:1 70000000:1\n";

static pl_status convert(const char *target, const char *from)
{
    pl_dataset *set;
    pl_reader *reader = NULL;
    pl_sparse_writer *writer = NULL;
    pl_batch batch = { .rows = 0 };
    pl_source_opts opts = { .threads = 1 };
    PL_TRY(pl_sparse_open_memory(&set, &pl_libsvm_format, (const uint8_t *)from,
                                 strlen(from), &opts));
    pl_status status = pl_sparse_writer_new(&writer, target, &opts);
    if (status == PL_OK)
        status = pl_reader_new(
            &reader, set, &(pl_reader_opts) { .batch = 3, .one_pass = true });
    do {
        if (status == PL_OK)
            status = pl_reader_next(reader, &batch);
        if (status == PL_OK)
            status = pl_sparse_writer_put(writer, &batch);
    } while (status == PL_OK && batch.rows > 0);
    if (status == PL_OK)
        status = pl_sparse_writer_finish(writer);
    pl_sparse_writer_free(writer);
    pl_reader_free(reader);
    pl_dataset_free(set);
    return status;
}

static pl_status open_cache(pl_dataset **out, const char *path)
{
    return pl_sparse_open(out, &pl_cache_format, path,
                          &(pl_source_opts) { .threads = 1 });
}

/* "cache:folder/name" */
static const char *target_of(const char *format, const char *path)
{
    static char target[600];
    snprintf(target, sizeof target, "%s:%s", format, path);
    return target;
}

static void cache_files_hold_what_was_converted(void **state)
{
    const char *path = test_path(*state, "a");
    char got[512], *back;
    pl_dataset *set;
    assert_ok(convert(target_of("cache", path), text));
    assert_ok(open_cache(&set, path));
    assert_int_equal(4, set->count);
    assert_int_equal(70000001, set->feature_count);
    assert_string_equal("1 3:1 9:1|0 2:0.5|0|1 1:1 5:1 70000000:1|",
                        sparse_pass(set, 3, got, sizeof got));
    pl_dataset_free(set);

    assert_ok(convert(target_of("libsvm", path), text));
    assert_ok(pl_file_read_text(&back, path, 1000));
    assert_string_equal(text, back);
    pl_mem_free(back);
    assert_int_equal(0, pl_mem_live());
}

static void cache_files_of_many_blocks_are_read_whole(void **state)
{
    const char *path = test_path(*state, "a");
    char *many = malloc(20 * 10000 + 1);
    size_t used = 0;
    for (int i = 0; i < 10000; i++)
        used += (size_t)sprintf(many + used, "%d %d:1\n", i % 2, i);
    assert_ok(convert(target_of("cache", path), many));
    pl_dataset *set;
    assert_ok(open_cache(&set, path));
    assert_int_equal(10000, set->count);
    for (int64_t i = 0; i < 10000; i++)
        assert_int_equal(i, set->ids[i]);
    pl_dataset_free(set);
    free(many);
}

static void cache_damage_is_named(void **state)
{
    const char *path = test_path(*state, "a");
    pl_map map;
    pl_dataset *set;
    assert_ok(convert(target_of("cache", path), text));
    assert_ok(pl_map_init(&map, path));
    size_t bytes = map.bytes;
    uint8_t *copy = malloc(bytes);
    static const struct {
        size_t at; /* from the end where it is large */
        const char *message;
    } cases[] = {
        { 0, "not a cache file" },
        { 8, "cache of version" },
        { 20, "block at byte 16: checksum" },
        { SIZE_MAX - 1, "no sound footer" },
        { SIZE_MAX - 20, "no sound footer" },
        { SIZE_MAX - 60, "checksum of the index" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t at = cases[i].at;
        memcpy(copy, map.data, bytes);
        copy[at < bytes ? at : bytes - (SIZE_MAX - at)] ^= 1;
        assert_ok(pl_file_replace(path, copy, bytes));
        assert_fails(PL_FORMAT, cases[i].message, open_cache(&set, path));
    }
    for (size_t cut = 0; cut < bytes; cut++) {
        assert_ok(pl_file_replace(path, map.data, cut));
        assert_int_equal(PL_FORMAT, open_cache(&set, path));
    }
    memcpy(copy, map.data, bytes);
    copy[20] ^= 1; /* a whole block is bad */
    assert_ok(pl_file_replace(path, copy, bytes));
    assert_fails(
        PL_FORMAT, "none of the examples is valid",
        pl_sparse_open(&set, &pl_cache_format, path,
                       &(pl_source_opts) { .threads = 1, .skip_bad = 4 }));
    free(copy);
    pl_map_close(&map);
    assert_int_equal(0, pl_mem_live());
}

static void writing_survives_each_failed_allocation(void **state)
{
    const char *target = target_of("cache", test_path(*state, "a"));
    assert_survives_failed_allocations(convert(target, text), (void)0);
}

static void unknown_targets_are_refused(void **state)
{
    (void)state;
    static const char *const targets[] = { "x", "idx:a", "cache:", "cach:a" };
    pl_sparse_writer *writer;
    for (size_t i = 0; i < 4; i++)
        assert_fails(PL_USAGE, "cannot be written, expected libsvm:FILE",
                     pl_sparse_writer_new(&writer, targets[i], NULL));
}

UNIT_TESTS(cmocka_unit_test(cache_blocks_round_trip),
           TEST_IN_FOLDER(cache_files_hold_what_was_converted),
           TEST_IN_FOLDER(cache_files_of_many_blocks_are_read_whole),
           TEST_IN_FOLDER(cache_damage_is_named),
           TEST_IN_FOLDER(writing_survives_each_failed_allocation),
           cmocka_unit_test(unknown_targets_are_refused))
