/* One child process: decides what it inherits, and how its end is described. */
#include "job/supervise/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_FREE 3 /* descriptor after the standard ones */

/* Between fork and exec: only async-signal-safe functions may be called. */
static void say_and_exit(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        _exit(PL_CHILD_NO_EXEC); /* only the status reports it */
    _exit(PL_CHILD_NO_EXEC);
}

static void become(const pl_child_opts *opts, int log, int null, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGINT, SIG_IGN);
    int in = opts->in > 0 ? opts->in : null;
    int out = opts->out > 0 ? opts->out : null;
    if (dup2(in, STDIN_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0 ||
        (!opts->keep_stdout && dup2(out, STDOUT_FILENO) < 0) ||
        (opts->control > 0 && fcntl(opts->control, F_SETFD, 0) != 0))
        say_and_exit("cannot set up the standard files\n");
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        say_and_exit("the supervisor is gone\n");
    char *const *environment =
        opts->environment != NULL ? opts->environment : environ;
    if (opts->search)
        execvpe(opts->program, opts->argv, environment);
    else
        execve(opts->program, opts->argv, environment);
    say_and_exit("cannot start the program\n");
}

/* Open the log at its end, as a descriptor other than the standard ones. */
static pl_status open_log(int *out, int64_t *from, const pl_child_opts *opts)
{
    if (opts->log == NULL) {
        *from = 0;
        *out = fcntl(opts->err, F_DUPFD_CLOEXEC, FIRST_FREE);
        return *out >= 0
                   ? PL_OK
                   : PL_FAIL(PL_IO, "pass on a pipe: %s", strerror(errno));
    }
    int low = open(opts->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    int log = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, FIRST_FREE);
    int error = errno;
    if (low >= 0)
        close(low);
    if (log < 0)
        return PL_FAIL(PL_IO, "open %s: %s", opts->log, strerror(error));
    if (opts->mark != NULL && dprintf(log, "%s\n", opts->mark) < 0) {
        pl_status status =
            PL_FAIL(PL_IO, "write %s: %s", opts->log, strerror(errno));
        close(log);
        return status;
    }
    *from = (int64_t)lseek(log, 0, SEEK_END);
    *out = log;
    return PL_OK;
}

pl_status pl_child_start(pid_t *out, int64_t *log_from,
                         const pl_child_opts *opts)
{
    int log;
    PL_TRY(open_log(&log, log_from, opts));
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    pid_t parent = getpid(), child = null < 0 ? -1 : fork();
    int error = errno;
    if (child == 0)
        become(opts, log, null, parent);
    if (null >= 0)
        close(null);
    close(log);
    if (child < 0)
        return PL_FAIL(PL_IO, "start a process: %s", strerror(error));
    *out = child;
    return PL_OK;
}

void pl_child_how(int ended, char *text, size_t room)
{
    if (WIFSIGNALED(ended))
        snprintf(text, room, "was killed by signal %d (%s)", WTERMSIG(ended),
                 strsignal(WTERMSIG(ended)));
    else
        snprintf(text, room, "ended with exit status %d", WEXITSTATUS(ended));
}

bool pl_child_stopped(pid_t pid)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    /* "PID (NAME) STATE ...", where the name may have any characters. */
    const char *end = got > 0 ? strrchr(text, ')') : NULL;
    return end != NULL && end[1] == ' ' && end[2] == 'T';
}

/* The last `most` bytes after `from`, with a NUL. */
static void read_end(const char *log, int64_t from, char *text, size_t room)
{
    text[0] = '\0';
    int file = open(log, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    off_t end = lseek(file, 0, SEEK_END), first = end - (off_t)room + 1;
    if (first < (off_t)from)
        first = (off_t)from;
    ssize_t got = end > first ? pread(file, text, room - 1, first) : 0;
    close(file);
    text[got > 0 ? got : 0] = '\0';
}

void pl_child_last_lines(const char *log, int64_t from, int lines, char *text,
                         size_t room)
{
    read_end(log, from, text, room);
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == '\n')
        text[--length] = '\0';
    char *start = text + length;
    for (; start > text; start--)
        if (start[-1] == '\n' && --lines == 0)
            break;
    memmove(text, start, strlen(start) + 1);
}
