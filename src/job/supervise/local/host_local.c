/* This machine as a host: decides how a task's process is started and how its
 * end is detected.  The closing socket wakes the supervisor when a process
 * ends, so no signal handler is needed. */
#include "job/supervise/local/host_local.h"

#include "base/mem.h"
#include "job/supervise/child.h"
#include "job/supervise/local/task_socket.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXTRA_ARGS 7 /* after the command, including the NULL */

typedef struct process {
    pl_task_socket socket;
    char *log;
    pid_t pid;        /* 0: none */
    int64_t log_from; /* where the output of this process begins */
} process;

typedef struct host_local {
    pl_host base;
    pl_host_local_opts opts;
    process *processes; /* [opts.tasks] */
    char **argv;        /* the command with room for added arguments */
    size_t args;
    char **environment; /* ours, and the task's name */
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

static pl_status tell(pl_host *host, const pl_job_task *task,
                      const pl_control_message *message)
{
    host_local *h = (host_local *)host;
    return pl_task_socket_send(&h->processes[task->slot].socket, message);
}

static pl_status start(pl_host *host, pl_job_task *task)
{
    host_local *h = (host_local *)host;
    process *p = &h->processes[task->slot];
    int theirs;
    PL_TRY(
        pl_task_socket_open(&p->socket, task->task, h->opts.secret, &theirs));
    pl_status status = start_process(h, p, task, theirs);
    close(theirs);
    if (status != PL_OK)
        pl_task_socket_close(&p->socket);
    else
        task->pid = p->pid;
    return status;
}

/* --- what happens ----------------------------------------------------- */

static pl_status reap(process *p, const pl_host_events *events)
{
    char said[PL_HOST_SAID] = "";
    int ended = 0;
    if (p->pid == 0)
        return PL_OK;
    pid_t pid = waitpid(p->pid, &ended, WNOHANG);
    if (pid == 0 || (pid < 0 && errno == EINTR))
        return PL_OK;
    pl_status status =
        pl_task_socket_take(&p->socket, events); /* its earlier messages */
    pl_task_socket_close(&p->socket);
    p->pid = 0;
    if (ended != 0)
        pl_child_last_lines(p->log, p->log_from, 1, said, sizeof said);
    events->ended(events->context, p->socket.task, ended, said);
    return status;
}

static pl_status turn(pl_host *host, const pl_host_events *events)
{
    host_local *h = (host_local *)host;
    pl_status status = PL_OK;
    for (int i = 0; i < h->opts.tasks; i++) {
        pl_status taken = pl_task_socket_take(&h->processes[i].socket, events);
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
        polls[count++] = (struct pollfd) { .fd = h->processes[i].socket.fd,
                                           .events = POLLIN };
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
        h->processes[i].socket.fd = -1;
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
        pl_task_socket_close(&h->processes[i].socket);
        pl_mem_free(h->processes[i].log);
    }
    pl_mem_free(h->processes);
    pl_mem_free(h->argv);
    pl_mem_free(h->environment);
    pl_mem_free(h);
}
