/* One task of an agent: decides its environment, and splits its output into
 * lines. */
#include "job/hosts/agent_task.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_MOST ((size_t)256 * 1024) /* a longer one is split */

extern char **environ;

/* --- the command ------------------------------------------------------ */

/* Whether `entry`, "NAME=value", has the name of one of the list. */
static bool is_replaced(const char *entry, char *const *list)
{
    size_t name = strcspn(entry, "=") + 1;
    for (; *list != NULL; list++)
        if (strncmp(entry, *list, name) == 0)
            return true;
    return false;
}

static size_t count_words(char *const *words)
{
    size_t count = 0;
    while (words[count] != NULL)
        count++;
    return count;
}

/* The variables of the message, then those of this process with other names:
 * only the list is allocated. */
static pl_status make_environment(char ***out, char *const *own, char *keys)
{
    size_t count = count_words(own);
    char **list;
    PL_TRY(PL_NEW(list, count + count_words(environ) + 2));
    memcpy(list, own, count * sizeof *list);
    list[count++] = keys;
    for (char **entry = environ; *entry != NULL; entry++)
        if (!is_replaced(*entry, list))
            list[count++] = *entry;
    *out = list;
    return PL_OK;
}

/* --- the process ------------------------------------------------------ */

static pl_status open_stream(pl_agent_stream *stream, int *theirs)
{
    int ends[2];
    PL_TRY(PL_NEW(stream->line, LINE_MOST + 1));
    if (pipe2(ends, O_CLOEXEC) != 0)
        return PL_FAIL(PL_IO, "make a pipe: %s", strerror(errno));
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    stream->fd = ends[0];
    *theirs = ends[1];
    return PL_OK;
}

static void close_stream(pl_agent_stream *stream)
{
    if (stream->fd >= 0)
        close(stream->fd);
    pl_mem_free(stream->line);
    *stream = (pl_agent_stream) { .fd = -1 };
}

static pl_status start(pl_agent_task *task, const pl_control_message *message,
                       int secret, int theirs[2])
{
    char keys[64], **environment = NULL;
    int64_t unused;
    pl_status status;
    snprintf(keys, sizeof keys, "PACELINE_KEYS=/proc/self/fd/%d", secret);
    PL_TRY_OUT(status,
               make_environment(&environment, message->environment, keys));
    PL_TRY_OUT(status, open_stream(&task->out, &theirs[0]));
    PL_TRY_OUT(status, open_stream(&task->err, &theirs[1]));
    status = pl_child_start(&task->pid, &unused,
                            &(pl_child_opts) {
                                .program = "/proc/self/exe",
                                .argv = message->argv,
                                .control = secret,
                                .out = theirs[0],
                                .err = theirs[1],
                                .environment = environment,
                            });
out:
    pl_mem_free(environment);
    return status;
}

pl_status pl_agent_task_start(pl_agent_task *task,
                              const pl_control_message *message, int secret)
{
    int theirs[2] = { -1, -1 };
    *task = (pl_agent_task) {
        .task = message->task,
        .out = { .fd = -1 },
        .err = { .fd = -1 },
    };
    pl_status status = start(task, message, secret, theirs);
    for (int i = 0; i < 2; i++)
        if (theirs[i] >= 0)
            close(theirs[i]);
    if (status != PL_OK)
        pl_agent_task_close(task);
    return status;
}

void pl_agent_task_close(pl_agent_task *task)
{
    close_stream(&task->out);
    close_stream(&task->err);
}

/* --- what it prints --------------------------------------------------- */

static void pass_line(pl_agent_task *task, bool error, pl_agent_line *pass,
                      void *context)
{
    pl_agent_stream *stream = error ? &task->err : &task->out;
    stream->line[stream->used] = '\0';
    stream->used = 0;
    if (error)
        snprintf(task->said, sizeof task->said, "%s", stream->line);
    pass(context, task, error, stream->line);
}

static void take(pl_agent_task *task, bool error, const char *bytes,
                 size_t count, pl_agent_line *pass, void *context)
{
    pl_agent_stream *stream = error ? &task->err : &task->out;
    for (size_t i = 0; i < count; i++) {
        bool end = bytes[i] == '\n';
        if (!end && bytes[i] != '\0')
            stream->line[stream->used++] = bytes[i];
        if (end || stream->used == LINE_MOST)
            pass_line(task, error, pass, context);
    }
}

static void read_stream(pl_agent_task *task, bool error, pl_agent_line *pass,
                        void *context)
{
    pl_agent_stream *stream = error ? &task->err : &task->out;
    char bytes[4096];
    while (stream->fd >= 0) {
        ssize_t got = read(stream->fd, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0) {
            close(stream->fd);
            stream->fd = -1;
            return;
        }
        take(task, error, bytes, (size_t)got, pass, context);
    }
}

void pl_agent_task_read(pl_agent_task *task, pl_agent_line *pass, void *context)
{
    read_stream(task, false, pass, context);
    read_stream(task, true, pass, context);
}

void pl_agent_task_finish(pl_agent_task *task, pl_agent_line *pass,
                          void *context)
{
    if (task->out.used > 0)
        pass_line(task, false, pass, context);
    if (task->err.used > 0)
        pass_line(task, true, pass, context);
}
