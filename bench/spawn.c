#include "spawn.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t read_all(int fd, char *text, size_t room)
{
    size_t used = 0;
    char rest[256];
    for (;;) {
        bool full = used == room - 1;
        ssize_t got = full ? read(fd, rest, sizeof rest)
                           : read(fd, text + used, room - 1 - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        if (!full)
            used += (size_t)got;
    }
    text[used] = '\0';
    return used;
}

_Noreturn static void become(const char *const *argv, const int ends[2])
{
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execv(argv[0], (char *const *)argv);
    _exit(127);
}

/* fork, not vfork: the kernel initialises a new program's peak memory from that
 * of its parent's address space; after fork that is only what is mapped now,
 * not this program's own peak. */
pl_status spawn_run(spawned *out, const char *const *argv)
{
    int ends[2], ended;
    struct rusage usage;
    if (pipe(ends) != 0)
        return PL_FAIL(PL_IO, "pipe: %s", strerror(errno));
    int64_t begin = pl_clock_now_ns(pl_clock_real());
    pid_t child = fork();
    if (child == 0)
        become(argv, ends);
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return PL_FAIL(PL_IO, "fork: %s", strerror(errno));
    }
    read_all(ends[0], out->text, sizeof out->text);
    close(ends[0]);
    while (wait4(child, &ended, 0, &usage) < 0)
        if (errno != EINTR)
            return PL_FAIL(PL_IO, "wait for %s: %s", argv[0], strerror(errno));
    out->seconds = (double)(pl_clock_now_ns(pl_clock_real()) - begin) * 1e-9;
    out->peak_rss_bytes = (int64_t)usage.ru_maxrss * 1024;
    if (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0)
        return PL_FAIL(PL_IO, "%s %s did not end well (%s %d)", argv[0],
                       argv[1], WIFEXITED(ended) ? "status" : "signal",
                       WIFEXITED(ended) ? WEXITSTATUS(ended) : WTERMSIG(ended));
    return PL_OK;
}
