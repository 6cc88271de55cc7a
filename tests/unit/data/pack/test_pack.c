/* What is packed is unpacked to the same bytes. */
#include "data/pack/pack.h"

#include "base/rng.h"
#include "support/folder.h"

#include <errno.h>

static const pl_packing both[] = { PL_PACKING_GZIP, PL_PACKING_ZSTD };

/* Pack in pieces of growing length. */
static pl_status pack(const char *path, pl_packing packing, const uint8_t *data,
                      size_t bytes, uint64_t *packed)
{
    pl_file_writer *file = NULL;
    pl_packer *packer = NULL;
    pl_status status;
    size_t at = 0;
    PL_TRY_OUT(status, pl_file_writer_new(&file, path));
    PL_TRY_OUT(status, pl_packer_new(&packer, packing, file));
    for (size_t piece = 1; at < bytes; piece = piece * 5 + 1) {
        size_t part = piece < bytes - at ? piece : bytes - at;
        PL_TRY_OUT(status, pl_packer_put(packer, data + at, part));
        at += part;
    }
    PL_TRY_OUT(status, pl_packer_finish(packer));
    *packed = pl_packer_bytes(packer);
    status = pl_file_writer_commit(file);
out:
    pl_packer_free(packer);
    pl_file_writer_free(file);
    return status;
}

static void assert_unpacks(const char *path, pl_packing packing,
                           const uint8_t *data, size_t bytes, uint64_t packed)
{
    pl_map map, found;
    pl_spill spill;
    assert_ok(pl_map_init(&map, path));
    assert_int_equal(packed, map.bytes);
    assert_int_equal(packing, pl_packing_of(map.data, map.bytes, false));
    assert_ok(pl_spill_init(&spill, NULL));
    assert_ok(pl_unpack(&spill, packing, map.data, map.bytes, 0));
    assert_ok(pl_spill_map(&spill, &found));
    assert_int_equal(bytes, found.bytes);
    if (bytes > 0)
        assert_memory_equal(data, found.data, bytes);
    pl_map_close(&found);
    pl_spill_close(&spill);
    pl_map_close(&map);
}

/* Bytes that compress well, and bytes that do not at all. */
static void packed_bytes_come_back(void **state)
{
    enum {
        MOST = 1000000
    };
    const size_t sizes[] = { 0, 1, 65536, 65537, MOST };
    uint8_t *data = malloc(MOST);
    const char *path = test_path(*state, "packed");
    assert_non_null(data);
    for (int random = 0; random < 2; random++) {
        for (size_t i = 0; i < MOST; i++)
            data[i] = (uint8_t)(random ? pl_rng_u64(7, i) : i % 7);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (size_t p = 0; p < 2; p++) {
                uint64_t packed;
                assert_ok(pack(path, both[p], data, sizes[s], &packed));
                assert_unpacks(path, both[p], data, sizes[s], packed);
                if (!random && sizes[s] == MOST)
                    assert_true(packed < MOST / 10);
            }
    }
    free(data);
}

static void packing_follows_the_name(void **state)
{
    (void)state;
    assert_int_equal(PL_PACKING_GZIP, pl_packing_of_name("a/b.svm.gz"));
    assert_int_equal(PL_PACKING_ZSTD, pl_packing_of_name("b.zst"));
    assert_int_equal(PL_PACKING_NONE, pl_packing_of_name("b.gz.svm"));
    assert_int_equal(PL_PACKING_NONE, pl_packing_of_name("gz"));
    assert_int_equal(PL_PACKING_NONE, pl_packing_of_name(""));
}

static void packing_survives_failed_allocations_and_calls(void **state)
{
    const char *path = test_path(*state, "packed");
    uint8_t data[1000] = { 1, 2, 3 };
    for (size_t p = 0; p < 2; p++) {
        uint64_t packed;
        assert_survives_failed_allocations(
            pack(path, both[p], data, sizeof data, &packed), (void)0);
        bool failed = true;
        for (long nth = 0; failed; nth++) {
            pl_file_fail_at(nth, ENOSPC);
            pl_status status = pack(path, both[p], data, sizeof data, &packed);
            failed = pl_file_fail_off();
            assert_int_equal(failed ? PL_IO : PL_OK, status);
        }
    }
}

UNIT_TESTS(TEST_IN_FOLDER(packed_bytes_come_back),
           cmocka_unit_test(packing_follows_the_name),
           TEST_IN_FOLDER(packing_survives_failed_allocations_and_calls))
