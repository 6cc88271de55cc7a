/* Outputs that a user named: where they go, and what stays as it is. */
#include "base/file/file.h"

#include "support/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

static void assert_holds(const char *path, const char *expected)
{
    char *text;
    assert_ok(pl_file_read_text(&text, path, 1 << 20));
    assert_string_equal(expected, text);
    pl_mem_free(text);
}

static mode_t mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(0, lstat(path, &info));
    return info.st_mode;
}

/* No temporary file is left, and nothing was made beside what is expected. */
static void assert_count(const char *folder, size_t count)
{
    char **names;
    size_t found;
    assert_ok(pl_file_list(&names, &found, folder));
    pl_mem_free(names);
    assert_int_equal(count, found);
}

static void output_replaces_a_file_and_keeps_its_mode(void **state)
{
    const char *path = test_path(*state, "a");
    assert_ok(pl_file_output(path, "one", 3));
    assert_holds(path, "one");
    assert_int_equal(0, chmod(path, 0640));
    struct stat before, after;
    assert_int_equal(0, stat(path, &before));
    assert_ok(pl_file_output(path, "two", 3));
    assert_holds(path, "two");
    assert_int_equal(0, stat(path, &after));
    assert_int_equal(S_IFREG | 0640, after.st_mode);
    assert_true(before.st_ino != after.st_ino); /* renamed over, not cut */
    assert_count(*state, 1);
}

static void output_follows_links_and_leaves_them(void **state)
{
    const char *folder = test_path(*state, "folder");
    const char *target = test_path(*state, "folder/target");
    const char *first = test_path(*state, "first");
    const char *second = test_path(*state, "folder/second");
    assert_ok(pl_file_make_folder(folder));
    assert_int_equal(0, symlink("folder/second", first));
    assert_int_equal(0, symlink("target", second));
    assert_ok(pl_file_output(first, "made", 4)); /* it led nowhere before */
    assert_holds(target, "made");
    assert_ok(pl_file_output(first, "replaced", 8));
    assert_holds(target, "replaced");
    assert_true(S_ISLNK(mode_of(first)) && S_ISLNK(mode_of(second)));
    assert_true(S_ISREG(mode_of(target)));
    assert_count(folder, 2);
}

static void output_refuses_links_that_lead_nowhere(void **state)
{
    const char *link = test_path(*state, "link");
    assert_int_equal(0, symlink("none/target", link));
    assert_fails(PL_IO, "link is a link: create ",
                 pl_file_output(link, "text", 4));
    assert_non_null(strstr(pl_error_message(), "there is no folder"));
    const char *loop = test_path(*state, "loop");
    assert_int_equal(0, symlink("loop", loop));
    assert_fails(PL_IO, "Too many levels of symbolic links",
                 pl_file_output(loop, "text", 4));
    assert_count(*state, 2);
}

static void output_refuses_folders_and_sockets(void **state)
{
    assert_fails(PL_IO, "is a folder; name a file in it",
                 pl_file_output(*state, "text", 4));
    assert_fails(PL_IO, "there is no folder",
                 pl_file_output(test_path(*state, "none/a"), "text", 4));
    assert_fails(PL_USAGE, "empty name", pl_file_output("", "text", 4));
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    strcpy(name.sun_path, test_path(*state, "socket"));
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(0, bind(listener, (void *)&name, sizeof name));
    assert_fails(PL_IO, "is a socket", pl_file_output(name.sun_path, "x", 1));
    close(listener);
    assert_true(S_ISSOCK(mode_of(name.sun_path)));
}

static void output_goes_into_a_fifo(void **state)
{
    const char *path = test_path(*state, "fifo");
    char text[16] = "";
    assert_int_equal(0, mkfifo(path, 0600));
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    assert_ok(pl_file_output(path, "text", 4));
    assert_int_equal(4, read(reader, text, sizeof text));
    assert_string_equal("text", text);
    close(reader);
    assert_true(S_ISFIFO(mode_of(path)));
    assert_count(*state, 1);
}

/* A device of the test's own, as those in /dev are the machine's; NULL where
 * none can be made: only root can, and only root could replace one. */
static const char *make_device(const char *folder, const char *name,
                               unsigned minor_number)
{
    const char *path = test_path(folder, name);
    if (mknod(path, S_IFCHR | 0666, makedev(1, minor_number)) != 0)
        return NULL;
    int probe = open(path, O_WRONLY | O_CLOEXEC);
    if (probe < 0)
        return NULL; /* a file system without devices */
    close(probe);
    return path;
}

static void output_goes_into_a_device(void **state)
{
    const char *null = make_device(*state, "null", 3);
    const char *full = make_device(*state, "full", 7);
    if (null == NULL || full == NULL)
        skip();
    const char *link = test_path(*state, "link");
    assert_int_equal(0, symlink("full", link));
    assert_ok(pl_file_output(null, "text", 4));
    assert_fails(PL_IO, "full: No space left on device",
                 pl_file_output(link, "text", 4));
    assert_true(S_ISCHR(mode_of(null)) && S_ISCHR(mode_of(full)));
    assert_true(S_ISLNK(mode_of(link)));
    assert_count(*state, 3);
}

/* As in a shell: the earlier content stays in front. */
static void output_continues_at_the_offset_of_a_descriptor(void **state)
{
    const char *path = test_path(*state, "log");
    char name[64];
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(3, write(file, "one", 3));
    snprintf(name, sizeof name, "/dev/fd/%d", file);
    assert_ok(pl_file_output(name, "two", 3));
    assert_int_equal(5, write(file, "three", 5));
    close(file);
    assert_holds(path, "onetwothree");
    assert_fails(PL_IO, "Bad file descriptor", pl_file_output(name, "x", 1));
}

static void output_stream_grows_in_place(void **state)
{
    int file;
    const char *path = test_path(*state, "a");
    assert_ok(pl_file_output(path, "something long", 14));
    assert_ok(pl_file_stream(&file, path));
    assert_holds(path, "");
    assert_int_equal(3, write(file, "row", 3));
    assert_holds(path, "row");
    close(file);
    assert_fails(PL_IO, "is a folder", pl_file_stream(&file, *state));
    assert_fails(PL_IO, "there is no folder",
                 pl_file_stream(&file, test_path(*state, "none/a")));
}

/* Whatever call fails: the old content or the new, and nothing beside it. */
static void output_survives_each_failed_call(void **state)
{
    const int errors[] = { ENOSPC, EIO, EACCES };
    const char *path = test_path(*state, "target");
    const char *link = test_path(*state, "link");
    assert_int_equal(0, symlink("target", link));
    for (size_t e = 0; e < sizeof errors / sizeof *errors; e++) {
        bool failed = true;
        for (long nth = 0; failed; nth++) {
            assert_ok(pl_file_output(link, "old", 3));
            pl_file_fail_at(nth, errors[e]);
            pl_status status = pl_file_output(link, "new", 3);
            failed = pl_file_fail_off();
            assert_int_equal(failed ? PL_IO : PL_OK, status);
            if (failed)
                assert_non_null(strstr(pl_error_message(), *state));
            char *text;
            assert_ok(pl_file_read_text(&text, path, 10));
            assert_true(strcmp(text, "new") == 0 ||
                        (failed && strcmp(text, "old") == 0));
            pl_mem_free(text);
            assert_true(S_ISLNK(mode_of(link)));
            assert_count(*state, 2);
            assert_true(nth < 100);
        }
    }
}

static void output_survives_failed_allocations(void **state)
{
    const char *link = test_path(*state, "link");
    assert_int_equal(0, symlink("target", link));
    assert_survives_failed_allocations(pl_file_output(link, "text", 4),
                                       (void)0);
    assert_count(*state, 2);
}

UNIT_TESTS(TEST_IN_FOLDER(output_replaces_a_file_and_keeps_its_mode),
           TEST_IN_FOLDER(output_follows_links_and_leaves_them),
           TEST_IN_FOLDER(output_refuses_links_that_lead_nowhere),
           TEST_IN_FOLDER(output_refuses_folders_and_sockets),
           TEST_IN_FOLDER(output_goes_into_a_fifo),
           TEST_IN_FOLDER(output_goes_into_a_device),
           TEST_IN_FOLDER(output_continues_at_the_offset_of_a_descriptor),
           TEST_IN_FOLDER(output_stream_grows_in_place),
           TEST_IN_FOLDER(output_survives_each_failed_call),
           TEST_IN_FOLDER(output_survives_failed_allocations))
