#include "support/unit.h"

#include "base/rng.h"
#include "data/dataset.h"

#define MOST 1000

/* A set whose row r holds r % 256, with labels r % 10. */
static uint8_t rows[MOST], row_labels[MOST];

static void keep(pl_dataset *set)
{
    (void)set;
}

static const pl_dataset_ops test_ops = { .kind = "test", .free = keep };

static pl_dataset make_set(int64_t count)
{
    static char name[] = "test set";
    for (int i = 0; i < MOST; i++) {
        rows[i] = (uint8_t)i;
        row_labels[i] = (uint8_t)(i % 10);
    }
    return (pl_dataset) {
        .ops = &test_ops,
        .name = name,
        .count = count,
        .shape = PL_SHAPE(1),
        .classes = 10,
        .features = { .data = rows, .stride = 1, .dtype = PL_UINT8 },
        .labels = { .data = row_labels, .stride = 1, .dtype = PL_UINT8 },
    };
}

/* The order as dataset.h states it, from the whole epoch's permutation. */
static uint32_t expected_row(int64_t count, const pl_reader_opts *opts,
                             uint64_t epoch, int64_t step, int64_t micro,
                             int64_t row)
{
    uint32_t all[MOST];
    uint64_t key = pl_rng_key_text(opts->seed, "data order");
    pl_rng_permute(pl_rng_key(key, epoch), (uint64_t)count, 0, (uint32_t)count,
                   all);
    int64_t shard = step * opts->workers + opts->worker;
    return all[(shard * opts->micro_batches + micro) * opts->batch + row];
}

static void check_order(int64_t count, const pl_reader_opts *opts)
{
    pl_dataset set = make_set(count);
    pl_reader *reader;
    pl_batch batch;
    assert_ok(pl_reader_new(&reader, &set, opts));
    int64_t steps = count / (opts->batch * opts->workers * opts->micro_batches);
    assert_int_equal(steps, reader->steps_per_epoch);
    for (uint64_t epoch = 0; epoch < 3; epoch++)
        for (int64_t step = 0; step < steps; step++)
            for (int64_t micro = 0; micro < opts->micro_batches; micro++) {
                assert_ok(pl_reader_next(reader, &batch));
                assert_int_equal(opts->batch, batch.rows);
                assert_null(batch.row_start);
                for (int64_t row = 0; row < batch.rows; row++) {
                    uint32_t expected =
                        expected_row(count, opts, epoch, step, micro, row);
                    assert_int_equal(expected, batch.features.index[row]);
                    assert_int_equal(expected % 10,
                                     pl_view_label(&batch.labels, row));
                }
            }
    pl_reader_free(reader);
}

static void shuffle_order_is_the_documented_one(void **state)
{
    (void)state;
    static const struct {
        int64_t count, batch;
        int32_t workers, micro_batches;
    } cases[] = {
        { 1, 1, 1, 1 },   { 10, 3, 1, 1 },  { 100, 10, 1, 1 },
        { 97, 5, 3, 1 },  { 97, 5, 1, 3 },  { 211, 7, 3, 2 },
        { 64, 16, 4, 1 }, { 250, 1, 5, 4 }, { 60, 60, 1, 1 },
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (int32_t worker = 0; worker < cases[c].workers; worker++)
            check_order(cases[c].count,
                        &(pl_reader_opts) {
                            .batch = cases[c].batch,
                            .workers = cases[c].workers,
                            .micro_batches = cases[c].micro_batches,
                            .worker = worker,
                            .seed = 42 + c,
                        });
}

/* Count how often each row is read in the given epoch by all workers. */
static void read_epoch(pl_dataset *set, pl_reader_opts opts, int epoch,
                       int seen[MOST])
{
    for (opts.worker = 0; opts.worker < opts.workers; opts.worker++) {
        pl_reader *reader;
        pl_batch batch;
        assert_ok(pl_reader_new(&reader, set, &opts));
        int64_t batches = reader->steps_per_epoch * opts.micro_batches;
        for (int64_t b = 0; b < epoch * batches; b++)
            assert_ok(pl_reader_next(reader, &batch));
        for (int64_t b = 0; b < batches; b++) {
            assert_ok(pl_reader_next(reader, &batch));
            for (int64_t row = 0; row < batch.rows; row++)
                seen[batch.features.index[row]]++;
        }
        pl_reader_free(reader);
    }
}

static void shuffle_deals_each_example_at_most_once_an_epoch(void **state)
{
    (void)state;
    pl_dataset set = make_set(997);
    pl_reader_opts opts = {
        .batch = 10, .workers = 3, .micro_batches = 4, .seed = 7
    };
    for (int epoch = 0; epoch < 3; epoch++) {
        int seen[MOST] = { 0 }, sum = 0;
        read_epoch(&set, opts, epoch, seen);
        for (int i = 0; i < 997; i++) {
            assert_in_range(seen[i], 0, 1);
            sum += seen[i];
        }
        assert_int_equal(960, sum); /* 8 steps of 120; 37 are left out */
    }
}

static void shuffle_covers_everything_when_nothing_remains(void **state)
{
    (void)state;
    pl_dataset set = make_set(960);
    int seen[MOST] = { 0 };
    read_epoch(&set,
               (pl_reader_opts) {
                   .batch = 10, .workers = 4, .micro_batches = 2, .seed = 7 },
               1, seen);
    for (int i = 0; i < 960; i++)
        assert_int_equal(1, seen[i]);
}

/* Workers of one micro-batch read what one worker reads with as many. */
static void shuffle_gives_workers_what_micro_batches_would_get(void **state)
{
    (void)state;
    pl_dataset set = make_set(500);
    pl_reader *alone, *readers[4];
    pl_batch a, b;
    assert_ok(pl_reader_new(
        &alone, &set,
        &(pl_reader_opts) { .batch = 20, .micro_batches = 4, .seed = 5 }));
    for (int32_t k = 0; k < 4; k++)
        assert_ok(pl_reader_new(
            &readers[k], &set,
            &(pl_reader_opts) {
                .batch = 20, .workers = 4, .worker = k, .seed = 5 }));
    for (int step = 0; step < 20; step++)
        for (int k = 0; k < 4; k++) {
            assert_ok(pl_reader_next(alone, &a));
            assert_ok(pl_reader_next(readers[k], &b));
            assert_memory_equal(a.features.index, b.features.index,
                                20 * sizeof(uint32_t));
        }
    pl_reader_free(alone);
    for (int k = 0; k < 4; k++)
        pl_reader_free(readers[k]);
}

static void shuffle_order_changes_with_seed_and_epoch(void **state)
{
    (void)state;
    pl_dataset set = make_set(100);
    uint32_t first[100];
    pl_reader *reader;
    pl_batch batch;
    assert_ok(pl_reader_new(&reader, &set,
                            &(pl_reader_opts) { .batch = 100, .seed = 1 }));
    assert_ok(pl_reader_next(reader, &batch));
    memcpy(first, batch.features.index, sizeof first);
    assert_ok(pl_reader_next(reader, &batch));
    assert_memory_not_equal(first, batch.features.index, sizeof first);
    pl_reader_free(reader);
    assert_ok(pl_reader_new(&reader, &set,
                            &(pl_reader_opts) { .batch = 100, .seed = 2 }));
    assert_ok(pl_reader_next(reader, &batch));
    assert_memory_not_equal(first, batch.features.index, sizeof first);
    pl_reader_free(reader);
}

/* The same rows as sparse ones: row r has the one id r. */
static pl_dataset make_sparse_set(int64_t count)
{
    static int64_t starts[MOST + 1];
    static uint64_t ids[MOST];
    pl_dataset set = make_set(count);
    for (int i = 0; i < MOST; i++) {
        starts[i + 1] = i + 1;
        ids[i] = (uint64_t)i;
    }
    set.sparse = true;
    set.row_start = starts;
    set.ids = ids;
    return set;
}

/* An epoch leaves out what does not fill a step of all workers, and after some
 * epochs every example was read: none is left out of all of them. */
static void check_left_out(pl_dataset *set, pl_reader_opts opts, int epochs)
{
    int before[MOST] = { 0 }, ever[MOST] = { 0 };
    int64_t step = opts.batch * opts.workers * opts.micro_batches;
    int64_t left_out = set->count % step;
    int changes = 0;
    pl_reader *reader;
    assert_ok(pl_reader_new(&reader, set, &opts));
    assert_int_equal(left_out, reader->left_out);
    pl_reader_free(reader);
    for (int epoch = 0; epoch < epochs; epoch++) {
        int seen[MOST] = { 0 };
        int64_t sum = 0;
        read_epoch(set, opts, epoch, seen);
        for (int64_t i = 0; i < set->count; i++) {
            assert_in_range(seen[i], 0, 1);
            sum += seen[i];
            ever[i] += seen[i];
        }
        assert_int_equal(set->count - left_out, sum);
        changes += epoch > 0 && memcmp(before, seen, sizeof seen) != 0;
        memcpy(before, seen, sizeof seen);
    }
    assert_true(changes > 0);
    for (int64_t i = 0; i < set->count; i++)
        assert_true(ever[i] > 0);
}

static void each_epoch_leaves_out_other_examples(void **state)
{
    (void)state;
    static const struct {
        int64_t count, batch;
        int32_t workers, micro_batches;
    } cases[] = {
        { 103, 10, 1, 1 }, { 999, 100, 1, 1 }, { 997, 10, 3, 4 },
        { 31, 10, 2, 1 },  { 15, 14, 1, 1 },   { 500, 167, 2, 1 },
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        pl_reader_opts opts = {
            .batch = cases[c].batch,
            .workers = cases[c].workers,
            .micro_batches = cases[c].micro_batches,
            .seed = 3,
        };
        pl_dataset dense = make_set(cases[c].count);
        pl_dataset sparse = make_sparse_set(cases[c].count);
        check_left_out(&dense, opts, 12);
        if (cases[c].count > 15) /* below, there is only the one run */
            check_left_out(&sparse, opts, 12);
    }
}

static void keep_rest_leaves_out_nothing(void **state)
{
    (void)state;
    for (int64_t count = 95; count <= 105; count++) {
        pl_dataset sets[] = { make_set(count), make_sparse_set(count) };
        for (int s = 0; s < 2; s++) {
            pl_reader_opts opts = { .batch = 20,
                                    .workers = 1,
                                    .micro_batches = 1,
                                    .keep_rest = true,
                                    .seed = 5 };
            pl_reader *reader;
            assert_ok(pl_reader_new(&reader, &sets[s], &opts));
            assert_int_equal((count + 19) / 20, reader->steps_per_epoch);
            assert_int_equal(0, reader->left_out);
            pl_reader_free(reader);
            for (int epoch = 0; epoch < 3; epoch++) {
                int seen[MOST] = { 0 };
                read_epoch(&sets[s], opts, epoch, seen);
                for (int64_t i = 0; i < count; i++)
                    assert_int_equal(1, seen[i]);
            }
        }
    }
    /* A batch may be larger than the set. */
    pl_dataset set = make_sparse_set(25);
    pl_reader *reader;
    pl_batch batch;
    assert_ok(pl_reader_new(
        &reader, &set, &(pl_reader_opts) { .batch = 1000, .keep_rest = true }));
    assert_ok(pl_reader_next(reader, &batch));
    assert_int_equal(25, batch.rows);
    pl_reader_free(reader);
}

static void one_pass_keeps_file_order_and_the_remainder(void **state)
{
    (void)state;
    pl_dataset set = make_set(25);
    pl_reader *reader;
    pl_batch batch;
    assert_ok(pl_reader_new(
        &reader, &set, &(pl_reader_opts) { .batch = 10, .one_pass = true }));
    assert_int_equal(3, reader->steps_per_epoch);
    int64_t at = 0;
    for (int64_t expected = 10; expected > 0; at += batch.rows) {
        assert_ok(pl_reader_next(reader, &batch));
        expected = 25 - at < 10 ? 25 - at : 10;
        assert_int_equal(expected, batch.rows);
        for (int64_t row = 0; row < batch.rows; row++) {
            assert_int_equal(at + row, *pl_view_row_u8(&batch.features, row));
            assert_int_equal((at + row) % 10,
                             pl_view_label(&batch.labels, row));
        }
    }
    assert_int_equal(25, at);
    assert_ok(pl_reader_next(reader, &batch));
    assert_int_equal(0, batch.rows);
    pl_reader_free(reader);

    /* A batch may be larger than the set. */
    assert_ok(pl_reader_new(
        &reader, &set, &(pl_reader_opts) { .batch = 1000, .one_pass = true }));
    assert_ok(pl_reader_next(reader, &batch));
    assert_int_equal(25, batch.rows);
    pl_reader_free(reader);
}

static void seek_goes_back_to_where_the_position_was_taken(void **state)
{
    (void)state;
    pl_dataset set = make_set(123);
    pl_reader_opts opts = {
        .batch = 5, .workers = 2, .worker = 1, .micro_batches = 3, .seed = 9
    };
    for (int skip = 0; skip < 30; skip++) {
        pl_reader *reader, *resumed;
        pl_batch a, b;
        pl_position position;
        assert_ok(pl_reader_new(&reader, &set, &opts));
        assert_ok(pl_reader_new(&resumed, &set, &opts));
        for (int i = 0; i < skip; i++)
            assert_ok(pl_reader_next(reader, &a));
        pl_reader_position(reader, &position);
        assert_ok(pl_reader_seek(resumed, &position));
        for (int i = 0; i < 20; i++) {
            assert_ok(pl_reader_next(reader, &a));
            assert_ok(pl_reader_next(resumed, &b));
            assert_memory_equal(a.features.index, b.features.index,
                                5 * sizeof(uint32_t));
        }
        pl_reader_free(reader);
        pl_reader_free(resumed);
    }
}

static void seek_works_in_one_pass_up_to_its_end(void **state)
{
    (void)state;
    pl_dataset set = make_set(25);
    pl_reader *reader;
    pl_position start, end;
    pl_batch batch;
    assert_ok(pl_reader_new(
        &reader, &set, &(pl_reader_opts) { .batch = 10, .one_pass = true }));
    pl_reader_position(reader, &start);
    for (int i = 0; i < 3; i++)
        assert_ok(pl_reader_next(reader, &batch));
    pl_reader_position(reader, &end);
    assert_ok(pl_reader_seek(reader, &start));
    assert_ok(pl_reader_next(reader, &batch));
    assert_int_equal(10, batch.rows);
    assert_ok(pl_reader_seek(reader, &end));
    assert_ok(pl_reader_next(reader, &batch));
    assert_int_equal(0, batch.rows);
    pl_reader_free(reader);
}

/* The bytes are part of the checkpoint format: see data/shuffle.h. */
static void position_bytes_are_little_endian_and_versioned(void **state)
{
    (void)state;
    static const uint8_t expected[60] = {
        1,   0, 0, 0,             /* version */
        0,   0, 0, 0,             /* kind of order */
        123, 0, 0, 0, 0, 0, 0, 0, /* examples */
        8,   7, 6, 5, 4, 3, 2, 1, /* seed */
        5,   0, 0, 0, 0, 0, 0, 0, /* batch */
        3,   0, 0, 0,             /* micro-batches */
        2,   0, 0, 0,             /* workers */
        1,   0, 0, 0, 0, 0, 0, 0, /* epoch */
        2,   0, 0, 0, 0, 0, 0, 0, /* step */
        1,   0, 0, 0,             /* micro-batch */
    };
    pl_dataset set = make_set(123);
    pl_reader *reader;
    pl_batch batch;
    pl_position position;
    assert_ok(pl_reader_new(&reader, &set,
                            &(pl_reader_opts) { .batch = 5,
                                                .workers = 2,
                                                .micro_batches = 3,
                                                .seed = 0x0102030405060708 }));
    for (int i = 0; i < (4 + 2) * 3 + 1; i++)
        assert_ok(pl_reader_next(reader, &batch));
    pl_reader_position(reader, &position);
    assert_int_equal(sizeof expected, position.used);
    assert_memory_equal(expected, position.bytes, sizeof expected);
    pl_reader_free(reader);
}

static void seek_refuses_bad_positions_and_stays(void **state)
{
    (void)state;
    pl_dataset set = make_set(123);
    pl_reader *reader;
    pl_batch batch;
    pl_position good, bad, after;
    assert_ok(pl_reader_new(
        &reader, &set,
        &(pl_reader_opts) { .batch = 5, .micro_batches = 3, .seed = 9 }));
    assert_ok(pl_reader_next(reader, &batch));
    pl_reader_position(reader, &good);

    static const struct {
        int byte; /* is changed to `value` */
        uint8_t value;
        const char *message;
    } cases[] = {
        { 0, 2, "version 2, expected 1" },
        { 4, 1, "another order" },
        { 4, 2, "another order" },
        { 4, 4, "another order" },
        { 8, 7, "another order" },
        { 16, 1, "another order" },
        { 24, 9, "another order" },
        { 32, 9, "another order" },
        { 36, 9, "another order" },
        { 47, 0xff, "an epoch has 8 steps" },
        { 48, 8, "step 8" },
        { 56, 3, "micro-batch 3" },
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        bad = good;
        bad.bytes[cases[c].byte] = cases[c].value;
        bool other = strcmp(cases[c].message, "another order") == 0;
        assert_fails(other ? PL_UNSUPPORTED : PL_FORMAT, cases[c].message,
                     pl_reader_seek(reader, &bad));
    }
    bad = good;
    bad.used = 59;
    assert_fails(PL_FORMAT, "59 bytes", pl_reader_seek(reader, &bad));
    bad.used = UINT32_MAX;
    assert_fails(PL_FORMAT, "expected 60", pl_reader_seek(reader, &bad));
    pl_reader_position(reader, &after);
    assert_memory_equal(good.bytes, after.bytes, sizeof good.bytes);
    pl_reader_free(reader);
}

static void reader_new_refuses_bad_options(void **state)
{
    (void)state;
    pl_dataset set = make_set(100);
    pl_reader *reader = NULL;
    assert_fails(PL_USAGE, "0 rows",
                 pl_reader_new(&reader, &set, &(pl_reader_opts) { 0 }));
    assert_fails(
        PL_USAGE, "-1 micro-batches",
        pl_reader_new(&reader, &set,
                      &(pl_reader_opts) { .batch = 1, .micro_batches = -1 }));
    assert_fails(PL_USAGE, "worker 2 of 2, expected 0 to 1",
                 pl_reader_new(&reader, &set,
                               &(pl_reader_opts) {
                                   .batch = 1, .workers = 2, .worker = 2 }));
    assert_fails(
        PL_USAGE,
        "test set: 100 examples are too few for one step of batch 101 x 1 "
        "micro-batches x 1 workers; lower --batch to 100",
        pl_reader_new(&reader, &set, &(pl_reader_opts) { .batch = 101 }));
    assert_fails(PL_USAGE, "; lower --batch to 16",
                 pl_reader_new(&reader, &set,
                               &(pl_reader_opts) { .batch = 17,
                                                   .micro_batches = 2,
                                                   .workers = 3 }));
    assert_ok(pl_reader_new(
        &reader, &set,
        &(pl_reader_opts) { .batch = 16, .micro_batches = 2, .workers = 3 }));
    pl_reader_free(reader);
    reader = NULL;
    assert_fails(PL_USAGE, "; lower --micro-batches to 50 and --batch to 1",
                 pl_reader_new(&reader, &set,
                               &(pl_reader_opts) { .batch = 2,
                                                   .micro_batches = 51,
                                                   .workers = 2 }));
    assert_fails(
        PL_USAGE, "; train with fewer workers",
        pl_reader_new(&reader, &set,
                      &(pl_reader_opts) { .batch = 1, .workers = 101 }));
    assert_fails(PL_USAGE, "too few",
                 pl_reader_new(&reader, &set,
                               &(pl_reader_opts) { .batch = INT64_MAX,
                                                   .workers = INT32_MAX }));
    assert_null(reader);
}

static void reader_new_survives_each_failed_allocation(void **state)
{
    (void)state;
    pl_dataset set = make_set(100);
    pl_reader *reader;
    assert_survives_failed_allocations(
        pl_reader_new(&reader, &set, &(pl_reader_opts) { .batch = 10 }),
        pl_reader_free(reader));
    pl_reader_free(NULL);
    pl_dataset_free(NULL);
}

static void next_allocates_nothing(void **state)
{
    (void)state;
    pl_dataset set = make_set(100);
    pl_reader *reader;
    pl_batch batch;
    assert_ok(pl_reader_new(&reader, &set, &(pl_reader_opts) { .batch = 10 }));
    pl_mem_fail_at(0);
    for (int i = 0; i < 100; i++)
        assert_ok(pl_reader_next(reader, &batch));
    assert_false(pl_mem_fail_off());
    pl_reader_free(reader);
}

UNIT_TESTS(cmocka_unit_test(shuffle_order_is_the_documented_one),
           cmocka_unit_test(shuffle_deals_each_example_at_most_once_an_epoch),
           cmocka_unit_test(shuffle_covers_everything_when_nothing_remains),
           cmocka_unit_test(shuffle_gives_workers_what_micro_batches_would_get),
           cmocka_unit_test(shuffle_order_changes_with_seed_and_epoch),
           cmocka_unit_test(each_epoch_leaves_out_other_examples),
           cmocka_unit_test(keep_rest_leaves_out_nothing),
           cmocka_unit_test(one_pass_keeps_file_order_and_the_remainder),
           cmocka_unit_test(seek_goes_back_to_where_the_position_was_taken),
           cmocka_unit_test(seek_works_in_one_pass_up_to_its_end),
           cmocka_unit_test(position_bytes_are_little_endian_and_versioned),
           cmocka_unit_test(seek_refuses_bad_positions_and_stays),
           cmocka_unit_test(reader_new_refuses_bad_options),
           cmocka_unit_test(reader_new_survives_each_failed_allocation),
           cmocka_unit_test(next_allocates_nothing))
