/* steps.c - starts the processes of `demo`, finds the worker to kill, and ends
 * all of them. */
#include "cli/demo/steps.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/record/timeline.h"
#include "job/supervise/child.h"
#include "observe/resources/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM    "/proc/self/exe"
#define SLICE_MS   20
#define PAGE_MS    30000 /* for the page to print its URL */
#define WORDS_MOST 32
#define PIDS_MOST  64
#define LINE_BYTES 512

void pl_demo_title(pl_demo *demo, const char *text)
{
    printf("\n%d. %s\n", ++demo->step, text);
    fflush(stdout);
}

static pl_status start(pl_demo *demo, pid_t *pid, const char *const *words,
                       int out)
{
    char *argv[WORDS_MOST];
    int64_t from;
    size_t count = 0;
    argv[count++] = (char *)demo->app->program;
    printf("   $ %s", demo->app->program);
    for (; *words != NULL && count < WORDS_MOST - 1; words++) {
        printf(" %s", *words);
        argv[count++] = (char *)*words;
    }
    argv[count] = NULL;
    puts("");
    fflush(stdout);
    return pl_child_start(pid, &from,
                          &(pl_child_opts) { .program = PROGRAM,
                                             .argv = argv,
                                             .keep_stdout = out == 0,
                                             .out = out,
                                             .err = STDERR_FILENO });
}

pl_status pl_demo_start(pl_demo *demo, pl_demo_process *process,
                        const char *const *words)
{
    *process = (pl_demo_process) { 0 };
    return start(demo, &process->pid, words, 0);
}

static bool has_ended(pl_demo_process *process)
{
    if (!process->ended)
        process->ended = waitpid(process->pid, &process->wait_status,
                                 WNOHANG) == process->pid;
    return process->ended;
}

pl_status pl_demo_finish(pl_demo *demo, pl_demo_process *process, bool stop)
{
    char how[96];
    bool asked = false;
    while (!has_ended(process)) {
        if (!asked && (stop || atomic_load(demo->interrupt)))
            asked = kill(process->pid, SIGTERM) == 0;
        poll(NULL, 0, SLICE_MS);
    }
    if (atomic_load(demo->interrupt))
        return PL_FAIL(PL_INTERRUPTED,
                       "interrupted; the results so far are "
                       "in %s",
                       demo->folder);
    if (WIFEXITED(process->wait_status) &&
        WEXITSTATUS(process->wait_status) == 0)
        return PL_OK;
    pl_child_how(process->wait_status, how, sizeof how);
    return PL_FAIL(PL_IO, "the command above %s", how);
}

pl_status pl_demo_run(pl_demo *demo, const char *const *words)
{
    pl_demo_process process;
    PL_TRY(pl_demo_start(demo, &process, words));
    return pl_demo_finish(demo, &process, false);
}

/* The step of the newest checkpoint in the timeline; 0: none. */
static pl_status newest_checkpoint(const char *run, int64_t *step)
{
    pl_run_events events;
    PL_TRY(pl_run_events_read(&events, run));
    for (size_t i = 0; i < events.count; i++)
        if (events.list[i].kind == PL_EVENT_CHECKPOINT &&
            events.list[i].step > *step)
            *step = events.list[i].step;
    pl_run_events_close(&events);
    return PL_OK;
}

pl_status pl_demo_wait_checkpoint(pl_demo *demo, pl_demo_process *job,
                                  const char *run, int64_t *step)
{
    *step = 0;
    while (*step == 0 && !has_ended(job)) {
        if (atomic_load(demo->interrupt))
            return PL_OK; /* pl_demo_finish reports it */
        PL_TRY(newest_checkpoint(run, step));
        poll(NULL, 0, SLICE_MS);
    }
    if (job->ended)
        *step = 0;
    return PL_OK;
}

/* Is this process worker 1, by its arguments? */
static bool is_worker(pid_t pid)
{
    static const char mark[] = "--role\0worker\0--index\0001";
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = file >= 0 ? read(file, text, sizeof text) : 0;
    if (file >= 0)
        close(file);
    return bytes > 0 && memmem(text, (size_t)bytes, mark, sizeof mark) != NULL;
}

pl_status pl_demo_kill_worker(pl_demo *demo, const pl_demo_process *job,
                              int64_t step)
{
    pid_t pids[PIDS_MOST];
    (void)demo;
    int count = pl_process_tree(PL_PROC, job->pid, pids, PIDS_MOST);
    for (int i = 0; i < count; i++)
        if (is_worker(pids[i]) && kill(pids[i], SIGKILL) == 0) {
            fprintf(stderr,
                    "\n   $ kill -9 %d      # worker 1, after the "
                    "checkpoint of step %lld\n",
                    (int)pids[i], (long long)step);
            return PL_OK;
        }
    return PL_FAIL(PL_NOTFOUND,
                   "worker 1 was not found among the %d processes "
                   "of the job",
                   count);
}

/* The first line that the page prints. */
static pl_status read_url(pl_demo *demo, int file)
{
    size_t used = 0;
    pl_deadline end = pl_deadline_in_ms(pl_clock_real(), PAGE_MS);
    while (used < sizeof demo->url - 1) {
        struct pollfd wait = { .fd = file, .events = POLLIN };
        if (atomic_load(demo->interrupt))
            return PL_FAIL(PL_INTERRUPTED, "interrupted");
        if (pl_deadline_passed(end))
            return PL_FAIL(PL_TIMEOUT, "the page printed no URL");
        if (poll(&wait, 1, SLICE_MS) <= 0)
            continue;
        ssize_t bytes = read(file, demo->url + used, 1);
        if (bytes <= 0)
            return PL_FAIL(PL_IO, "the page ended before it printed its URL");
        if (demo->url[used] == '\n')
            break;
        used++;
    }
    demo->url[used] = '\0';
    return PL_OK;
}

pl_status pl_demo_page(pl_demo *demo)
{
    int ends[2];
    const char *const words[] = { "page", demo->folder, NULL };
    if (pipe2(ends, O_CLOEXEC) != 0)
        return PL_FAIL(PL_IO, "make a pipe: %s", strerror(errno));
    pl_status status = start(demo, &demo->page, words, ends[1]);
    close(ends[1]);
    if (status == PL_OK)
        status = read_url(demo, ends[0]);
    close(ends[0]);
    if (status == PL_OK)
        printf("   %s\n", demo->url);
    return status;
}

void pl_demo_linger(pl_demo *demo)
{
    puts("The page stays until Ctrl-C.");
    fflush(stdout);
    while (!atomic_load(demo->interrupt))
        poll(NULL, 0, SLICE_MS);
}

void pl_demo_close(pl_demo *demo)
{
    if (demo->page == 0)
        return;
    kill(demo->page, SIGTERM);
    while (waitpid(demo->page, NULL, 0) < 0 && errno == EINTR)
        continue;
}
