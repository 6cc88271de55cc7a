/* host_threads.c - tasks as threads of this process: the result of a thread is
 * reported as the exit status that its process would have had.  The socket that
 * it closes at its end wakes the supervisor. */
#include "job/supervise/local/host_threads.h"

#include "base/mem.h"
#include "base/thread.h"
#include "job/supervise/local/task_socket.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

typedef struct host_threads host_threads;

typedef struct task_thread {
    host_threads *host;
    pl_task_socket socket;
    pl_thread *thread; /* NULL: none */
    int theirs;        /* its end of the socket, until it has begun */
    atomic_bool over;  /* the thread is done */
} task_thread;

struct host_threads {
    pl_host base;
    pl_host_threads_opts opts;
    task_thread *threads; /* [opts.tasks] */
    pl_error failed;      /* of the task that failed */
};

static pl_status thread_main(void *arg)
{
    task_thread *t = arg;
    const pl_host_threads_opts *opts = &t->host->opts;
    pl_status status = opts->run(opts->context, t->socket.task, t->theirs);
    atomic_store(&t->over, true);
    return status;
}

static pl_status tell(pl_host *host, const pl_job_task *task,
                      const pl_control_message *message)
{
    host_threads *h = (host_threads *)host;
    return pl_task_socket_send(&h->threads[task->slot].socket, message);
}

static void send_signal(pl_host *host, const pl_job_task *task, int number)
{
    (void)number;
    (void)tell(host, task, &(pl_control_message) { .kind = PL_CONTROL_END });
}

static pl_status start(pl_host *host, pl_job_task *task)
{
    host_threads *h = (host_threads *)host;
    task_thread *t = &h->threads[task->slot];
    char name[16];
    snprintf(name, sizeof name, "%s %d", pl_role_text(task->task.role),
             task->task.index);
    PL_TRY(pl_task_socket_open(&t->socket, task->task, h->opts.secret,
                               &t->theirs));
    pl_status status = pl_thread_start(&t->thread, name, thread_main, t);
    if (status != PL_OK) {
        close(t->theirs);
        pl_task_socket_close(&t->socket);
    }
    return status;
}

/* Whether a failure is only the effect of another task's end. */
static bool is_echo(pl_status status)
{
    return status == PL_CLOSED || status == PL_TIMEOUT || status == PL_PEER ||
           status == PL_ROLLED || status == PL_AGAIN ||
           status == PL_INTERRUPTED;
}

/* Keep the first failure that is not an echo of another; otherwise the
 * first. */
static void keep_failure(host_threads *h, const task_thread *t,
                         pl_status status)
{
    if (h->failed.status == PL_OK ||
        (is_echo(h->failed.status) && !is_echo(status)))
        pl_error_save(&h->failed, pl_context(status, "%s %d",
                                             pl_role_text(t->socket.task.role),
                                             t->socket.task.index));
}

/* A thread that is over has sent all its messages. */
static pl_status join_over(host_threads *h, task_thread *t,
                           const pl_host_events *events)
{
    if (t->thread == NULL || !atomic_load(&t->over))
        return PL_OK;
    pl_status taken = pl_task_socket_take(&t->socket, events);
    pl_status status = pl_thread_join(t->thread);
    int code = status == PL_OK ? 0 : status == PL_USAGE ? 2 : 1;
    t->thread = NULL;
    pl_task_socket_close(&t->socket);
    if (status != PL_OK)
        keep_failure(h, t, status);
    events->ended(events->context, t->socket.task, code << 8,
                  pl_error_message());
    return taken;
}

static pl_status turn(pl_host *host, const pl_host_events *events)
{
    host_threads *h = (host_threads *)host;
    pl_status status = PL_OK;
    for (int i = 0; i < h->opts.tasks; i++) {
        pl_status taken = pl_task_socket_take(&h->threads[i].socket, events);
        status = status == PL_OK ? taken : status;
    }
    for (int i = 0; i < h->opts.tasks; i++) {
        pl_status joined = join_over(h, &h->threads[i], events);
        status = status == PL_OK ? joined : status;
    }
    return status;
}

static int descriptors(const pl_host *host, struct pollfd *polls, int room)
{
    const host_threads *h = (const host_threads *)host;
    int count = 0;
    for (int i = 0; i < h->opts.tasks && count < room; i++)
        polls[count++] =
            (struct pollfd) { .fd = h->threads[i].socket.fd, .events = POLLIN };
    return count;
}

static const pl_host_ops threads_ops = {
    .start = start,
    .signal = send_signal,
    .tell = tell,
    .descriptors = descriptors,
    .turn = turn,
};

pl_status pl_host_threads_new(pl_host **out, const pl_host_threads_opts *opts)
{
    host_threads *h;
    PL_TRY(PL_NEW(h, 1));
    h->base.ops = &threads_ops;
    h->opts = *opts;
    pl_status status = PL_NEW(h->threads, (size_t)opts->tasks);
    for (int i = 0; status == PL_OK && i < opts->tasks; i++) {
        h->threads[i].host = h;
        h->threads[i].socket.fd = -1;
    }
    if (status == PL_OK)
        *out = &h->base;
    else
        pl_mem_free(h);
    return status;
}

void pl_host_threads_free(pl_host *host, pl_error *failed)
{
    host_threads *h = (host_threads *)host;
    for (int i = 0; i < h->opts.tasks; i++) {
        pl_task_socket_close(
            &h->threads[i].socket); /* a task without one ends */
        pl_status status = pl_thread_join(h->threads[i].thread);
        if (status != PL_OK)
            keep_failure(h, &h->threads[i], status);
    }
    if (failed->status != PL_OK && failed->status != PL_INTERRUPTED &&
        h->failed.status != PL_OK)
        *failed = h->failed;
    pl_mem_free(h->threads);
    pl_mem_free(h);
}
