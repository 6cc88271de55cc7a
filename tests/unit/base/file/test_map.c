#include "base/file/map.h"

#include "base/file/file.h"
#include "base/mem.h"
#include "support/folder.h"
#include "support/unit.h"

#include <sys/stat.h>
#include <unistd.h>

#define PAGES 3

static size_t page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* A file of PAGES pages full of sevens, except for the last two bytes. */
static const char *make_file(const char *folder)
{
    const char *path = test_path(folder, "a");
    size_t bytes = PAGES * page() - 2;
    char *text = malloc(bytes);
    assert_non_null(text);
    memset(text, '7', bytes);
    assert_ok(pl_file_replace(path, text, bytes));
    free(text);
    return path;
}

/* The library's way; must come before the others, which allow mapping. */
static void what_was_read_stays(void **state)
{
    pl_map map;
    const char *path = make_file(*state);
    assert_ok(pl_map_init(&map, path));
    assert_false(pl_map_shared(&map));
    assert_int_equal(0, truncate(path, 1));
    for (size_t i = 0; i < map.bytes; i++)
        assert_int_equal('7', map.data[i]);
    assert_ok(pl_map_check(&map));
    pl_map_close(&map);
    assert_int_equal(0, pl_mem_live());
}

static void a_truncated_file_is_reported_without_a_crash(void **state)
{
    pl_map map, other;
    char last = 'x';
    pl_map_allow();
    const char *path = make_file(*state);
    assert_ok(pl_map_init(&map, path));
    assert_ok(pl_map_init(&other, path));
    assert_true(pl_map_shared(&map));
    assert_ok(pl_map_copy(&map, map.bytes - 1, &last, 1));
    assert_int_equal('7', last);
    assert_int_equal(0, truncate(path, 100));
    assert_true(pl_map_intact(&map)); /* not checked yet */
    assert_int_equal('7', map.data[99]);
    assert_int_equal(0, map.data[map.bytes - 1]);
    assert_int_equal(0, map.data[page()]);
    assert_false(pl_map_intact(&map));
    assert_true(pl_map_intact(&other));
    assert_fails(PL_IO, "a changed while it was read: it had",
                 pl_map_check(&map));
    assert_fails(PL_IO, "and has 100 now",
                 pl_map_copy(&other, 2 * page(), &last, 1));
    /* Growing the file again does not restore what was read before. */
    assert_int_equal(0, truncate(path, (off_t)map.bytes));
    assert_fails(PL_IO, "a changed while it was read: some of",
                 pl_map_check(&map));
    pl_map_close(&map);
    pl_map_close(&other);
    assert_int_equal(0, pl_mem_live());
}

static void a_cut_within_the_last_page_is_found(void **state)
{
    pl_map map;
    pl_map_allow();
    const char *path = make_file(*state);
    assert_ok(pl_map_init(&map, path));
    assert_int_equal(0, truncate(path, (off_t)map.bytes - 1));
    assert_int_equal(0, map.data[map.bytes - 1]);
    assert_true(pl_map_intact(&map)); /* no page is missing */
    assert_fails(PL_IO, "changed while it was read", pl_map_check(&map));
    pl_map_close(&map);
}

static void a_file_put_in_its_place_changes_nothing(void **state)
{
    pl_map map;
    pl_map_allow();
    const char *path = make_file(*state);
    assert_ok(pl_map_init(&map, path));
    assert_ok(pl_file_replace(path, "x", 1));
    assert_int_equal('7', map.data[map.bytes - 1]);
    assert_ok(pl_map_check(&map));
    pl_map_close(&map);
}

static void many_maps_are_watched(void **state)
{
    enum {
        COUNT = 600
    };
    static pl_map maps[COUNT];
    pl_map_allow();
    const char *path = make_file(*state);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++)
            assert_ok(pl_map_init(&maps[i], path));
        for (int i = 0; i < COUNT; i++)
            pl_map_close(&maps[i]);
    }
    for (int i = 0; i < COUNT; i++)
        assert_ok(pl_map_init(&maps[i], path));
    assert_int_equal(0, truncate(path, 0));
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(0, maps[i].data[0]);
        assert_false(pl_map_intact(&maps[i]));
        pl_map_close(&maps[i]);
    }
    assert_int_equal(0, pl_mem_live());
}

static void a_fifo_is_refused_without_blocking(void **state)
{
    pl_map map;
    char *text, end[16];
    size_t bytes;
    int64_t first;
    const char *path = test_path(*state, "fifo");
    assert_int_equal(0, mkfifo(path, 0600));
    assert_fails(PL_IO, "fifo: not a regular file", pl_map_init(&map, path));
    assert_fails(PL_IO, "fifo: not a regular file",
                 pl_file_read_text(&text, path, 100));
    assert_fails(PL_IO, "fifo: not a regular file",
                 pl_file_read_end(path, end, sizeof end, &bytes, &first));
}

static void the_end_of_a_file_is_read(void **state)
{
    char end[5];
    size_t bytes;
    int64_t first;
    const char *path = test_path(*state, "log");
    assert_ok(pl_file_replace(path, "0123456789", 10));
    assert_ok(pl_file_read_end(path, end, sizeof end, &bytes, &first));
    assert_string_equal("6789", end);
    assert_int_equal(4, bytes);
    assert_int_equal(6, first);
    assert_ok(pl_file_replace(path, "ab", 2));
    assert_ok(pl_file_read_end(path, end, sizeof end, &bytes, &first));
    assert_string_equal("ab", end);
    assert_int_equal(0, first);
}

static void too_long_a_file_is_not_read(void **state)
{
    pl_map map;
    const char *path = make_file(*state);
    assert_fails(PL_FORMAT, "longer than 10 bytes",
                 pl_map_read(&map, path, 10));
}

UNIT_TESTS(TEST_IN_FOLDER(what_was_read_stays),
           TEST_IN_FOLDER(a_truncated_file_is_reported_without_a_crash),
           TEST_IN_FOLDER(a_cut_within_the_last_page_is_found),
           TEST_IN_FOLDER(a_file_put_in_its_place_changes_nothing),
           TEST_IN_FOLDER(many_maps_are_watched),
           TEST_IN_FOLDER(a_fifo_is_refused_without_blocking),
           TEST_IN_FOLDER(the_end_of_a_file_is_read),
           TEST_IN_FOLDER(too_long_a_file_is_not_read))
