#include "base/file/file.h"

#include "support/folder.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void assert_holds(const char *path, const char *expected)
{
    char *text;
    assert_ok(pl_file_read_text(&text, path, 1 << 20));
    assert_string_equal(expected, text);
    pl_mem_free(text);
}

static void assert_names(const char *folder, size_t count, const char **names)
{
    char **found;
    size_t found_count;
    assert_ok(pl_file_list(&found, &found_count, folder));
    assert_int_equal(count, found_count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(names[i], found[i]);
    pl_mem_free(found);
}

static void file_replaced_reads_back(void **state)
{
    const char *path = test_path(*state, "a.txt");
    assert_ok(pl_file_replace(path, "one", 3));
    assert_holds(path, "one");
    assert_ok(pl_file_replace(path, "", 0));
    assert_holds(path, "");
    assert_names(*state, 1, (const char *[]) { "a.txt" });
}

static void file_of_many_pieces_is_whole(void **state)
{
    enum {
        BYTES = 300000
    };
    const char *path = test_path(*state, "large");
    char *data = malloc(BYTES);
    assert_non_null(data);
    for (size_t i = 0; i < BYTES; i++)
        data[i] = (char)('a' + i % 23);

    pl_file_writer *writer;
    assert_ok(pl_file_writer_new(&writer, path));
    size_t at = 0;
    for (size_t piece = 1; at < BYTES; piece = piece * 3 + 1) {
        size_t bytes = piece < BYTES - at ? piece : BYTES - at;
        assert_ok(pl_file_writer_put(writer, data + at, bytes));
        at += bytes;
    }
    assert_ok(pl_file_writer_commit(writer));
    pl_file_writer_free(writer);

    pl_map map;
    assert_ok(pl_map_init(&map, path));
    assert_int_equal(BYTES, map.bytes);
    assert_memory_equal(data, map.data, BYTES);
    pl_map_close(&map);
    free(data);
}

static void file_not_committed_leaves_nothing(void **state)
{
    pl_file_writer *writer;
    assert_ok(pl_file_writer_new(&writer, test_path(*state, "x")));
    assert_ok(pl_file_writer_put(writer, "abc", 3));
    pl_file_writer_free(writer);
    assert_names(*state, 0, NULL);
}

/* Whatever call fails: the old content or the new, and nothing beside it. */
static void file_replace_survives_each_failed_call(void **state)
{
    const int errors[] = { ENOSPC, EIO, EACCES };
    const char *path = test_path(*state, "a");
    for (size_t e = 0; e < sizeof errors / sizeof *errors; e++) {
        bool failed = true;
        for (long nth = 0; failed; nth++) {
            assert_ok(pl_file_replace(path, "old", 3));
            pl_file_fail_at(nth, errors[e]);
            pl_status status = pl_file_replace(path, "new", 3);
            failed = pl_file_fail_off();
            assert_int_equal(failed ? PL_IO : PL_OK, status);
            char *text;
            assert_ok(pl_file_read_text(&text, path, 10));
            assert_true(strcmp(text, "new") == 0 ||
                        (failed && strcmp(text, "old") == 0));
            pl_mem_free(text);
            assert_names(*state, 1, (const char *[]) { "a" });
            assert_true(nth < 100);
        }
    }
}

static void file_call_broken_by_a_signal_is_made_again(void **state)
{
    const char *path = test_path(*state, "a");
    bool hit = true;
    for (long nth = 0; hit; nth++) {
        pl_file_fail_at(nth, EINTR);
        assert_ok(pl_file_replace(path, "text", 4));
        hit = pl_file_fail_off();
        assert_holds(path, "text");
    }
}

static void file_full_disk_error_has_advice(void **state)
{
    const char *path = test_path(*state, "a");
    pl_file_fail_at(1, ENOSPC); /* after the open comes the write */
    assert_fails(PL_IO,
                 "No space left on device; free some space or choose another "
                 "folder",
                 pl_file_replace(path, "text", 4));
    pl_file_fail_off();
    assert_non_null(strstr(pl_error_message(), path));
    pl_file_fail_at(0, EACCES);
    assert_fails(PL_IO, "make the folder writable",
                 pl_file_replace(path, "text", 4));
    pl_file_fail_off();
}

static void file_read_checks_length_and_text(void **state)
{
    char *text;
    const char *path = test_path(*state, "a");
    assert_ok(pl_file_replace(path, "12345", 5));
    assert_fails(PL_FORMAT, "longer than 4 bytes",
                 pl_file_read_text(&text, path, 4));
    assert_ok(pl_file_read_text(&text, path, 5));
    pl_mem_free(text);
    assert_ok(pl_file_replace(path, "1\0002", 3));
    assert_fails(PL_FORMAT, "NUL", pl_file_read_text(&text, path, 100));
}

static void file_missing_is_not_found(void **state)
{
    char *text;
    pl_map map;
    char **names;
    size_t count;
    const char *path = test_path(*state, "none");
    assert_false(pl_file_exists(path));
    assert_fails(PL_NOTFOUND, path, pl_file_read_text(&text, path, 100));
    assert_fails(PL_NOTFOUND, path, pl_map_init(&map, path));
    assert_fails(PL_NOTFOUND, path, pl_file_list(&names, &count, path));
    assert_fails(PL_IO, "none/a: No such file",
                 pl_file_replace(test_path(path, "a"), "", 0));
}

static void file_map_of_nothing_and_of_a_folder(void **state)
{
    pl_map map;
    const char *path = test_path(*state, "a");
    assert_ok(pl_file_replace(path, "", 0));
    assert_ok(pl_map_init(&map, path));
    assert_null(map.data);
    assert_int_equal(0, map.bytes);
    pl_map_close(&map);
    assert_fails(PL_IO, "Is a directory", pl_map_init(&map, *state));
    assert_fails(PL_IO, "not a regular file", pl_map_init(&map, "/dev/null"));
}

static void file_reading_survives_each_failed_call(void **state)
{
    const char *path = test_path(*state, "a");
    assert_ok(pl_file_replace(path, "text", 4));
    bool failed = true;
    for (long nth = 0; failed; nth++) {
        char *text = NULL;
        char **names = NULL;
        size_t count;
        pl_map map = { 0 };
        long live = pl_mem_live();
        pl_file_fail_at(nth, EIO);
        pl_status status = pl_file_read_text(&text, path, 10);
        if (status == PL_OK)
            status = pl_map_init(&map, path);
        if (status == PL_OK)
            status = pl_file_list(&names, &count, *state);
        failed = pl_file_fail_off();
        assert_int_equal(failed ? PL_IO : PL_OK, status);
        pl_mem_free(text);
        pl_mem_free(names);
        pl_map_close(&map);
        assert_int_equal(live, pl_mem_live());
    }
}

static void file_folders_are_made_with_those_above(void **state)
{
    const char *path = test_path(*state, "a/b//c/");
    assert_ok(pl_file_make_folder(path));
    assert_ok(pl_file_make_folder(path));
    assert_true(pl_file_exists(path));
    const char *file = test_path(*state, "a/file");
    assert_ok(pl_file_replace(file, "", 0));
    assert_fails(PL_IO, "a file of that name", pl_file_make_folder(file));
    assert_fails(PL_IO, "Not a directory",
                 pl_file_make_folder(test_path(file, "x")));
    assert_fails(PL_IO, "", pl_file_make_folder(""));
}

/* After mkdir() of a folder comes its flush; after that of an unflushed one,
 * whose parents are flushed, nothing. */
static void file_unflushed_folder_is_made_without_a_flush(void **state)
{
    pl_file_fail_at(1, EIO);
    assert_fails(PL_IO, "flush", pl_file_make_folder(test_path(*state, "a")));
    assert_true(pl_file_fail_off());
    pl_file_fail_at(1, EIO);
    assert_ok(pl_file_make_folder_unflushed(test_path(*state, "b")));
    assert_false(pl_file_fail_off());
    pl_file_fail_at(1, EIO);
    assert_fails(PL_IO, "flush",
                 pl_file_make_folder_unflushed(test_path(*state, "c/d")));
    assert_true(pl_file_fail_off());
}

static void file_removing_does_not_follow_links(void **state)
{
    const char *kept = test_path(*state, "kept");
    const char *gone = test_path(*state, "gone");
    assert_ok(pl_file_make_folder(test_path(gone, "deep")));
    assert_ok(pl_file_replace(kept, "text", 4));
    assert_int_equal(0, symlink(*state, test_path(gone, "deep/link")));
    assert_ok(pl_file_remove_all(gone));
    assert_false(pl_file_exists(gone));
    assert_holds(kept, "text");
    assert_ok(pl_file_remove_all(gone)); /* not there: fine */
    assert_ok(pl_file_remove_all(kept));
    assert_false(pl_file_exists(kept));
}

static void file_removing_reports_what_failed(void **state)
{
    const char *path = test_path(*state, "a");
    assert_ok(pl_file_replace(path, "", 0));
    pl_file_fail_at(0, EBUSY);
    assert_fails(PL_IO, "remove", pl_file_remove_all(path));
    pl_file_fail_off();
    assert_true(pl_file_exists(path));
}

static void file_rename_moves(void **state)
{
    const char *from = test_path(*state, "from");
    const char *to = test_path(*state, "to");
    assert_fails(PL_IO, "from: rename to", pl_file_rename(from, to));
    assert_ok(pl_file_replace(from, "text", 4));
    assert_ok(pl_file_rename(from, to));
    assert_false(pl_file_exists(from));
    assert_holds(to, "text");
}

static void file_join_puts_one_slash(void **state)
{
    (void)state;
    const char *cases[][3] = { { "a", "b", "a/b" },
                               { "a/", "b", "a/b" },
                               { "/", "b", "/b" },
                               { "", "b", "b" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *path;
        assert_ok(pl_file_join(&path, cases[i][0], cases[i][1]));
        assert_string_equal(cases[i][2], path);
        pl_mem_free(path);
    }
}

static void file_names_come_sorted(void **state)
{
    const char *sorted[] = { ".dot", "a", "b", "c" };
    for (size_t i = 4; i-- > 0;)
        assert_ok(pl_file_replace(test_path(*state, sorted[i]), "", 0));
    assert_names(*state, 4, sorted);
}

static void file_calls_survive_failed_allocations(void **state)
{
    const char *path = test_path(*state, "a/b");
    char *text;
    char **names;
    size_t count;
    assert_survives_failed_allocations(pl_file_make_folder(path), (void)0);
    path = test_path(*state, "a/b/c");
    assert_survives_failed_allocations(pl_file_replace(path, "text", 4),
                                       (void)0);
    assert_survives_failed_allocations(pl_file_read_text(&text, path, 10),
                                       pl_mem_free(text));
    assert_survives_failed_allocations(pl_file_list(&names, &count, *state),
                                       pl_mem_free(names));
    assert_names(test_path(*state, "a/b"), 1, (const char *[]) { "c" });
}

UNIT_TESTS(TEST_IN_FOLDER(file_replaced_reads_back),
           TEST_IN_FOLDER(file_of_many_pieces_is_whole),
           TEST_IN_FOLDER(file_not_committed_leaves_nothing),
           TEST_IN_FOLDER(file_replace_survives_each_failed_call),
           TEST_IN_FOLDER(file_call_broken_by_a_signal_is_made_again),
           TEST_IN_FOLDER(file_full_disk_error_has_advice),
           TEST_IN_FOLDER(file_read_checks_length_and_text),
           TEST_IN_FOLDER(file_missing_is_not_found),
           TEST_IN_FOLDER(file_map_of_nothing_and_of_a_folder),
           TEST_IN_FOLDER(file_reading_survives_each_failed_call),
           TEST_IN_FOLDER(file_folders_are_made_with_those_above),
           TEST_IN_FOLDER(file_unflushed_folder_is_made_without_a_flush),
           TEST_IN_FOLDER(file_removing_does_not_follow_links),
           TEST_IN_FOLDER(file_removing_reports_what_failed),
           TEST_IN_FOLDER(file_rename_moves),
           cmocka_unit_test(file_join_puts_one_slash),
           TEST_IN_FOLDER(file_names_come_sorted),
           TEST_IN_FOLDER(file_calls_survive_failed_allocations))
