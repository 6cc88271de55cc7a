#include "state/safetensors/safetensors.h"

#include "base/hash/crc32c.h"
#include "support/folder.h"

#include <errno.h>
#include <stdlib.h>

/* The content of tests/golden/small.safetensors. */
static const float weight[] = { 0, 1.5f, -2, 0.25f, 1e-3f, 3e8f };
static const int64_t ids[] = { -1, (int64_t)1 << 40 };
static const float scale = 0.5f;
static const int32_t rows[] = { 7, -7 };
static const uint8_t pixels[] = { 0, 128, 255 };
static const pl_safetensor tensors[] = {
    { "layer.weight", PL_FLOAT32, { 2, { 2, 3 } }, weight },
    { "empty", PL_FLOAT32, { 2, { 0, 4 } }, NULL },
    { "ids", PL_INT64, { 1, { 2 } }, ids },
    { "scale", PL_FLOAT32, { 0, { 0 } }, &scale },
    { "rows", PL_INT32, { 2, { 1, 2 } }, rows },
    { "pixels", PL_UINT8, { 1, { 3 } }, pixels },
};
#define COUNT (sizeof tensors / sizeof *tensors)
static const pl_safetensors_pair metadata[] = {
    { "format", "pt" },
    { "note", "gr\xc3\xbc\xc3\x9f" },
};
static const pl_safetensors_content content = {
    .tensors = tensors,
    .count = COUNT,
    .metadata = metadata,
    .metadata_count = 2,
};

static void assert_content(const pl_safetensors *file)
{
    assert_int_equal(COUNT, pl_safetensors_count(file));
    for (size_t i = 0; i < COUNT; i++) {
        const pl_safetensor *tensor = pl_safetensors_get(file, i);
        uint64_t bytes;
        assert_string_equal(tensors[i].name, tensor->name);
        assert_int_equal(tensors[i].dtype, tensor->dtype);
        assert_int_equal(tensors[i].shape.rank, tensor->shape.rank);
        for (int d = 0; d < tensor->shape.rank; d++)
            assert_int_equal(tensors[i].shape.dim[d], tensor->shape.dim[d]);
        assert_ok(pl_safetensor_bytes(tensor, &bytes));
        if (bytes > 0)
            assert_memory_equal(tensors[i].data, tensor->data, bytes);
        assert_ptr_equal(tensor, pl_safetensors_find(file, tensor->name));
    }
    assert_null(pl_safetensors_find(file, "none"));
    assert_null(pl_safetensors_find(file, "__metadata__"));
    assert_string_equal("pt", pl_safetensors_metadata(file, "format"));
    assert_string_equal(metadata[1].value,
                        pl_safetensors_metadata(file, "note"));
    assert_null(pl_safetensors_metadata(file, "none"));
}

static void safetensors_written_are_the_golden_bytes(void **state)
{
    const char *path = test_path(*state, "small.safetensors");
    pl_safetensors_sum sum;
    pl_map written;
    pl_map golden;
    assert_ok(pl_safetensors_write(path, &content, &sum));
    assert_ok(pl_map_init(&written, path));
    assert_ok(pl_map_init(&golden, PL_GOLDEN "/small.safetensors"));
    assert_int_equal(golden.bytes, written.bytes);
    assert_memory_equal(golden.data, written.data, golden.bytes);
    assert_int_equal(golden.bytes, sum.bytes);
    assert_int_equal(pl_crc32c(0, golden.data, golden.bytes), sum.crc32c);
    pl_map_close(&golden);
    pl_map_close(&written);
}

static void safetensors_golden_file_is_read(void **state)
{
    (void)state;
    pl_safetensors *file;
    assert_ok(pl_safetensors_open(&file, PL_GOLDEN "/small.safetensors"));
    assert_content(file);
    pl_safetensors_free(file);
}

static void safetensors_without_tensors_are_fine(void **state)
{
    const char *path = test_path(*state, "none.safetensors");
    pl_safetensors *file;
    assert_ok(
        pl_safetensors_write(path, &(pl_safetensors_content) { 0 }, NULL));
    assert_ok(pl_safetensors_open(&file, path));
    assert_int_equal(0, pl_safetensors_count(file));
    assert_null(pl_safetensors_metadata(file, "format"));
    pl_safetensors_free(file);
}

static void safetensors_cut_anywhere_are_refused(void **state)
{
    (void)state;
    pl_map golden;
    assert_ok(pl_map_init(&golden, PL_GOLDEN "/small.safetensors"));
    long live = pl_mem_live();
    for (size_t bytes = 0; bytes < golden.bytes; bytes++) {
        pl_safetensors *file;
        char *cut = malloc(bytes == 0 ? 1 : bytes); /* not a byte more */
        assert_non_null(cut);
        memcpy(cut, golden.data, bytes);
        assert_fails(PL_FORMAT,
                     "cut: ", pl_safetensors_parse(&file, cut, bytes, "cut"));
        free(cut);
    }
    assert_int_equal(live, pl_mem_live());
    pl_map_close(&golden);
}

/* Refused or read, but never out of bounds (the sanitizers look on). */
static void safetensors_with_any_changed_bit_do_no_harm(void **state)
{
    (void)state;
    pl_map golden;
    assert_ok(pl_map_init(&golden, PL_GOLDEN "/small.safetensors"));
    char *copy = malloc(golden.bytes);
    assert_non_null(copy);
    memcpy(copy, golden.data, golden.bytes);
    long live = pl_mem_live();
    for (size_t i = 0; i < golden.bytes * 8; i++) {
        pl_safetensors *file = NULL;
        copy[i / 8] = (char)(copy[i / 8] ^ (1 << i % 8));
        pl_status status =
            pl_safetensors_parse(&file, copy, golden.bytes, "copy");
        for (size_t t = 0; status == PL_OK && t < pl_safetensors_count(file);
             t++) {
            const pl_safetensor *tensor = pl_safetensors_get(file, t);
            uint64_t bytes;
            assert_ok(pl_safetensor_bytes(tensor, &bytes));
            pl_crc32c(0, tensor->data, bytes);
        }
        pl_safetensors_free(file);
        copy[i / 8] = (char)(copy[i / 8] ^ (1 << i % 8));
    }
    assert_int_equal(live, pl_mem_live());
    free(copy);
    pl_map_close(&golden);
}

static void safetensors_malformed_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t data_bytes;
        pl_status status;
        const char *message;
    } cases[] = {
        { "", 0, PL_FORMAT, "does not begin with {" },
        { " {}", 0, PL_FORMAT, "does not begin with {" },
        { "[]", 0, PL_FORMAT, "does not begin with {" },
        { "{", 0, PL_FORMAT, "header: line 1" },
        { "{}", 1, PL_FORMAT, "1 bytes after the last tensor" },
        { "{\"a\":1}", 0, PL_FORMAT, "tensor a: dtype: expected an object" },
        { "{\"__metadata__\":{\"a\":1}}", 0, PL_FORMAT,
          "__metadata__: a: expected a string" },
        { "{\"__metadata__\":[]}", 0, PL_FORMAT,
          "__metadata__: expected an object" },
        { "{\"a\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[0,2]}}",
          2, PL_UNSUPPORTED, "tensor a: dtype BF16" },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1],"
          "\"data_offsets\":[0,1]}}",
          1, PL_UNSUPPORTED, "7 dimensions" },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}}", 1,
          PL_FORMAT, "shape: index 0: number: -1 is not in" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],"
          "\"data_offsets\":[0,0]}}",
          0, PL_FORMAT, "shape: more than 2^63 bytes" },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,3]}}", 3,
          PL_FORMAT, "3 bytes of data, its shape needs 2" },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 1,
          PL_FORMAT, "data_offsets: index 1: number: 2 is not in 0 .. 1" },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,0]}}", 2,
          PL_FORMAT, "data_offsets: index 0: number: 2 is not in 0 .. 0" },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0]}}", 2,
          PL_FORMAT, "data_offsets: 1 numbers, expected 2" },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}", 3,
          PL_FORMAT, "tensor a begins at 1, a gap after 0" },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
          "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
          3, PL_FORMAT, "tensor b begins at 1, inside another that ends at 2" },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
          "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
          0, PL_FORMAT, "duplicate" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char bytes[512] = { 0 };
        uint64_t length = strlen(cases[i].header);
        memcpy(bytes, &length, sizeof length);
        memcpy(bytes + sizeof length, cases[i].header, length);
        pl_safetensors *file;
        assert_fails(cases[i].status, cases[i].message,
                     pl_safetensors_parse(
                         &file, bytes,
                         sizeof length + length + cases[i].data_bytes, "case"));
    }
}

static void safetensors_header_length_is_not_trusted(void **state)
{
    (void)state;
    const uint64_t lengths[] = { 3, PL_SAFETENSORS_HEADER_MAX,
                                 PL_SAFETENSORS_HEADER_MAX + 1, INT64_MAX,
                                 UINT64_MAX };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char bytes[10] = "........{}";
        pl_safetensors *file;
        memcpy(bytes, &lengths[i], sizeof lengths[i]);
        assert_fails(PL_FORMAT, "header",
                     pl_safetensors_parse(&file, bytes, sizeof bytes, "x"));
    }
}

static void safetensors_names_are_written_once(void **state)
{
    const char *path = test_path(*state, "a");
    pl_safetensor pair[] = { tensors[0], tensors[0] };
    assert_fails(PL_USAGE, "tensor layer.weight: the name is taken",
                 pl_safetensors_write(
                     path,
                     &(pl_safetensors_content) { .tensors = pair, .count = 2 },
                     NULL));
    pair[0].name = "__metadata__";
    assert_fails(PL_USAGE, "the name is taken",
                 pl_safetensors_write(
                     path,
                     &(pl_safetensors_content) { .tensors = pair, .count = 1 },
                     NULL));
    assert_false(pl_file_exists(path));
}

static void safetensors_survive_failed_allocations(void **state)
{
    const char *path = test_path(*state, "a.safetensors");
    pl_safetensors *file;
    assert_survives_failed_allocations(
        pl_safetensors_write(path, &content, NULL), (void)0);
    assert_survives_failed_allocations(pl_safetensors_open(&file, path),
                                       pl_safetensors_free(file));
}

static void safetensors_survive_each_failed_call(void **state)
{
    const char *path = test_path(*state, "a.safetensors");
    bool failed = true;
    for (long nth = 0; failed; nth++) {
        pl_file_fail_at(nth, ENOSPC);
        pl_status status = pl_safetensors_write(path, &content, NULL);
        failed = pl_file_fail_off();
        assert_int_equal(failed ? PL_IO : PL_OK, status);
    }
    failed = true;
    for (long nth = 0; failed; nth++) {
        pl_safetensors *file = NULL;
        pl_file_fail_at(nth, EIO);
        pl_status status = pl_safetensors_open(&file, path);
        failed = pl_file_fail_off();
        assert_int_equal(failed ? PL_IO : PL_OK, status);
        pl_safetensors_free(file);
    }
}

UNIT_TESTS(TEST_IN_FOLDER(safetensors_written_are_the_golden_bytes),
           cmocka_unit_test(safetensors_golden_file_is_read),
           TEST_IN_FOLDER(safetensors_without_tensors_are_fine),
           cmocka_unit_test(safetensors_cut_anywhere_are_refused),
           cmocka_unit_test(safetensors_with_any_changed_bit_do_no_harm),
           cmocka_unit_test(safetensors_malformed_are_named),
           cmocka_unit_test(safetensors_header_length_is_not_trusted),
           TEST_IN_FOLDER(safetensors_names_are_written_once),
           TEST_IN_FOLDER(safetensors_survive_failed_allocations),
           TEST_IN_FOLDER(safetensors_survive_each_failed_call))
