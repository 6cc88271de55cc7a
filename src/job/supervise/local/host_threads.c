/* host_threads.c - tasks as threads of this process: what a thread returned is
 * told as the exit status that its process would have had.  The socket that it
 * closes at its end wakes the supervisor. */
#include "job/supervise/local/host_threads.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "job/supervise/packet.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

typedef struct host_threads host_threads;

typedef struct task_thread {
    host_threads *host;
    pl_task task;
    pl_thread *thread; /* NULL: none */
    int control;       /* -1: closed */
    int theirs;        /* its end of the socket, until it has begun */
    atomic_bool over;  /* the thread has nothing more to do */
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
    pl_status status = opts->run(opts->context, t->task, t->theirs);
    atomic_store(&t->over, true);
    return status;
}

static pl_status tell(pl_host *host, const pl_job_task *task,
                      const pl_control_message *message)
{
    const task_thread *t = &((host_threads *)host)->threads[task->slot];
    if (t->control < 0)
        return PL_OK;
    pl_status status = pl_packet_send(t->control, message);
    if (status == PL_NOMEM)
        return status;
    if (status != PL_OK)
        pl_log(PL_LOG_DEBUG, "%s", pl_error_message());
    return PL_OK;
}

static void send_signal(pl_host *host, const pl_job_task *task, int number)
{
    (void)number;
    (void)tell(host, task, &(pl_control_message) { .kind = PL_CONTROL_END });
}

static pl_status tell_secret(host_threads *h, const pl_job_task *task)
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

static void close_control(task_thread *t)
{
    if (t->control >= 0)
        close(t->control);
    t->control = -1;
}

static pl_status start(pl_host *host, pl_job_task *task)
{
    host_threads *h = (host_threads *)host;
    task_thread *t = &h->threads[task->slot];
    char name[16];
    snprintf(name, sizeof name, "%s %d", pl_role_text(task->task.role),
             task->task.index);
    t->task = task->task;
    PL_TRY(pl_packet_pair(&t->control, &t->theirs));
    pl_status status = tell_secret(h, task);
    if (status == PL_OK)
        status = pl_thread_start(&t->thread, name, thread_main, t);
    if (status == PL_OK)
        return PL_OK;
    close(t->theirs);
    close_control(t);
    return status;
}

/* Everything a task has said. */
static pl_status take_messages(task_thread *t, const pl_host_events *events)
{
    while (t->control >= 0) {
        pl_control_message message;
        pl_status status = pl_packet_receive(t->control, &message);
        if (status == PL_AGAIN || status == PL_NOMEM)
            return status == PL_AGAIN ? PL_OK : status;
        if (status == PL_CLOSED) {
            close_control(t);
        } else if (status == PL_OK) {
            events->message(events->context, t->task, &message);
            pl_control_message_close(&message);
        } else {
            pl_log(PL_LOG_WARN, "%s %d: %s", pl_role_text(t->task.role),
                   t->task.index, pl_error_message());
        }
    }
    return PL_OK;
}

/* What the end of another task looks like to a task: not where it began. */
static bool is_echo(pl_status status)
{
    return status == PL_CLOSED || status == PL_TIMEOUT || status == PL_PEER ||
           status == PL_ROLLED || status == PL_AGAIN ||
           status == PL_INTERRUPTED;
}

/* The first failure that is no echo of another; else the first. */
static void keep_failure(host_threads *h, const task_thread *t,
                         pl_status status)
{
    if (h->failed.status == PL_OK ||
        (is_echo(h->failed.status) && !is_echo(status)))
        pl_error_save(&h->failed,
                      pl_context(status, "%s %d", pl_role_text(t->task.role),
                                 t->task.index));
}

/* A thread that is over has said all that it had to say. */
static pl_status join_over(host_threads *h, task_thread *t,
                           const pl_host_events *events)
{
    if (t->thread == NULL || !atomic_load(&t->over))
        return PL_OK;
    pl_status taken = take_messages(t, events);
    pl_status status = pl_thread_join(t->thread);
    int code = status == PL_OK ? 0 : status == PL_USAGE ? 2 : 1;
    t->thread = NULL;
    close_control(t);
    if (status != PL_OK)
        keep_failure(h, t, status);
    events->ended(events->context, t->task, code << 8, pl_error_message());
    return taken;
}

static pl_status turn(pl_host *host, const pl_host_events *events)
{
    host_threads *h = (host_threads *)host;
    pl_status status = PL_OK;
    for (int i = 0; i < h->opts.tasks; i++) {
        pl_status taken = take_messages(&h->threads[i], events);
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
            (struct pollfd) { .fd = h->threads[i].control, .events = POLLIN };
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
        h->threads[i].control = -1;
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
        close_control(&h->threads[i]); /* a task without one ends */
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
