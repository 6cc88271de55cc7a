#include "support/folder.h"
#include "support/sparse.h"

#include "base/bytes.h"
#include "base/hash/crc32c.h"
#include "data/sparse/formats/writer.h"

#include <zlib.h>

static const pl_source_opts plain = { .threads = 1 };

/* Consecutive records. */
typedef struct records {
    uint8_t data[4096];
    size_t used;
} records;

static void add_record(records *r, const void *message, size_t bytes)
{
    uint8_t *at = r->data + r->used;
    assert_true(r->used + bytes + 16 <= sizeof r->data);
    pl_put_u64(at, bytes);
    pl_put_u32(at + 8, pl_crc32c_mask(pl_crc32c(0, at, 8)));
    memcpy(at + 12, message, bytes);
    pl_put_u32(at + 12 + bytes, pl_crc32c_mask(pl_crc32c(0, message, bytes)));
    r->used += bytes + 16;
}

/* Three features of one digit length each; id < 128. */
static void add_example(records *r, uint8_t label, uint8_t id)
{
    const uint8_t message[] = { 0x0a, 32,   0x0a, 14,    0x0a, 5,   'l',
                                'a',  'b',  'e',  'l',   0x12, 5,   0x1a,
                                3,    0x0a, 1,    label, 0x0a, 14,  0x0a,
                                5,    'i',  'n',  'd',   'e',  'x', 0x12,
                                5,    0x1a, 3,    0x0a,  1,    id };
    add_record(r, message, sizeof message);
}

static pl_status open_records(pl_dataset **out, const records *r,
                              const pl_source_opts *opts)
{
    return pl_sparse_open_memory(out, &pl_tfrecord_format, r->data, r->used,
                                 opts);
}

static void tensorflow_files_are_read(void **state)
{
    (void)state;
    static const char *const files[] = { PL_GOLDEN "/tensorflow.tfrecord",
                                         PL_GOLDEN "/tensorflow.tfrecord.gz" };
    for (int i = 0; i < 4; i++) {
        pl_dataset *set;
        char got[512];
        assert_ok(pl_sparse_open(
            &set, &pl_tfrecord_format, files[i % 2],
            &(pl_source_opts) { .threads = 1, .shuffle_buffer = i / 2 }));
        assert_string_equal("1 3:0.5 70000:1 33762577:-2.25|0 0:1|1 5:1 6:1|"
                            "0|1 1099511627776:3|",
                            sparse_pass(set, 2, got, sizeof got));
        assert_int_equal(((int64_t)1 << 40) + 1, set->feature_count);
        pl_dataset_free(set);
    }
    assert_int_equal(0, pl_mem_live());
}

/* As TFRecordOptions("ZLIB") writes them: the whole file is one stream, of any
 * level and window. */
static void zlib_files_are_read(void **state)
{
    pl_map plain_file;
    uint8_t packed[4096];
    const char *path = test_path(*state, "a.zlib");
    assert_ok(pl_map_init(&plain_file, PL_GOLDEN "/tensorflow.tfrecord"));
    for (int i = 0; i < 6; i++) {
        static const int levels[] = { 0, 1, 6, 9, 6, 6 };
        static const int windows[] = { 15, 15, 15, 15, 12, 9 };
        z_stream stream = { .next_in = (Bytef *)plain_file.data,
                            .avail_in = (unsigned)plain_file.bytes,
                            .next_out = packed,
                            .avail_out = sizeof packed };
        assert_int_equal(Z_OK, deflateInit2(&stream, levels[i], Z_DEFLATED,
                                            windows[i], 8, 0));
        assert_int_equal(Z_STREAM_END, deflate(&stream, Z_FINISH));
        deflateEnd(&stream);
        pl_dataset *set;
        char got[512];
        assert_ok(pl_file_replace(path, packed, stream.total_out));
        assert_ok(pl_sparse_open(&set, &pl_tfrecord_format, path, &plain));
        assert_string_equal("1 3:0.5 70000:1 33762577:-2.25|0 0:1|1 5:1 6:1|"
                            "0|1 1099511627776:3|",
                            sparse_pass(set, 2, got, sizeof got));
        pl_dataset_free(set);
        assert_ok(pl_file_replace(path, packed, stream.total_out - 1));
        assert_fails(PL_FORMAT, "truncated zlib stream",
                     pl_sparse_open(&set, &pl_tfrecord_format, path, &plain));
        packed[stream.total_out - 1] ^= 1;
        assert_ok(pl_file_replace(path, packed, stream.total_out));
        assert_fails(PL_FORMAT, "broken zlib stream: incorrect data check",
                     pl_sparse_open(&set, &pl_tfrecord_format, path, &plain));
    }
    pl_map_close(&plain_file);
    assert_int_equal(0, pl_mem_live());
}

/* A record of 376 bytes begins like a zlib stream; a text may begin with what
 * would be the header of a small window. */
static void data_resembling_zlib_is_not_unpacked(void **state)
{
    (void)state;
    static const uint8_t other[] = { 0x0a, 0xf3, 0x02 };
    records r = { .used = 0 };
    uint8_t message[376] = { 0 };
    pl_dataset *set;
    memcpy(message, other, sizeof other); /* no features */
    add_record(&r, message, sizeof message);
    assert_int_equal(0x78, r.data[0]);
    assert_int_equal(0, (r.data[0] * 256 + r.data[1]) % 31);
    pl_status status = open_records(&set, &r, &plain);
    assert_int_equal(PL_FORMAT, status);
    assert_null(strstr(pl_error_message(), "zlib"));

    static const char text[] = "HK header\n1 2:1\n";
    assert_int_equal(0, (text[0] * 256 + text[1]) % 31);
    assert_ok(pl_sparse_open_memory(
        &set, &pl_libsvm_format, (const uint8_t *)text, sizeof text - 1,
        &(pl_source_opts) { .threads = 1, .skip_bad = 1 }));
    pl_dataset_free(set);
}

static void hand_made_libsvm_is_read(void **state)
{
    (void)state;
    pl_dataset *set;
    char got[512];
    assert_ok(pl_sparse_open(&set, &pl_libsvm_format, PL_GOLDEN "/small.svm",
                             &plain));
    assert_string_equal("1 1:1 2:0.5|0 3:-125 33762577:1|"
                        "0 10:0.5 11:5 12:0.001|1|",
                        sparse_pass(set, 3, got, sizeof got));
    pl_dataset_free(set);
}

/* What TensorFlow wrote, written again, is the same to the byte where it
 * holds only what we write. */
static void records_are_written_as_tensorflow_does(void **state)
{
    char target[600];
    const char *path = test_path(*state, "a");
    records one = { .used = 0 };
    pl_dataset *set;
    pl_reader *reader;
    pl_batch batch;
    pl_sparse_writer *writer;
    add_example(&one, 1, 100);
    add_example(&one, 0, 5);
    assert_ok(open_records(&set, &one, &plain));
    snprintf(target, sizeof target, "tfrecord:%s", path);
    assert_ok(pl_sparse_writer_new(&writer, target, &plain));
    assert_ok(pl_reader_new(
        &reader, set, &(pl_reader_opts) { .batch = 9, .one_pass = true }));
    assert_ok(pl_reader_next(reader, &batch));
    assert_ok(pl_sparse_writer_put(writer, &batch));
    assert_ok(pl_sparse_writer_finish(writer));
    pl_sparse_writer_free(writer);
    pl_reader_free(reader);
    pl_dataset_free(set);
    pl_map map;
    assert_ok(pl_map_init(&map, path));
    assert_int_equal(one.used, map.bytes);
    assert_memory_equal(one.data, map.data, one.used);
    pl_map_close(&map);
    assert_int_equal(0, pl_mem_live());
}

static void damage_is_named_by_its_byte(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        const char *message;
    } cases[] = {
        { 51, "record at byte 50: the checksum of its length" },
        { 58, "record at byte 50: the checksum of its length" },
        { 70, "record at byte 50: checksum" },
        { 97, "record at byte 50: checksum" },
    };
    records good = { .used = 0 }, bad;
    pl_dataset *set;
    add_example(&good, 1, 1);
    add_example(&good, 0, 2);
    assert_int_equal(100, good.used);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bad = good;
        bad.data[cases[i].at] ^= 1;
        assert_fails(PL_FORMAT, cases[i].message,
                     open_records(&set, &bad, &plain));
    }
    for (bad = good; bad.used > 51; bad.used--) {
        bad.used--;
        assert_fails(PL_FORMAT, "truncated", open_records(&set, &bad, &plain));
        bad.used++;
    }
    bad.used = 0;
    assert_fails(PL_FORMAT, "no examples", open_records(&set, &bad, &plain));
    assert_int_equal(0, pl_mem_live());
}

static void skip_bad_skips_damaged_records(void **state)
{
    (void)state;
    records r = { .used = 0 };
    pl_dataset *set;
    char got[256];
    for (uint8_t i = 1; i <= 5; i++)
        add_example(&r, i % 2, i);
    r.data[50 + 20] ^= 1; /* the second record */
    r.used -= 3;          /* and the last */
    for (int64_t buffer = 0; buffer < 2; buffer++) {
        pl_source_opts opts = { .threads = 1,
                                .skip_bad = 2,
                                .shuffle_buffer = buffer };
        assert_ok(open_records(&set, &r, &opts));
        assert_string_equal("1 1:1|1 3:1|0 4:1|",
                            sparse_pass(set, 2, got, sizeof got));
        assert_int_equal(2, pl_sparse_set_bad((pl_sparse_set *)set));
        pl_dataset_free(set);
        opts.skip_bad = 1;
        assert_fails(PL_FORMAT, "more than --skip-bad 1",
                     open_records(&set, &r, &opts));
    }
}

static void wrong_features_are_named(void **state)
{
    (void)state;
    pl_dataset *set;
    records r = { .used = 0 };
    add_example(&r, 2, 1);
    assert_fails(PL_FORMAT, "byte 0: feature 'label' is not one number",
                 open_records(&set, &r, &plain));
    r.used = 0;
    add_example(&r, 1, 9);
    assert_fails(PL_FORMAT, "feature 'target' is missing",
                 open_records(&set, &r,
                              &(pl_source_opts) { .threads = 1,
                                                  .label_feature = "target" }));
    assert_fails(PL_FORMAT, "feature 'ids' is missing",
                 open_records(&set, &r,
                              &(pl_source_opts) { .threads = 1,
                                                  .index_feature = "ids" }));
    assert_fails(
        PL_FORMAT, "id 9, expected 0 to 8",
        open_records(&set, &r,
                     &(pl_source_opts) { .threads = 1, .features = 9 }));
    r.used = 0;
    add_record(&r, "\x0a\x05zz", 4);
    assert_fails(PL_FORMAT, "the message ends inside a field",
                 open_records(&set, &r, &plain));
}

/* A record whose length begins like gzip is not unpacked. */
static void a_length_resembling_gzip_is_not_unpacked(void **state)
{
    (void)state;
    static uint8_t message[0x8b1f];
    static uint8_t file[sizeof message + 16];
    memcpy(message, "\x0a\x0e\x0a\x0c\x0a\x05label\x12\x03\x1a\x01", 15);
    memset(file, 0, sizeof file);
    pl_put_u64(file, sizeof message);
    pl_put_u32(file + 8, pl_crc32c_mask(pl_crc32c(0, file, 8)));
    memcpy(file + 12, message, sizeof message);
    pl_put_u32(file + 12 + sizeof message,
               pl_crc32c_mask(pl_crc32c(0, message, sizeof message)));
    pl_dataset *set;
    assert_fails(PL_FORMAT, "record at byte 0: ",
                 pl_sparse_open_memory(&set, &pl_tfrecord_format, file,
                                       sizeof file, &plain));
}

UNIT_TESTS(TEST_IN_FOLDER(zlib_files_are_read),
           cmocka_unit_test(data_resembling_zlib_is_not_unpacked),
           cmocka_unit_test(tensorflow_files_are_read),
           cmocka_unit_test(hand_made_libsvm_is_read),
           TEST_IN_FOLDER(records_are_written_as_tensorflow_does),
           cmocka_unit_test(damage_is_named_by_its_byte),
           cmocka_unit_test(skip_bad_skips_damaged_records),
           cmocka_unit_test(wrong_features_are_named),
           cmocka_unit_test(a_length_resembling_gzip_is_not_unpacked))
