/* task_log.c - a copy of a task's log lines: in memory until the run folder is
 * known, then in a file there.  Lines that do not fit into memory are counted,
 * and the file has their number. */
#include "app/run/task_log.h"

#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define KEPT_BYTES ((size_t)64 << 10)

struct pl_task_log {
    int file;     /* -1: not open */
    bool failed;  /* a failed write has been reported */
    size_t used;  /* bytes of `kept` */
    int64_t lost; /* lines that did not fit */
    char kept[KEPT_BYTES];
};

/* False: the write failed, which must not end the training. */
static bool write_all(int file, const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t put = write(file, text, bytes);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        text += put;
        bytes -= (size_t)put;
    }
    return true;
}

/* Called under the log's lock: must not log. */
static void copy_line(void *context, pl_log_level level, const char *line)
{
    (void)level;
    pl_task_log *log = context;
    char text[4200];
    int length = snprintf(text, sizeof text, "%s\n", line);
    size_t bytes =
        (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    if (log->file >= 0)
        log->failed = !write_all(log->file, text, bytes) || log->failed;
    else if (bytes > KEPT_BYTES - log->used)
        log->lost++;
    else {
        memcpy(log->kept + log->used, text, bytes);
        log->used += bytes;
    }
}

pl_status pl_task_log_new(pl_task_log **out)
{
    pl_task_log *log;
    PL_TRY(PL_NEW(log, 1));
    log->file = -1;
    pl_log_copy(copy_line, log);
    *out = log;
    return PL_OK;
}

void pl_task_log_free(pl_task_log *log)
{
    if (log == NULL)
        return;
    pl_log_copy(NULL, NULL);
    if (log->failed)
        pl_log(PL_LOG_WARN, "the log in the run folder is not complete: it "
                            "could not be written");
    if (log->file >= 0)
        close(log->file);
    pl_mem_free(log);
}

static pl_status open_file(const char *run, pl_task task, int *out)
{
    char *folder, *path = NULL;
    PL_TRY(pl_file_join(&folder, run, "log"));
    pl_status status = pl_file_make_folder_unflushed(folder);
    if (status == PL_OK)
        status = pl_mem_format(&path, "%s/%s-%d.log", folder,
                               pl_role_text(task.role), task.index);
    if (status == PL_OK) {
        *out = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (*out < 0)
            status = PL_FAIL(PL_IO, "create %s: %s", path, strerror(errno));
    }
    pl_mem_free(path);
    pl_mem_free(folder);
    return status;
}

void pl_task_log_open(pl_task_log *log, const char *run, pl_task task)
{
    int file;
    char lost[64];
    if (log == NULL || log->file >= 0)
        return;
    if (open_file(run, task, &file) != PL_OK) {
        pl_log(PL_LOG_WARN, "%s; training continues without this log",
               pl_error_message());
        return;
    }
    pl_log_copy(NULL, NULL); /* no other thread writes in the meantime */
    bool good = write_all(file, log->kept, log->used);
    if (log->lost > 0) {
        snprintf(lost, sizeof lost, "(%lld more lines)\n",
                 (long long)log->lost);
        good = write_all(file, lost, strlen(lost)) && good;
    }
    log->failed = !good;
    log->file = file;
    pl_log_copy(copy_line, log);
}

void pl_task_log_line(pl_task_log *log, const char *line)
{
    if (log == NULL)
        return;
    pl_log_copy(NULL, NULL);
    copy_line(log, PL_LOG_ERROR, line);
    pl_log_copy(copy_line, log);
}
