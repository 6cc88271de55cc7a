/* This machine as a host: decides how a task's process is started and found to
 * have ended.  A socket that closes wakes the supervisor when a process ends,
 * so no signal handler is needed. */
#include "job/supervise/local/host_local.h"

#include "base/log.h"
#include "base/mem.h"
#include "job/supervise/child.h"
#include "job/supervise/packet.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXTRA_ARGS 7 /* behind the command, with the NULL */

typedef struct process {
    pl_task task;
    char *log;
    pid_t pid;        /* 0: none */
    int control;      /* -1: closed */
    int64_t log_from; /* where this process's part begins */
} process;

typedef struct host_local {
    pl_host base;
    pl_host_local_opts opts;
    process *processes; /* [opts.tasks] */
    char **argv;        /* the command with room for what is added */
    size_t args;
    char **environment; /* ours, and who the task is */
    char task[64];
} host_local;

/* --- starting --------------------------------------------------------- */

static pl_status start_process(host_local *h, process *p,
                               const pl_job_task *task, int theirs)
{
    const char *role = pl_role_text(task->task.role);
    char index[16], control[16], mark[64];
    snprintf(index, sizeof index, "%d", task->task.index);
    snprintf(control, sizeof control, "%d", theirs);
    snprintf(h->task, sizeof h->task, PL_HOST_TASK "=%s %s", role, index);
    snprintf(mark, sizeof mark, "--- %s %s, start %d", role, index,
             task->starts + 1);
    const char *extra[EXTRA_ARGS] = { "--role",    role,    "--index", index,
                                      "--control", control, NULL };
    memcpy(h->argv + h->args, extra, sizeof extra);
    if (p->log == NULL)
        PL_TRY(
            pl_mem_format(&p->log, "%s/%s-%s.log", h->opts.logs, role, index));
    return pl_child_start(&p->pid, &p->log_from,
                          &(pl_child_opts) {
                              .program = h->opts.program != NULL
                                             ? h->opts.program
                                             : "/proc/self/exe",
                              .argv = h->argv,
                              .log = p->log,
                              .mark = task->starts > 0 ? mark : NULL,
                              .control = theirs,
                              .keep_stdout = task->worker == 0,
                              .environment = h->environment,
                          });
}

/* A task that has gone again is reaped with its own message. */
static pl_status tell(pl_host *host, const pl_job_task *task,
                      const pl_control_message *message)
{
    const process *p = &((host_local *)host)->processes[task->slot];
    if (p->control < 0)
        return PL_OK;
    pl_status status = pl_packet_send(p->control, message);
    if (status == PL_NOMEM)
        return status;
    if (status != PL_OK)
        pl_log(PL_LOG_DEBUG, "%s", pl_error_message());
    return PL_OK;
}

static pl_status tell_secret(host_local *h, const pl_job_task *task)
{
    char text[PL_SECRET_TEXT];
    if (h->opts.secret == NULL)
        return PL_OK;
    pl_secret_text(h->opts.secret, text);
    pl_status status = tell(
        &h->base, task,
        &(pl_control_message) { .kind = PL_CONTROL_SECRET, .secret = text });
    pl_keys_wipe(text, sizeof text);
    return status;
}

static pl_status start(pl_host *host, pl_job_task *task)
{
    host_local *h = (host_local *)host;
    process *p = &h->processes[task->slot];
    int ours, theirs;
    p->task = task->task;
    PL_TRY(pl_packet_pair(&ours, &theirs));
    pl_status status = start_process(h, p, task, theirs);
    close(theirs);
    if (status != PL_OK) {
        close(ours);
        return status;
    }
    p->control = ours;
    task->pid = p->pid;
    return tell_secret(h, task);
}

/* --- what happens ----------------------------------------------------- */

static void close_control(process *p)
{
    if (p->control >= 0)
        close(p->control);
    p->control = -1;
}

/* Everything a task has said. */
static pl_status take_messages(process *p, const pl_host_events *events)
{
    while (p->control >= 0) {
        pl_control_message message;
        pl_status status = pl_packet_receive(p->control, &message);
        if (status == PL_AGAIN || status == PL_NOMEM)
            return status == PL_AGAIN ? PL_OK : status;
        if (status == PL_OK) {
            events->message(events->context, p->task, &message);
            pl_control_message_close(&message);
        } else if (status == PL_CLOSED) {
            close_control(p);
        } else {
            pl_log(PL_LOG_WARN, "%s %d: %s", pl_role_text(p->task.role),
                   p->task.index, pl_error_message());
        }
    }
    return PL_OK;
}

static pl_status reap(process *p, const pl_host_events *events)
{
    char said[PL_HOST_SAID] = "";
    int ended = 0;
    if (p->pid == 0)
        return PL_OK;
    pid_t pid = waitpid(p->pid, &ended, WNOHANG);
    if (pid == 0 || (pid < 0 && errno == EINTR))
        return PL_OK;
    pl_status status = take_messages(p, events); /* what it said before */
    close_control(p);
    p->pid = 0;
    if (ended != 0)
        pl_child_last_lines(p->log, p->log_from, 1, said, sizeof said);
    events->ended(events->context, p->task, ended, said);
    return status;
}

static pl_status turn(pl_host *host, const pl_host_events *events)
{
    host_local *h = (host_local *)host;
    pl_status status = PL_OK;
    for (int i = 0; i < h->opts.tasks; i++) {
        pl_status taken = take_messages(&h->processes[i], events);
        status = status == PL_OK ? taken : status;
    }
    for (int i = 0; i < h->opts.tasks; i++) {
        pl_status reaped = reap(&h->processes[i], events);
        status = status == PL_OK ? reaped : status;
    }
    return status;
}

static void send_signal(pl_host *host, const pl_job_task *task, int number)
{
    const process *p = &((host_local *)host)->processes[task->slot];
    if (p->pid > 0)
        kill(p->pid, number);
}

static void last_lines(pl_host *host, const pl_job_task *task, int lines,
                       char *text, size_t room)
{
    const process *p = &((host_local *)host)->processes[task->slot];
    pl_child_last_lines(p->log, p->log_from, lines, text, room);
}

static int descriptors(const pl_host *host, struct pollfd *polls, int room)
{
    const host_local *h = (const host_local *)host;
    int count = 0;
    for (int i = 0; i < h->opts.tasks && count < room; i++)
        polls[count++] =
            (struct pollfd) { .fd = h->processes[i].control, .events = POLLIN };
    return count;
}

static const pl_host_ops local_ops = {
    .start = start,
    .signal = send_signal,
    .tell = tell,
    .last_lines = last_lines,
    .descriptors = descriptors,
    .turn = turn,
};

/* --- the host --------------------------------------------------------- */

static pl_status copy_command(host_local *h)
{
    while (h->opts.argv[h->args] != NULL)
        h->args++;
    PL_TRY(PL_NEW(h->argv, h->args + EXTRA_ARGS));
    memcpy(h->argv, h->opts.argv, h->args * sizeof *h->argv);
    return PL_OK;
}

static pl_status copy_environment(host_local *h)
{
    size_t count = 0;
    while (environ[count] != NULL)
        count++;
    PL_TRY(PL_NEW(h->environment, count + 2));
    memcpy(h->environment, environ, count * sizeof *environ);
    h->environment[count] = h->task;
    return PL_OK;
}

static pl_status build(host_local *h)
{
    PL_TRY(PL_NEW(h->processes, (size_t)h->opts.tasks));
    for (int i = 0; i < h->opts.tasks; i++)
        h->processes[i].control = -1;
    PL_TRY(copy_command(h));
    return copy_environment(h);
}

pl_status pl_host_local_new(pl_host **out, const pl_host_local_opts *opts)
{
    host_local *h;
    PL_TRY(PL_NEW(h, 1));
    h->base.ops = &local_ops;
    h->opts = *opts;
    pl_status status = build(h);
    if (status == PL_OK)
        *out = &h->base;
    else
        pl_host_local_free(&h->base);
    return status;
}

void pl_host_local_free(pl_host *host)
{
    host_local *h = (host_local *)host;
    if (h == NULL)
        return;
    for (int i = 0; h->processes != NULL && i < h->opts.tasks; i++) {
        close_control(&h->processes[i]);
        pl_mem_free(h->processes[i].log);
    }
    pl_mem_free(h->processes);
    pl_mem_free(h->argv);
    pl_mem_free(h->environment);
    pl_mem_free(h);
}
