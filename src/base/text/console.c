/* Decides by its type how standard error is written without waiting:
 *
 *   pipe, terminal  through a second, non-blocking open of the same file
 *   socket          send with MSG_DONTWAIT
 *   anything else   a plain write: files and /dev/null do not block
 *
 * Where the second open is refused (another user's pipe), poll says whether a
 * write of PIPE_BUF bytes has room.  Another writer of the same pipe may take
 * that room in between, so this is the last resort. */
#include "base/text/console.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAST_MS 1000

typedef enum way {
    PLAIN,
    REOPENED,
    SOCKET,
    POLLED,
} way;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* All guarded by lock. */
static bool bound; /* the rest describes the current standard error */
static dev_t device;
static ino_t inode;
static way how;
static int opened = -1;             /* of REOPENED */
static char rest[PL_CONSOLE_BYTES]; /* of a text that a terminal took in part */
static size_t rest_bytes;
static long dropped; /* lines that were not reported yet */

static void bind_to(const struct stat *is)
{
    if (opened >= 0)
        close(opened);
    opened = -1;
    rest_bytes = 0;
    how = PLAIN;
    if (S_ISSOCK(is->st_mode)) {
        how = SOCKET;
    } else if (S_ISFIFO(is->st_mode) || isatty(STDERR_FILENO)) {
        opened = open("/proc/self/fd/2",
                      O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        how = opened >= 0 ? REOPENED : POLLED;
    }
    device = is->st_dev;
    inode = is->st_ino;
    bound = true;
}

/* Standard error may have been redirected since the last line. */
static void look_bound(void)
{
    struct stat is;
    int error = errno;
    if (fstat(STDERR_FILENO, &is) == 0 &&
        (!bound || is.st_dev != device || is.st_ino != inode))
        bind_to(&is);
    errno = error;
}

static ssize_t write_some(const char *text, size_t bytes)
{
    struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };
    switch (how) {
    case REOPENED:
        return write(opened, text, bytes);
    case SOCKET:
        return send(STDERR_FILENO, text, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    case POLLED:
        if (poll(&room, 1, 0) == 0) {
            errno = EAGAIN;
            return -1;
        }
        break;
    case PLAIN:
        break;
    }
    return write(STDERR_FILENO, text, bytes);
}

/* Write as much as there is room for; returns the bytes left.  When the file
 * accepts nothing any more (closed, disk full), all is dropped. */
static size_t push(const char *text, size_t bytes)
{
    while (bytes > 0) {
        size_t most = bytes < PL_CONSOLE_BYTES ? bytes : PL_CONSOLE_BYTES;
        ssize_t wrote = write_some(text, most);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? bytes : 0;
        text += wrote;
        bytes -= (size_t)wrote;
    }
    return 0;
}

/* Finish a text that was written in part; true when it is complete. */
static bool push_rest(void)
{
    size_t left = push(rest, rest_bytes);
    memmove(rest, rest + (rest_bytes - left), left);
    rest_bytes = left;
    return left == 0;
}

/* A text of which a part was written counts as written. */
static bool push_text(const char *text, size_t bytes)
{
    if (!push_rest())
        return false;
    size_t left = push(text, bytes);
    if (left == bytes && bytes > 0)
        return false;
    rest_bytes = left < sizeof rest ? left : sizeof rest;
    memcpy(rest, text + (bytes - left), rest_bytes);
    return true;
}

static bool push_dropped(void)
{
    char text[96];
    if (dropped == 0)
        return true;
    int used = snprintf(text, sizeof text,
                        "... %ld line%s dropped: standard error was not "
                        "read\n",
                        dropped, dropped == 1 ? "" : "s");
    if (!push_text(text, (size_t)used))
        return false;
    dropped = 0;
    return true;
}

static long lines_of(const char *text, size_t bytes)
{
    long lines = 0;
    for (size_t i = 0; i < bytes; i++)
        lines += text[i] == '\n';
    return lines > 0 ? lines : 1;
}

static bool put(const char *text, size_t bytes, bool counted)
{
    int error = errno;
    pthread_mutex_lock(&lock);
    look_bound();
    bool out = push_dropped() && push_text(text, bytes);
    if (!out && counted)
        dropped += lines_of(text, bytes);
    pthread_mutex_unlock(&lock);
    errno = error;
    return out;
}

bool pl_console_write(const char *text, size_t bytes)
{
    return put(text, bytes, true);
}

bool pl_console_print(const char *format, ...)
{
    char text[PL_CONSOLE_BYTES];
    va_list args;
    va_start(args, format);
    int used = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (used >= (int)sizeof text) {
        used = sizeof text - 1;
        text[used - 1] = '\n';
    }
    return used <= 0 || put(text, (size_t)used, true);
}

bool pl_console_redraw(const char *text, size_t bytes)
{
    return put(text, bytes, false);
}

void pl_console_last(const char *text, size_t bytes)
{
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), LAST_MS);
    while (!put(text, bytes, false) && !pl_deadline_passed(deadline))
        poll(NULL, 0, 10);
}
