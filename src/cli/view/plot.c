/* plot.c - runs gnuplot on the report's commands, in the folder of the figures,
 * with a deadline. */
#include "cli/view/plot.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "job/supervise/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM     "gnuplot"
#define DEADLINE_MS 60000
#define TICK_MS     100
#define SCRIPT      ".report.gnuplot"
#define LOG         ".report.log"

/* The path of the program, as a shell would find it. */
static pl_status find_program(char **out)
{
    const char *path = getenv("PATH");
    path = path != NULL ? path : "/usr/bin:/bin";
    while (*path != '\0') {
        size_t length = strcspn(path, ":");
        if (length > 0 && path[0] == '/') {
            PL_TRY(pl_mem_format(out, "%.*s/" PROGRAM, (int)length, path));
            if (access(*out, X_OK) == 0)
                return PL_OK;
            pl_mem_free(*out);
            *out = NULL;
        }
        path += length + (path[length] == ':');
    }
    return PL_FAIL(PL_NOTFOUND, "no " PROGRAM "; install gnuplot-nox");
}

/* Wait until it ends or is killed at the deadline. */
static pl_status wait_for(pid_t pid, int *ended)
{
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), DEADLINE_MS);
    int file = (int)syscall(SYS_pidfd_open, pid, 0);
    bool late = false;
    while (waitpid(pid, ended, late ? 0 : WNOHANG) == 0) {
        struct pollfd wait = { .fd = file, .events = POLLIN };
        poll(&wait, 1, TICK_MS);
        late = pl_deadline_passed(deadline);
        if (late)
            kill(pid, SIGKILL);
    }
    if (file >= 0)
        close(file);
    if (late)
        return PL_FAIL(PL_TIMEOUT, PROGRAM " did not end within %d s",
                       DEADLINE_MS / 1000);
    return PL_OK;
}

static pl_status run(const char *program, const char *script,
                     const char *folder, const char *log)
{
    char *const argv[] = { (char *)PROGRAM, (char *)"-c", (char *)script,
                           (char *)folder, NULL };
    char last[512];
    int64_t from;
    int ended = 0;
    pid_t pid;
    PL_TRY(pl_child_start(&pid, &from,
                          &(pl_child_opts) {
                              .program = program,
                              .argv = argv,
                              .log = log,
                          }));
    PL_TRY(wait_for(pid, &ended));
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0)
        return PL_OK;
    pl_child_last_lines(log, from, 1, last, sizeof last);
    return PL_FAIL(PL_IO, PROGRAM " failed: %s", last);
}

/* The folder is passed as an argument, so nothing needs quoting. */
static pl_status write_script(const pl_buffer *commands, const char *path)
{
    pl_buffer script = { 0 };
    pl_buffer_text(&script, "cd ARG1\n");
    pl_buffer_put(&script, commands->data, commands->bytes);
    pl_status status = pl_buffer_status(&script);
    if (status == PL_OK) /* replaced, so that no symbolic link is followed */
        status = pl_file_replace(path, script.data, script.bytes);
    pl_buffer_close(&script);
    return status;
}

pl_status pl_plot(const pl_buffer *commands, const char *folder)
{
    char *program = NULL, *script = NULL, *log = NULL;
    pl_status status;
    PL_TRY_OUT(status, find_program(&program));
    PL_TRY_OUT(status, pl_file_join(&script, folder, SCRIPT));
    PL_TRY_OUT(status, pl_file_join(&log, folder, LOG));
    PL_TRY_OUT(status, write_script(commands, script));
    status = run(program, script, folder, log);
    if (status == PL_OK)
        status = pl_file_remove_all(script);
    if (status == PL_OK)
        status = pl_file_remove_all(log);
out:
    pl_mem_free(program);
    pl_mem_free(script);
    pl_mem_free(log);
    return status;
}
