#include "support/folder.h"
#include "support/unit.h"

#include "data/idx/idx.h"

#define ZLIB_CONST
#include <zlib.h>

/* Two images of 2 x 3, and three labels. */
static const uint8_t images[] = {
    0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2,  0,  0,
    0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
};
static const pl_source_opts none;
static const uint8_t labels[] = { 0, 0, 8, 1, 0, 0, 0, 2, 4, 7 };

/* `bytes` as a gzip file; its size goes to *packed. */
static const uint8_t *pack(const void *bytes, size_t count, size_t *packed)
{
    static uint8_t out[4096];
    z_stream stream = { 0 };
    assert_int_equal(Z_OK, deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS,
                                        8, Z_DEFAULT_STRATEGY));
    stream.next_in = bytes;
    stream.avail_in = (unsigned)count;
    stream.next_out = out;
    stream.avail_out = sizeof out;
    assert_int_equal(Z_STREAM_END, deflate(&stream, Z_FINISH));
    *packed = stream.total_out;
    deflateEnd(&stream);
    return out;
}

static void put_file(const char *folder, const char *name, const void *bytes,
                     size_t count)
{
    assert_ok(pl_file_replace(test_path(folder, name), bytes, count));
}

static void put_gzip(const char *folder, const char *name, const void *bytes,
                     size_t count)
{
    size_t packed;
    const uint8_t *data = pack(bytes, count, &packed);
    put_file(folder, name, data, packed);
}

static void put_train(const char *folder)
{
    put_file(folder, "train-images-idx3-ubyte", images, sizeof images);
    put_file(folder, "train-labels-idx1-ubyte", labels, sizeof labels);
}

static void idx_reads_plain_files_in_place(void **state)
{
    (void)state;
    pl_idx idx;
    assert_ok(pl_idx_init_memory(&idx, images, sizeof images));
    assert_true(pl_shape_equal(PL_SHAPE(2, 2, 3), idx.shape));
    assert_ptr_equal(images + 16, idx.data);
    pl_idx_close(&idx);
    assert_int_equal(0, pl_mem_live());
}

static void idx_reads_gzip_as_it_reads_plain(void **state)
{
    const char *folder = *state;
    pl_idx plain, gzip;
    put_train(folder);
    put_gzip(folder, "a.gz", images, sizeof images);
    assert_ok(
        pl_idx_init(&plain, test_path(folder, "train-images-idx3-ubyte")));
    assert_ok(pl_idx_init(&gzip, test_path(folder, "a.gz")));
    assert_true(pl_shape_equal(plain.shape, gzip.shape));
    assert_memory_equal(plain.data, gzip.data, 12);
    pl_idx_close(&plain);
    pl_idx_close(&gzip);
}

#define BYTES(...)                                                             \
    (const uint8_t[]) { __VA_ARGS__ }, sizeof((const uint8_t[]) { __VA_ARGS__ })

static const struct {
    const uint8_t *bytes;
    size_t count;
    const char *message;
} bad_files[] = {
    { NULL, 0, "truncated: 0 bytes, expected at least 8" },
    { BYTES(0, 0, 8), "truncated: 3 bytes" },
    { BYTES(0, 0, 8, 1), "truncated: 4 bytes, expected a header of 8" },
    { BYTES(0, 0, 8, 3, 0, 0, 0, 1), "expected a header of 16" },
    { BYTES('P', 'K', 3, 4, 0, 0, 0, 1), "not an IDX file: magic number "
                                         "0x504b0304" },
    { BYTES(0, 0, 13, 1, 0, 0, 0, 1, 5), "truncated: 9 bytes, expected 12" },
    { BYTES(0, 0, 7, 1, 0, 0, 0, 1, 5), "element type 0x07, expected 0x08" },
    { BYTES(0, 0, 8, 0), "0 dimensions, expected 1 to 6" },
    { BYTES(0, 0, 8, 7, 0, 0, 0, 1), "7 dimensions" },
    { BYTES(0, 0, 8, 1, 0, 0, 0, 0), "dimension 1 of 1 is 0" },
    { BYTES(0, 0, 8, 2, 0, 0, 0, 3, 0, 0, 0, 0), "dimension 2 of 2 is 0" },
    { BYTES(0, 0, 8, 1, 0, 0, 0, 3, 1, 2), "truncated: 10 bytes, expected 11 "
                                           "for [3]" },
    { BYTES(0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3, 4), "trailing bytes: 12 bytes, "
                                                 "expected 11" },
    { BYTES(0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
            255),
      "more than 2^40" },
    { BYTES(0, 0, 8, 1, 255, 255, 255, 255, 1), "expected 4294967303" },
};
#define BAD_FILES (sizeof bad_files / sizeof bad_files[0])

static void idx_refuses_bad_files_with_the_reason(void **state)
{
    const char *folder = *state;
    for (size_t i = 0; i < BAD_FILES; i++) {
        pl_idx idx;
        assert_fails(
            PL_FORMAT, bad_files[i].message,
            pl_idx_init_memory(&idx, bad_files[i].bytes, bad_files[i].count));
        put_file(folder, "bad", bad_files[i].bytes, bad_files[i].count);
        assert_fails(PL_FORMAT, bad_files[i].message,
                     pl_idx_init(&idx, test_path(folder, "bad")));
        assert_non_null(strstr(pl_error_message(), test_path(folder, "bad")));
    }
    assert_int_equal(0, pl_mem_live());
}

static void idx_refuses_bad_contents_of_gzip(void **state)
{
    (void)state;
    for (size_t i = 0; i < BAD_FILES; i++) {
        pl_idx idx;
        size_t packed;
        const uint8_t *gzip =
            pack(bad_files[i].bytes, bad_files[i].count, &packed);
        assert_int_equal(PL_FORMAT, pl_idx_init_memory(&idx, gzip, packed));
    }
    assert_int_equal(0, pl_mem_live());
}

static void idx_refuses_broken_gzip_with_the_reason(void **state)
{
    (void)state;
    pl_idx idx;
    size_t packed;
    uint8_t gzip[256];
    memcpy(gzip, pack(images, sizeof images, &packed), sizeof gzip);

    for (size_t cut = 2; cut < packed; cut++)
        assert_fails(PL_FORMAT, "truncated gzip stream",
                     pl_idx_init_memory(&idx, gzip, cut));
    gzip[packed] = 0;
    assert_fails(PL_FORMAT, "trailing bytes: 1 after the gzip stream",
                 pl_idx_init_memory(&idx, gzip, packed + 1));
    gzip[packed - 8] ^= 1;
    assert_fails(PL_FORMAT, "broken gzip stream: incorrect data check",
                 pl_idx_init_memory(&idx, gzip, packed));
    gzip[packed - 8] ^= 1;
    gzip[packed - 1] ^= 1;
    assert_fails(PL_FORMAT, "incorrect length check",
                 pl_idx_init_memory(&idx, gzip, packed));
    gzip[packed - 1] ^= 1;
    gzip[2] = 9;
    assert_fails(PL_FORMAT, "broken gzip stream: unknown compression method",
                 pl_idx_init_memory(&idx, gzip, packed));
    assert_int_equal(0, pl_mem_live());
}

static void idx_refuses_gzip_whose_header_states_another_size(void **state)
{
    (void)state;
    pl_idx idx;
    size_t packed;
    uint8_t file[64] = { 0 };
    memcpy(file, images, sizeof images);
    const uint8_t *gzip = pack(file, sizeof images + 1, &packed);
    assert_fails(PL_FORMAT, "more than the 28 bytes its IDX header states",
                 pl_idx_init_memory(&idx, gzip, packed));
    gzip = pack(file, sizeof images - 1, &packed);
    assert_fails(PL_FORMAT, "truncated: 27 bytes unpacked, expected 28",
                 pl_idx_init_memory(&idx, gzip, packed));

    /* Nothing is allocated for 2^30 images that the file does not contain. */
    file[4] = 0x40;
    gzip = pack(file, sizeof images, &packed);
    assert_fails(PL_FORMAT, "of gzip cannot hold them",
                 pl_idx_init_memory(&idx, gzip, packed));
    assert_int_equal(0, pl_mem_live());
}

static void idx_write_is_read_back(void **state)
{
    const char *folder = *state;
    const char *path = test_path(folder, "out");
    pl_idx idx;
    assert_ok(pl_idx_write(path, PL_SHAPE(2, 2, 3), PL_UINT8, images + 16));
    assert_ok(pl_idx_init(&idx, path));
    assert_true(pl_shape_equal(PL_SHAPE(2, 2, 3), idx.shape));
    assert_memory_equal(images, idx.map.data, sizeof images);
    pl_idx_close(&idx);
    assert_fails(
        PL_UNSUPPORTED, "at most 2^32 - 1",
        pl_idx_write(path, PL_SHAPE((int64_t)1 << 32), PL_UINT8, images));
    assert_fails(
        PL_IO, "no-such-folder",
        pl_idx_write("/proc/no-such-folder/x", PL_SHAPE(1), PL_UINT8, images));
}

static void idx_set_has_images_and_labels(void **state)
{
    const char *folder = *state;
    pl_dataset *set;
    put_train(folder);
    assert_ok(pl_idx_dataset_open(&set, folder, PL_SPLIT_TRAIN, &none));
    assert_int_equal(2, set->count);
    assert_int_equal(8, set->classes);
    assert_true(pl_shape_equal(PL_SHAPE(2, 3), set->shape));
    assert_int_equal(7, pl_view_row_u8(&set->features, 1)[0]);
    assert_int_equal(7, pl_view_label(&set->labels, 1));
    assert_non_null(strstr(set->name, folder));
    pl_dataset_free(set);
    assert_int_equal(0, pl_mem_live());
}

static void idx_set_takes_all_four_names(void **state)
{
    const char *folder = *state;
    static const char *const names[][2] = {
        { "train-images-idx3-ubyte", "train-labels-idx1-ubyte" },
        { "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz" },
        { "train-images.idx3-ubyte", "train-labels.idx1-ubyte" },
        { "train-images.idx3-ubyte.gz", "train-labels.idx1-ubyte.gz" },
    };
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        const char *inner = test_path(folder, name);
        assert_ok(pl_file_make_folder(inner));
        if (i % 2 == 0) {
            put_file(inner, names[i][0], images, sizeof images);
            put_file(inner, names[i][1], labels, sizeof labels);
        } else {
            put_gzip(inner, names[i][0], images, sizeof images);
            put_gzip(inner, names[i][1], labels, sizeof labels);
        }
        pl_dataset *set;
        assert_ok(pl_idx_dataset_open(&set, inner, PL_SPLIT_TRAIN, &none));
        assert_memory_equal(images + 16, set->features.data, 12);
        assert_int_equal(4, pl_view_label(&set->labels, 0));
        assert_int_equal(7, pl_view_label(&set->labels, 1));
        pl_dataset_free(set);
    }
}

static void idx_set_counts_classes_over_both_splits(void **state)
{
    const char *folder = *state;
    static const uint8_t high[] = { 0, 0, 8, 1, 0, 0, 0, 1, 41 };
    pl_dataset *set;
    put_train(folder);
    put_gzip(folder, "t10k-labels-idx1-ubyte.gz", high, sizeof high);
    assert_ok(pl_idx_dataset_open(&set, folder, PL_SPLIT_TRAIN, &none));
    assert_int_equal(42, set->classes);
    pl_dataset_free(set);
    put_file(folder, "t10k-labels-idx1-ubyte", high, sizeof high - 1);
    assert_fails(PL_FORMAT, "t10k-labels-idx1-ubyte: truncated",
                 pl_idx_dataset_open(&set, folder, PL_SPLIT_TRAIN, &none));
    put_file(folder, "t10k-labels-idx1-ubyte", images, sizeof images);
    assert_fails(PL_FORMAT, "3 dimensions, expected 1 for labels",
                 pl_idx_dataset_open(&set, folder, PL_SPLIT_TRAIN, &none));
}

static void idx_set_names_the_missing_file(void **state)
{
    const char *folder = *state;
    pl_dataset *set;
    assert_fails(PL_NOTFOUND,
                 "holds no file whose name begins with train-images, as "
                 "train-images-idx3-ubyte does",
                 pl_idx_mnist_open(&set, folder, PL_SPLIT_TRAIN, &none));
    put_file(folder, "t10k-images-idx3-ubyte", images, sizeof images);
    assert_fails(PL_NOTFOUND, "no file whose name begins with t10k-labels",
                 pl_idx_dataset_open(&set, folder, PL_SPLIT_TEST, &none));
    assert_fails(PL_NOTFOUND, "no folder",
                 pl_idx_mnist_open(&set, test_path(folder, "none"),
                                   PL_SPLIT_TEST, &none));
    assert_int_equal(0, pl_mem_live());
}

static void idx_set_refuses_files_that_do_not_fit(void **state)
{
    const char *folder = *state;
    static const uint8_t three[] = { 0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3 };
    pl_dataset *set;
    put_train(folder);
    assert_fails(PL_FORMAT,
                 "train-images-idx3-ubyte: images of shape [2, 2, 3], "
                 "expected [count, 28, 28]",
                 pl_idx_mnist_open(&set, folder, PL_SPLIT_TRAIN, &none));
    put_file(folder, "train-labels-idx1-ubyte", three, sizeof three);
    assert_fails(PL_FORMAT, "has 2 images",
                 pl_idx_dataset_open(&set, folder, PL_SPLIT_TRAIN, &none));
    assert_non_null(strstr(pl_error_message(), "has 3 labels"));
    put_file(folder, "train-labels-idx1-ubyte", images, sizeof images);
    assert_fails(PL_FORMAT, "3 dimensions, expected 1 for labels",
                 pl_idx_dataset_open(&set, folder, PL_SPLIT_TRAIN, &none));
    put_file(folder, "train-images-idx3-ubyte", three, sizeof three);
    assert_fails(PL_FORMAT, "1 dimension, expected 2 or more for images",
                 pl_idx_dataset_open(&set, folder, PL_SPLIT_TRAIN, &none));
    assert_int_equal(0, pl_mem_live());
}

static void mnist_set_refuses_a_label_above_nine(void **state)
{
    const char *folder = *state;
    static uint8_t blank[3 * 784];
    static const uint8_t bad[] = { 3, 9, 10 };
    pl_dataset *set;
    assert_ok(pl_idx_write(test_path(folder, "t10k-images-idx3-ubyte"),
                           PL_SHAPE(3, 28, 28), PL_UINT8, blank));
    assert_ok(pl_idx_write(test_path(folder, "t10k-labels-idx1-ubyte"),
                           PL_SHAPE(3), PL_UINT8, bad));
    assert_fails(PL_FORMAT,
                 "t10k-labels-idx1-ubyte: example 2 has label 10, expected 0 "
                 "to 9",
                 pl_idx_mnist_open(&set, folder, PL_SPLIT_TEST, &none));
}

static void dataset_write_idx_is_read_back(void **state)
{
    const char *folder = *state;
    const char *copy = test_path(folder, "deep/copy");
    pl_dataset *set, *again;
    put_train(folder);
    assert_ok(pl_idx_dataset_open(&set, folder, PL_SPLIT_TRAIN, &none));
    assert_ok(pl_dataset_write_idx(set, copy, PL_SPLIT_TEST));
    assert_ok(pl_idx_dataset_open(&again, copy, PL_SPLIT_TEST, &none));
    assert_memory_equal(set->features.data, again->features.data, 12);
    assert_memory_equal(set->labels.data, again->labels.data,
                        2 * sizeof(int32_t));
    pl_dataset_free(again);
    set->classes = 1000;
    assert_fails(PL_UNSUPPORTED, "256 classes are written",
                 pl_dataset_write_idx(set, copy, PL_SPLIT_TEST));
    pl_dataset_free(set);
}

static void idx_survives_each_failed_allocation(void **state)
{
    const char *folder = *state;
    pl_dataset *set;
    put_train(folder);
    put_gzip(folder, "t10k-images-idx3-ubyte.gz", images, sizeof images);
    put_gzip(folder, "t10k-labels-idx1-ubyte.gz", labels, sizeof labels);
    for (pl_split split = PL_SPLIT_TRAIN; split <= PL_SPLIT_TEST; split++)
        assert_survives_failed_allocations(
            pl_idx_dataset_open(&set, folder, split, &none),
            pl_dataset_free(set));
    assert_ok(pl_idx_dataset_open(&set, folder, PL_SPLIT_TRAIN, &none));
    assert_survives_failed_allocations(
        pl_dataset_write_idx(set, folder, PL_SPLIT_TRAIN), (void)0);
    pl_dataset_free(set);
}

UNIT_TESTS(cmocka_unit_test(idx_reads_plain_files_in_place),
           TEST_IN_FOLDER(idx_reads_gzip_as_it_reads_plain),
           TEST_IN_FOLDER(idx_refuses_bad_files_with_the_reason),
           cmocka_unit_test(idx_refuses_bad_contents_of_gzip),
           cmocka_unit_test(idx_refuses_broken_gzip_with_the_reason),
           cmocka_unit_test(idx_refuses_gzip_whose_header_states_another_size),
           TEST_IN_FOLDER(idx_write_is_read_back),
           TEST_IN_FOLDER(idx_set_has_images_and_labels),
           TEST_IN_FOLDER(idx_set_takes_all_four_names),
           TEST_IN_FOLDER(idx_set_counts_classes_over_both_splits),
           TEST_IN_FOLDER(idx_set_names_the_missing_file),
           TEST_IN_FOLDER(idx_set_refuses_files_that_do_not_fit),
           TEST_IN_FOLDER(mnist_set_refuses_a_label_above_nine),
           TEST_IN_FOLDER(dataset_write_idx_is_read_back),
           TEST_IN_FOLDER(idx_survives_each_failed_allocation))
