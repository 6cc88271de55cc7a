/* copy.c - sends a file, such as the program, to all hosts at once and reports
 * the hosts where that failed. */
#include "app/launch/launch.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "job/supervise/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM_MS 120000
#define LOOK_MS    20
#define PATH_BYTES 1024

/* The file appears under its name complete or not at all; prints its path. */
#define SCRIPT                                                                 \
    "umask 077 && d=${XDG_CACHE_HOME:-$HOME/.cache}/paceline/bin && "          \
    "mkdir -p \"$d\" && cat > \"$d/.paceline.$$\" && "                         \
    "chmod 700 \"$d/.paceline.$$\" && "                                        \
    "mv \"$d/.paceline.$$\" \"$d/paceline\" && echo \"$d/paceline\""

/* A copy in progress. */
typedef struct copy {
    pid_t pid; /* 0: it has ended */
    int ended;
    int out, err; /* -1: closed */
    char answer[PATH_BYTES], words[PATH_BYTES];
} copy;

static pl_status start_process(copy *c, const char *path, char **command)
{
    int out[2] = { -1, -1 }, err[2] = { -1, -1 };
    int64_t unused;
    int from = open(path, O_RDONLY | O_CLOEXEC);
    pl_status status = PL_OK;
    if (from < 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
        status = PL_FAIL(PL_IO, "open %s: %s", path, strerror(errno));
    if (status == PL_OK)
        status = pl_child_start(&c->pid, &unused,
                                &(pl_child_opts) { .program = command[0],
                                                   .argv = command,
                                                   .in = from,
                                                   .out = out[1],
                                                   .err = err[1],
                                                   .search = true });
    int ours[] = { from, out[1], err[1] };
    for (int i = 0; i < 3; i++)
        if (ours[i] >= 0)
            close(ours[i]);
    c->out = out[0];
    c->err = err[0];
    return status;
}

static pl_status start_copy(copy *c, const pl_launch_file *file,
                            const pl_reach *reach, const char *host)
{
    char **command;
    PL_TRY(pl_reach_shell(&command, reach, host, file->script));
    pl_status status = start_process(c, file->path, command);
    pl_reach_free(command);
    return status;
}

/* The last line of its output, after it has ended. */
static void read_line(int fd, char *text)
{
    ssize_t got = fd >= 0 ? read(fd, text, PATH_BYTES - 1) : 0;
    text[got > 0 ? got : 0] = '\0';
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == '\n')
        text[--length] = '\0';
    const char *last = strrchr(text, '\n');
    if (last != NULL)
        memmove(text, last + 1, strlen(last));
}

static pl_status finish_copy(copy *c, const pl_launch_file *file,
                             const char *host, char **out)
{
    read_line(c->out, c->answer);
    read_line(c->err, c->words);
    if (c->pid > 0)
        return PL_FAIL(PL_TIMEOUT, "%s: %s was not copied there within %lld s",
                       host, file->name, (long long)(file->ms / 1000));
    if (WIFEXITED(c->ended) && WEXITSTATUS(c->ended) == 0 &&
        c->answer[0] != '\0')
        return pl_mem_copy_text(out, c->answer);
    return PL_FAIL(PL_CLOSED, "%s: cannot copy %s there: %s", host, file->name,
                   c->words[0] != '\0' ? c->words : "no reason given");
}

static void close_copy(copy *c)
{
    if (c->pid > 0) {
        kill(c->pid, SIGKILL);
        waitpid(c->pid, &c->ended, 0);
    }
    if (c->out >= 0)
        close(c->out);
    if (c->err >= 0)
        close(c->err);
}

static int running(copy *copies, int32_t count)
{
    int left = 0;
    for (int32_t h = 0; h < count; h++) {
        copy *c = &copies[h];
        if (c->pid > 0 && waitpid(c->pid, &c->ended, WNOHANG) == c->pid)
            c->pid = 0;
        left += c->pid > 0;
    }
    return left;
}

static pl_status copy_all(copy *copies, const pl_launch_file *file,
                          const pl_host_list *hosts, const pl_reach *reach,
                          char **out, const atomic_bool *interrupt)
{
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), file->ms);
    pl_status status = PL_OK;
    for (int32_t h = 0; h < hosts->count; h++)
        PL_TRY(start_copy(&copies[h], file, reach, hosts->name[h]));
    while (running(copies, hosts->count) > 0 && !pl_deadline_passed(deadline)) {
        if (interrupt != NULL && atomic_load(interrupt))
            return PL_FAIL(PL_INTERRUPTED, "interrupted");
        poll(NULL, 0, LOOK_MS);
    }
    for (int32_t h = 0; h < hosts->count && status == PL_OK; h++)
        status = finish_copy(&copies[h], file, hosts->name[h], &out[h]);
    return status;
}

pl_status pl_launch_send(const pl_launch_file *file, const pl_host_list *hosts,
                         const pl_reach *reach, char **answers,
                         const atomic_bool *interrupt)
{
    copy *list;
    PL_TRY(PL_NEW(list, (size_t)hosts->count));
    for (int32_t h = 0; h < hosts->count; h++)
        list[h] = (copy) { .out = -1, .err = -1 };
    pl_status status = copy_all(list, file, hosts, reach, answers, interrupt);
    for (int32_t h = 0; h < hosts->count; h++)
        close_copy(&list[h]);
    pl_mem_free(list);
    return status;
}

pl_status pl_launch_copy(const pl_host_list *hosts, const pl_reach *reach,
                         char **copies, const atomic_bool *interrupt)
{
    PL_TRY(pl_launch_send(&(pl_launch_file) { .path = "/proc/self/exe",
                                              .name = "the program",
                                              .script = SCRIPT,
                                              .ms = PROGRAM_MS },
                          hosts, reach, copies, interrupt));
    for (int32_t h = 0; h < hosts->count; h++)
        if (copies[h][0] != '/' || strchr(copies[h], '\'') != NULL)
            return PL_FAIL(PL_CLOSED,
                           "%s: cannot start the program from %s there",
                           hosts->name[h], copies[h]);
    return PL_OK;
}
