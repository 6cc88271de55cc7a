#include "support/folder.h"
#include "support/sparse.h"

#include <zlib.h>
#include <zstd.h>

#define EXAMPLES 3000

/* Line i is "i%2 i:1": an example is known by its id. */
static char *make_text(int64_t first, int64_t count)
{
    char *text = malloc((size_t)count * 32 + 1);
    assert_non_null(text);
    size_t used = 0;
    text[0] = '\0';
    for (int64_t i = first; i < first + count; i++)
        used += (size_t)sprintf(text + used, "%d %lld:1\n", (int)(i % 2),
                                (long long)i);
    return text;
}

static const char *write_text(const char *folder, const char *name,
                              const char *text)
{
    const char *path = test_path(folder, name);
    assert_ok(pl_file_replace(path, text, strlen(text)));
    return path;
}

static pl_dataset *open_files(const char *pattern, int64_t buffer)
{
    pl_dataset *set;
    assert_ok(pl_sparse_open(
        &set, &pl_libsvm_format, pattern,
        &(pl_source_opts) { .threads = 2, .shuffle_buffer = buffer }));
    return set;
}

/* The ids of the next batches, one a row. */
static void read_ids(pl_reader *reader, int64_t batches, int64_t *ids)
{
    pl_batch batch;
    for (int64_t b = 0; b < batches; b++) {
        assert_ok(pl_reader_next(reader, &batch));
        for (int64_t r = 0; r < batch.rows; r++) {
            int64_t s = batch.row_index != NULL ? batch.row_index[r] : r;
            assert_int_equal(1, batch.row_start[s + 1] - batch.row_start[s]);
            int64_t id = (int64_t)batch.ids[batch.row_start[s]];
            assert_int_equal(id % 2, pl_view_label(&batch.labels, r));
            *ids++ = id;
        }
    }
}

static void workers_share_a_file_without_overlap(void **state)
{
    char *text = make_text(0, EXAMPLES);
    const char *path = write_text(*state, "a", text);
    for (int64_t buffer = 0; buffer <= 500; buffer += 500) {
        pl_dataset *set = open_files(path, buffer);
        assert_int_equal(EXAMPLES, set->count);
        assert_int_equal(EXAMPLES, set->feature_count);
        bool seen[EXAMPLES] = { false };
        int64_t total = 0;
        for (int32_t worker = 0; worker < 3; worker++) {
            pl_reader *reader;
            int64_t ids[EXAMPLES];
            assert_ok(pl_reader_new(&reader, set,
                                    &(pl_reader_opts) { .batch = 7,
                                                        .micro_batches = 2,
                                                        .worker = worker,
                                                        .workers = 3,
                                                        .seed = 5 }));
            int64_t batches = reader->steps_per_epoch * 2;
            read_ids(reader, batches, ids);
            for (int64_t i = 0; i < batches * 7; i++) {
                assert_false(seen[ids[i]]);
                seen[ids[i]] = true;
            }
            total += batches * 7;
            pl_reader_free(reader);
        }
        assert_true(total > EXAMPLES / 2);
        pl_dataset_free(set);
    }
    free(text);
    assert_int_equal(0, pl_mem_live());
}

static void every_epoch_has_another_order(void **state)
{
    char *text = make_text(0, EXAMPLES);
    pl_dataset *set = open_files(write_text(*state, "a", text), 100);
    pl_reader *reader;
    int64_t first[EXAMPLES], second[EXAMPLES];
    assert_ok(pl_reader_new(&reader, set,
                            &(pl_reader_opts) { .batch = EXAMPLES / 10 }));
    assert_int_equal(10, reader->steps_per_epoch);
    read_ids(reader, 10, first);
    read_ids(reader, 10, second);
    int64_t same = 0, sum = 0;
    for (int i = 0; i < EXAMPLES; i++) {
        same += first[i] == second[i];
        sum += first[i] - second[i];
    }
    assert_int_equal(0, sum);
    assert_true(same < EXAMPLES / 10);
    pl_reader_free(reader);
    pl_dataset_free(set);
    free(text);
}

/* What the workers of a job read in some epochs, in memory (buffer 0) and
 * streamed: left_out examples are missing from each epoch, not the same ones,
 * and none is missing from all. */
static void check_epochs(pl_dataset *set, pl_reader_opts opts, int epochs)
{
    static int8_t seen[40][EXAMPLES];
    int64_t ids[EXAMPLES], left_out = 0;
    memset(seen, 0, sizeof seen);
    for (opts.worker = 0; opts.worker < opts.workers; opts.worker++) {
        pl_reader *reader;
        assert_ok(pl_reader_new(&reader, set, &opts));
        int64_t steps = reader->steps_per_epoch;
        left_out = reader->left_out;
        int64_t rows = (EXAMPLES - left_out) / opts.workers;
        assert_int_equal(EXAMPLES - rows * opts.workers, left_out);
        if (!opts.keep_rest)
            assert_int_equal(rows, steps * opts.batch);
        for (int e = 0; e < epochs; e++) {
            read_ids(reader, steps, ids);
            for (int64_t i = 0; i < rows; i++)
                assert_int_equal(1, ++seen[e][ids[i]]);
        }
        pl_reader_free(reader);
    }
    assert_true(opts.keep_rest ? left_out == 0 : left_out > 0);
    int8_t ever[EXAMPLES] = { 0 };
    for (int e = 0; e < epochs; e++) {
        if (e > 0 && left_out > 0)
            assert_memory_not_equal(seen[e - 1], seen[e], EXAMPLES);
        for (int i = 0; i < EXAMPLES; i++)
            ever[i] |= seen[e][i];
    }
    for (int i = 0; i < EXAMPLES; i++)
        assert_int_equal(1, ever[i]);
}

static void each_epoch_leaves_out_other_examples(void **state)
{
    char *text = make_text(0, EXAMPLES);
    const char *path = write_text(*state, "a", text);
    static const int64_t buffers[] = { 0, 100, 700, 2 * EXAMPLES };
    for (size_t b = 0; b < sizeof buffers / sizeof *buffers; b++) {
        pl_dataset *set = open_files(path, buffers[b]);
        for (int32_t workers = 1; workers <= 3; workers++)
            check_epochs(set,
                         (pl_reader_opts) {
                             .batch = 301, .workers = workers, .seed = 11 },
                         40);
        check_epochs(
            set,
            (pl_reader_opts) {
                .batch = 301, .workers = 1, .keep_rest = true, .seed = 11 },
            3);
        pl_dataset_free(set);
    }
    free(text);
    assert_int_equal(0, pl_mem_live());
}

static void a_position_resumes_exactly(void **state)
{
    char *text = make_text(0, EXAMPLES);
    pl_dataset *set = open_files(write_text(*state, "a", text), 64);
    pl_reader_opts opts = { .batch = 50, .workers = 2, .seed = 9 };
    pl_reader *reader, *again;
    pl_position at;
    int64_t expected[400], got[400];
    assert_ok(pl_reader_new(&reader, set, &opts));
    assert_ok(pl_reader_new(&again, set, &opts));
    int64_t steps = reader->steps_per_epoch;
    read_ids(reader, 3, expected);
    pl_reader_position(reader, &at);
    read_ids(reader, 8, expected);
    assert_ok(pl_reader_seek(again, &at));
    read_ids(again, 8, got);
    assert_memory_equal(expected, got, sizeof got);
    pl_reader_go(again, steps + 3);
    read_ids(again, 8, got);
    assert_memory_not_equal(expected, got, sizeof got);
    pl_reader_go(again, 3);
    read_ids(again, 8, got);
    assert_memory_equal(expected, got, sizeof got);
    pl_reader_free(again);

    opts.batch = 25;
    assert_ok(pl_reader_new(&again, set, &opts));
    assert_fails(PL_UNSUPPORTED, "another order", pl_reader_seek(again, &at));
    at.used = 3;
    assert_fails(PL_FORMAT, "3 bytes", pl_reader_seek(again, &at));
    pl_reader_free(again);
    pl_reader_free(reader);
    pl_dataset_free(set);
    free(text);
}

static void threads_change_nothing(void **state)
{
    char *text = make_text(0, EXAMPLES);
    const char *path = write_text(*state, "a", text);
    int64_t ids[3][1000];
    for (int32_t threads = 1; threads <= 3; threads++) {
        pl_dataset *set;
        pl_reader *reader;
        assert_ok(pl_sparse_open(
            &set, &pl_libsvm_format, path,
            &(pl_source_opts) { .threads = threads, .shuffle_buffer = 333 }));
        assert_ok(
            pl_reader_new(&reader, set, &(pl_reader_opts) { .batch = 10 }));
        read_ids(reader, 100, ids[threads - 1]);
        pl_reader_free(reader);
        pl_dataset_free(set);
    }
    assert_memory_equal(ids[0], ids[1], sizeof ids[0]);
    assert_memory_equal(ids[0], ids[2], sizeof ids[0]);
    free(text);
}

static void a_local_set_is_read_whole_by_each_worker(void **state)
{
    char *text = make_text(0, 100);
    pl_dataset *set = open_files(write_text(*state, "a", text), 0);
    pl_reader *reader;
    set->local = true;
    int64_t ids[2][100];
    for (int32_t worker = 0; worker < 2; worker++) {
        assert_ok(pl_reader_new(
            &reader, set,
            &(pl_reader_opts) { .batch = 10, .worker = worker, .workers = 2 }));
        assert_int_equal(10, reader->steps_per_epoch);
        read_ids(reader, 10, ids[worker]);
        pl_reader_free(reader);
    }
    assert_memory_not_equal(ids[0], ids[1], sizeof ids[0]);
    pl_dataset_free(set);
    free(text);
}

static void patterns_name_files_in_order(void **state)
{
    char got[256];
    write_text(*state, "b.svm", "1 2:1\n");
    write_text(*state, "a.svm", "0 1:1\n");
    write_text(*state, "c[1]", "0 3:1\n");
    pl_dataset *set = open_files(test_path(*state, "*.svm"), 0);
    assert_string_equal("0 1:1|1 2:1|", sparse_pass(set, 5, got, sizeof got));
    pl_dataset_free(set);
    set = open_files(test_path(*state, "c[1]"), 0);
    assert_string_equal("0 3:1|", sparse_pass(set, 5, got, sizeof got));
    pl_dataset_free(set);
    assert_fails(PL_NOTFOUND, "no file ",
                 pl_sparse_open(&set, &pl_libsvm_format,
                                test_path(*state, "*.none"),
                                &(pl_source_opts) { .threads = 1 }));
    assert_int_equal(0, pl_mem_live());
}

static void compressed_files_read_the_same(void **state)
{
    char *text = make_text(0, EXAMPLES);
    size_t length = strlen(text), room = ZSTD_compressBound(length);
    uint8_t *packed = malloc(room);
    const char *gz = test_path(*state, "a.gz"), *zst = test_path(*state, "z");
    for (int part = 0; part < 2; part++) { /* two streams in one file */
        gzFile file = gzopen(gz, part == 0 ? "wb" : "ab");
        gzwrite(file, text + (size_t)part * (length / 2),
                (unsigned)(part == 0 ? length / 2 : length - length / 2));
        gzclose(file);
    }
    size_t bytes = ZSTD_compress(packed, room, text, length, 3);
    assert_ok(pl_file_replace(zst, packed, bytes));
    char *expected = malloc(1 << 20), *got = malloc(1 << 20);
    const char *plain = write_text(*state, "plain", text);
    pl_dataset *set = open_files(plain, 0);
    sparse_pass(set, 100, expected, 1 << 20);
    pl_dataset_free(set);
    for (int i = 0; i < 4; i++) {
        set = open_files(i % 2 == 0 ? gz : zst, i < 2 ? 0 : 1000);
        assert_string_equal(expected, sparse_pass(set, 100, got, 1 << 20));
        pl_dataset_free(set);
    }
    pl_source_opts opts = { .threads = 1, .cache_dir = *state };
    assert_ok(pl_sparse_open(&set, &pl_libsvm_format, zst, &opts));
    pl_dataset_free(set);
    assert_ok(pl_file_replace(zst, packed, bytes - 1));
    assert_fails(PL_FORMAT, "truncated zstd stream",
                 pl_sparse_open(&set, &pl_libsvm_format, zst, &opts));
    packed[4] ^= 0x08; /* a reserved bit */
    assert_ok(pl_file_replace(zst, packed, bytes));
    assert_fails(PL_FORMAT, "broken zstd stream",
                 pl_sparse_open(&set, &pl_libsvm_format, zst, &opts));
    free(got);
    free(expected);
    free(packed);
    free(text);
    assert_int_equal(0, pl_mem_live());
}

static void too_few_examples_are_refused(void **state)
{
    char *text = make_text(0, 100);
    pl_dataset *set = open_files(write_text(*state, "a", text), 10);
    pl_reader *reader;
    assert_fails(
        PL_USAGE, "2 workers, one of which has only 0; train with fewer",
        pl_reader_new(&reader, set,
                      &(pl_reader_opts) { .batch = 60, .workers = 2 }));
    assert_fails(
        PL_USAGE, "lower --batch to 50",
        pl_reader_new(&reader, set,
                      &(pl_reader_opts) { .batch = 60, .micro_batches = 2 }));
    pl_dataset_free(set);
    free(text);
}

static void bad_examples_are_replaced_in_training(void **state)
{
    const char *path = write_text(*state, "a", "1 1:1\n?\n0 2:1\n?\n?\n");
    pl_dataset *set;
    pl_reader *reader;
    int64_t ids[5];
    int counts[3] = { 0 };
    assert_ok(pl_sparse_open(&set, &pl_libsvm_format, path,
                             &(pl_source_opts) { .threads = 1,
                                                 .shuffle_buffer = 9,
                                                 .skip_bad = 3 }));
    assert_ok(pl_reader_new(&reader, set, &(pl_reader_opts) { .batch = 5 }));
    read_ids(reader, 1, ids);
    for (int i = 0; i < 5; i++)
        counts[ids[i]]++;
    assert_true(counts[1] >= 2 && counts[2] >= 2);
    pl_reader_free(reader);
    pl_dataset_free(set);
}

static void a_part_held_out_is_in_no_other_part(void **state)
{
    char *text = make_text(0, EXAMPLES);
    const char *path = write_text(*state, "a", text);
    free(text);
    for (int64_t buffer = 0; buffer <= 100; buffer += 100) {
        bool seen[EXAMPLES] = { false };
        int64_t total = 0;
        for (int part = 0; part < 2; part++) {
            pl_dataset *set = open_files(path, buffer);
            pl_reader *reader;
            pl_batch batch;
            assert_ok(part == 0 ? pl_dataset_keep(set, 0, 2000)
                                : pl_dataset_keep(set, 2000, 1000));
            assert_ok(pl_reader_new(
                &reader, set,
                &(pl_reader_opts) { .batch = 64, .one_pass = true }));
            total += set->count;
            for (;;) {
                assert_ok(pl_reader_next(reader, &batch));
                if (batch.rows == 0)
                    break;
                for (int64_t i = batch.row_start[0];
                     i < batch.row_start[batch.rows]; i++) {
                    assert_false(seen[batch.ids[i]]);
                    seen[batch.ids[i]] = true;
                }
            }
            pl_reader_free(reader);
            pl_dataset_free(set);
        }
        assert_int_equal(EXAMPLES, total);
    }
    pl_dataset *set = open_files(path, 100);
    assert_fails(PL_USAGE, "no block begins", pl_dataset_keep(set, 1, 1));
    pl_dataset_free(set);
}

static pl_status open_and_read(const char *path, int64_t buffer)
{
    pl_dataset *set;
    pl_reader *reader = NULL;
    pl_batch batch;
    PL_TRY(pl_sparse_open(
        &set, &pl_libsvm_format, path,
        &(pl_source_opts) { .threads = 1, .shuffle_buffer = buffer }));
    pl_status status =
        pl_reader_new(&reader, set, &(pl_reader_opts) { .batch = 10 });
    if (status == PL_OK)
        status = pl_reader_next(reader, &batch);
    pl_reader_free(reader);
    pl_dataset_free(set);
    return status;
}

static void opening_survives_each_failed_allocation(void **state)
{
    char *text = make_text(0, 100);
    const char *path = write_text(*state, "a", text);
    free(text);
    assert_survives_failed_allocations(open_and_read(path, 0), (void)0);
    assert_survives_failed_allocations(open_and_read(path, 20), (void)0);
}

UNIT_TESTS(TEST_IN_FOLDER(workers_share_a_file_without_overlap),
           TEST_IN_FOLDER(every_epoch_has_another_order),
           TEST_IN_FOLDER(each_epoch_leaves_out_other_examples),
           TEST_IN_FOLDER(a_position_resumes_exactly),
           TEST_IN_FOLDER(threads_change_nothing),
           TEST_IN_FOLDER(a_local_set_is_read_whole_by_each_worker),
           TEST_IN_FOLDER(patterns_name_files_in_order),
           TEST_IN_FOLDER(compressed_files_read_the_same),
           TEST_IN_FOLDER(too_few_examples_are_refused),
           TEST_IN_FOLDER(bad_examples_are_replaced_in_training),
           TEST_IN_FOLDER(a_part_held_out_is_in_no_other_part),
           TEST_IN_FOLDER(opening_survives_each_failed_allocation))
