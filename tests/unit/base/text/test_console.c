#include "base/text/console.h"

#include "base/log.h"
#include "support/unit.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

/* Standard error is one end of this while a test runs. */
typedef struct ends {
    int ours, kept; /* what is read; the real standard error */
} ends;

static ends redirect(int ours, int theirs)
{
    ends e = { ours, dup(STDERR_FILENO) };
    assert_true(e.kept >= 0);
    assert_true(dup2(theirs, STDERR_FILENO) == STDERR_FILENO);
    close(theirs);
    return e;
}

static void restore(ends e)
{
    assert_true(dup2(e.kept, STDERR_FILENO) == STDERR_FILENO);
    close(e.kept);
    close(e.ours);
}

/* Lines until one has no room; how many had. */
static int fill(void)
{
    int lines = 0;
    while (pl_console_print("line %d of many that nobody reads\n", lines))
        lines++;
    return lines;
}

/* All that is there; the count of its lines.  The last one is kept. */
static int drain(int from, char last[256])
{
    char all[1 << 16];
    int lines = 0;
    size_t used = 0;
    assert_true(fcntl(from, F_SETFL, O_NONBLOCK) == 0);
    for (ssize_t got; (got = read(from, all, sizeof all)) > 0;)
        for (ssize_t i = 0; i < got; i++) {
            last[used] = all[i];
            used = used < 254 ? used + 1 : used;
            if (all[i] == '\n') {
                last[used] = '\0';
                lines++;
                used = 0;
            }
        }
    return lines;
}

static void check(int ours, int theirs)
{
    char last[256];
    ends e = redirect(ours, theirs);
    int flags = fcntl(STDERR_FILENO, F_GETFL);
    int lines = fill();
    pl_log(PL_LOG_WARN, "one more line that has no room");
    pl_console_redraw("step 1", 6); /* not counted */
    bool same = fcntl(STDERR_FILENO, F_GETFL) == flags;
    int read = drain(ours, last);
    bool room = pl_console_print("there is room again\n");
    char told[256];
    int after = drain(ours, told);
    restore(e);
    assert_true(same); /* others share the flags */
    assert_true(lines > 10);
    assert_int_equal(lines, read);
    assert_true(room);
    assert_int_equal(2, after);
    assert_string_equal("there is room again\n", told);
}

static void console_drops_what_a_full_pipe_cannot_take(void **state)
{
    (void)state;
    int pipes[2];
    assert_int_equal(0, pipe(pipes));
    check(pipes[0], pipes[1]);
}

static void console_drops_what_a_full_socket_cannot_take(void **state)
{
    (void)state;
    int pair[2];
    assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    check(pair[0], pair[1]);
}

/* As after Ctrl-S: a terminal may take half a line; it gets the rest later. */
static void console_completes_a_half_written_line(void **state)
{
    (void)state;
    int leader, follower;
    struct termios raw;
    char last[256];
    assert_int_equal(0, openpty(&leader, &follower, NULL, NULL, NULL));
    assert_int_equal(0, tcgetattr(follower, &raw));
    cfmakeraw(&raw);
    assert_int_equal(0, tcsetattr(follower, TCSANOW, &raw));
    ends e = redirect(leader, follower);
    int lines = fill();
    int read = drain(leader, last);
    bool room = pl_console_print("there is room again\n");
    read += drain(leader, last);
    restore(e);
    assert_true(lines > 10 && room);
    assert_int_equal(lines + 2, read); /* with that of the dropped ones */
    assert_string_equal("there is room again\n", last);
}

static void console_reports_how_many_lines_were_dropped(void **state)
{
    (void)state;
    int pipes[2];
    char text[256] = "";
    assert_int_equal(0, pipe(pipes));
    ends e = redirect(pipes[0], pipes[1]);
    fill();
    for (int i = 0; i < 11; i++)
        pl_console_write("dropped\n", 8);
    drain(pipes[0], text);
    pl_console_write("after\n", 6);
    ssize_t got = read(pipes[0], text, sizeof text - 1);
    text[got > 0 ? got : 0] = '\0';
    restore(e);
    assert_string_equal("... 12 lines dropped: standard error was not read\n"
                        "after\n",
                        text);
}

/* The last message waits for a reader, but not forever. */
static void console_last_returns_without_a_reader(void **state)
{
    (void)state;
    int pipes[2];
    assert_int_equal(0, pipe(pipes));
    ends e = redirect(pipes[0], pipes[1]);
    fill();
    pl_console_last("the end\n", 8);
    restore(e);
}

UNIT_TESTS(cmocka_unit_test(console_drops_what_a_full_pipe_cannot_take),
           cmocka_unit_test(console_drops_what_a_full_socket_cannot_take),
           cmocka_unit_test(console_completes_a_half_written_line),
           cmocka_unit_test(console_reports_how_many_lines_were_dropped),
           cmocka_unit_test(console_last_returns_without_a_reader))
