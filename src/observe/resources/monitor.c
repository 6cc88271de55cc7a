/* monitor.c - the thread that samples host and job and appends a row to
 * resources/<host>.csv, on the one task per host that holds the lock.
 *
 * The intervals of the first samples are FIRST_NS, twice that, four times that
 * ... up to that of the options, so that short jobs have samples, too; but
 * never so short that their cost exceeds 1 %.
 *
 * A row is held back if no task of the host made progress in its interval, or
 * if the workers had left at its end.  If the job continues, the row belongs to
 * a pause and is written; otherwise it is the idle tail and is dropped, unless
 * there is no other row. */
#include "observe/resources/monitor.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/record/report.h"
#include "base/thread.h"
#include "observe/resources/proc.h"
#include "observe/resources/tasks.h"
#include "observe/resources/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TABLE_MOST   ((size_t)1 << 28) /* bytes of one file */
#define HEADER_MOST  ((size_t)1 << 20)
#define FILES        100               /* per host in a run */
#define FIRST_NS     INT64_C(10000000) /* to the first sample */
#define LAST_NS      INT64_C(5000000)  /* too soon for another sample */
#define SHARE        100  /* least interval, in costs of a sample */
#define MEMORY_SHARE 0.02 /* minimum change that is recorded */
#define HELD_MOST    ((size_t)1 << 16) /* bytes of held rows */
/* A silent task counts as gone after this many samples and seconds. */
#define LASTS   5
#define LASTS_S 5

struct pl_monitor {
    pl_monitor_opts opts;
    int sent, received, step, tests, memory, processor; /* tags */
    double memory_mb;                                   /* last recorded */
    int64_t own_ns; /* processor time of this process at own_s */
    double own_s;   /* 0: no sample yet */
    char host[256];
    char *folder;
    pl_tasks *tasks;
    pl_usage *usage; /* on the task that samples for the host */
    int file;        /* -1: not open */
    bool broken;     /* failure was reported */
    int64_t sampled_ns;
    uint64_t progress; /* at the previous sample */
    bool began;        /* progress was made */
    bool workers;      /* this host has, or had, some */
    pl_buffer held;    /* held rows */
    pl_thread *thread;
    pl_mutex lock;
    pl_cond wake;
    bool stopping; /* guarded by lock */
};

static double now_s(void)
{
    return (double)pl_clock_wall_ns() * 1e-9;
}

static void give_up(pl_monitor *monitor)
{
    pl_log(PL_LOG_WARN,
           "%s; training continues, but its resources are not recorded",
           pl_error_message());
    monitor->broken = true;
}

static pl_status write_text(pl_monitor *monitor, const char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        ssize_t wrote = write(monitor->file, text, left);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return PL_FAIL(PL_IO, "write %s/%s.csv: %s", monitor->folder,
                           monitor->host, strerror(errno));
        text += wrote;
        left -= (size_t)wrote;
    }
    return PL_OK;
}

/* Does the file begin with our header? */
static bool fits(const char *path, const char *header)
{
    pl_map map;
    size_t bytes = strlen(header);
    if (pl_map_read(&map, path, TABLE_MOST) != PL_OK)
        return false;
    bool same = map.bytes >= bytes && memcmp(map.data, header, bytes) == 0;
    pl_map_close(&map);
    return same;
}

/* Continue the file of this host if it exists with these columns (the run was
 * resumed, or the task that wrote it has left); otherwise create one. */
static pl_status open_file(pl_monitor *monitor)
{
    const char *header = pl_usage_header(monitor->usage);
    for (int n = 1; n <= FILES; n++) {
        char *path, number[16] = "";
        if (n > 1)
            snprintf(number, sizeof number, "-%d", n);
        PL_TRY(pl_mem_format(&path, "%s/%s%s.csv", monitor->folder,
                             monitor->host, number));
        bool there = pl_file_exists(path);
        int flags = there ? O_APPEND : O_CREAT | O_EXCL;
        if (!there || fits(path, header))
            monitor->file = open(path, O_WRONLY | O_CLOEXEC | flags, 0666);
        pl_status status =
            monitor->file < 0 && !there
                ? PL_FAIL(PL_IO, "make %s: %s", path, strerror(errno))
                : PL_OK;
        pl_mem_free(path);
        if (monitor->file >= 0)
            return there ? PL_OK : write_text(monitor, header);
        PL_TRY(status);
    }
    return PL_FAIL(PL_IO, "%s has %d files of this host", monitor->folder,
                   FILES);
}

static pl_status write_held(pl_monitor *monitor)
{
    pl_status status = monitor->held.bytes > 0
                           ? write_text(monitor, monitor->held.data)
                           : PL_OK;
    pl_buffer_close(&monitor->held);
    return status;
}

/* Hold the row back, or write it after the held rows. */
static pl_status put_row(pl_monitor *monitor, const char *row, bool moved)
{
    monitor->began = monitor->began || moved;
    pl_buffer_text(&monitor->held, row);
    PL_TRY(pl_buffer_status(&monitor->held));
    return moved || monitor->held.bytes > HELD_MOST ? write_held(monitor)
                                                    : PL_OK;
}

/* Was progress made on this host since the previous sample, and are its
 * workers, if it had any, still present? */
static bool has_moved(pl_monitor *monitor, const pl_tasks_view *view)
{
    bool moved = view->progress != monitor->progress;
    bool workers = false;
    for (int i = 0; i < view->count; i++)
        workers = workers || view->roles[i] == PL_TASKS_WORKER;
    monitor->progress = view->progress;
    monitor->workers = monitor->workers || workers;
    return moved && (workers || !monitor->workers);
}

static pl_status sample_host(pl_monitor *monitor, double time)
{
    pl_tasks_view view;
    if (monitor->usage == NULL) { /* the first time: no previous sample */
        PL_TRY(
            pl_usage_new(&monitor->usage, &(pl_usage_opts) { .roles = true }));
        PL_TRY(open_file(monitor));
    }
    PL_TRY(pl_tasks_look(monitor->tasks, time, &view));
    pl_usage_job job = {
        .pids = view.pids,
        .count = view.count,
        .sent_bytes = (double)view.sent_bytes,
        .received_bytes = (double)view.received_bytes,
        .roles = view.roles,
    };
    for (int r = 0; r < PL_TASKS_ROLES; r++) {
        job.role_sent_bytes[r] = (double)view.role_sent_bytes[r];
        job.role_received_bytes[r] = (double)view.role_received_bytes[r];
    }
    bool first = monitor->sampled_ns == 0;
    bool moved = has_moved(monitor, &view);
    (void)pl_usage_sample(monitor->usage, time, &job);
    monitor->sampled_ns = pl_clock_now_ns(pl_clock_real());
    return first ? PL_OK
                 : put_row(monitor, pl_usage_line(monitor->usage), moved);
}

static void record(pl_monitor *monitor, int tag, double value)
{
    pl_metrics *metrics = monitor->opts.metrics;
    pl_metrics_scalar(metrics, tag,
                      (int64_t)pl_metrics_get(metrics, monitor->step), value);
}

/* Record memory if it has changed: rarely, once the task trains. */
static void record_memory(pl_monitor *monitor, const pl_process *own)
{
    double mb = (double)own->rss_kb / 1024;
    if (fabs(mb - monitor->memory_mb) <= MEMORY_SHARE * monitor->memory_mb)
        return;
    monitor->memory_mb = mb;
    record(monitor, monitor->memory, mb);
}

/* Since the last point, unless the interval is too short. */
static void record_processor(pl_monitor *monitor)
{
    int64_t used = pl_clock_processor_ns();
    double now = (double)pl_clock_now_ns(pl_clock_real()) * 1e-9;
    double passed = now - monitor->own_s;
    bool first = monitor->own_s == 0;
    if (!first && passed < PL_USAGE_LEAST_S)
        return;
    double used_s = (double)(used - monitor->own_ns) * 1e-9;
    monitor->own_s = now;
    monitor->own_ns = used;
    if (!first)
        record(monitor, monitor->processor, 100 * used_s / passed);
}

/* Points of this task's own curves. */
static void record_own(pl_monitor *monitor)
{
    pl_process own;
    if (!pl_process_read(&own, PL_PROC, getpid()))
        return;
    record_memory(monitor, &own);
    record_processor(monitor);
}

static void sample(pl_monitor *monitor)
{
    const pl_metrics *metrics = monitor->opts.metrics;
    double time = now_s();
    record_own(monitor);
    if (monitor->broken)
        return;
    pl_tasks_progress(monitor->tasks,
                      (uint64_t)(pl_metrics_get(metrics, monitor->step) +
                                 pl_metrics_get(metrics, monitor->tests)));
    pl_status status = pl_tasks_tell(
        monitor->tasks, time, (uint64_t)pl_metrics_get(metrics, monitor->sent),
        (uint64_t)pl_metrics_get(metrics, monitor->received));
    if (status == PL_OK && pl_tasks_speaks(monitor->tasks))
        status = sample_host(monitor, time);
    if (status != PL_OK)
        give_up(monitor);
}

static pl_status monitor_main(void *arg)
{
    pl_monitor *monitor = arg;
    int64_t every_ns = (int64_t)(monitor->opts.every_s * 1e9);
    int64_t pause_ns = FIRST_NS;
    pl_mutex_lock(&monitor->lock);
    while (!monitor->stopping) {
        pl_mutex_unlock(&monitor->lock);
        int64_t begin_ns = pl_clock_now_ns(pl_clock_real());
        int64_t used_ns = pl_clock_thread_ns();
        sample(monitor);
        int64_t cost_ns = pl_clock_thread_ns() - used_ns;
        if (pause_ns < SHARE * cost_ns)
            pause_ns = SHARE * cost_ns;
        if (pause_ns > every_ns)
            pause_ns = every_ns;
        pl_deadline next = { pl_clock_real(), begin_ns + pause_ns };
        pause_ns *= 2;
        pl_mutex_lock(&monitor->lock);
        pl_cond_pause_until(&monitor->wake, &monitor->lock, &monitor->stopping,
                            next);
    }
    pl_mutex_unlock(&monitor->lock);
    return PL_OK;
}

static pl_status open_monitor(pl_monitor *monitor)
{
    const pl_monitor_opts *opts = &monitor->opts;
    char *path;
    PL_TRY(pl_metrics_tag(opts->metrics, "bytes_sent", &monitor->sent));
    PL_TRY(pl_metrics_tag(opts->metrics, "bytes_received", &monitor->received));
    PL_TRY(pl_metrics_tag(opts->metrics, "step", &monitor->step));
    PL_TRY(pl_metrics_tag(opts->metrics, "tests", &monitor->tests));
    PL_TRY(pl_metrics_tag(opts->metrics, "rss_mb", &monitor->memory));
    PL_TRY(pl_metrics_tag(opts->metrics, "task_cpu", &monitor->processor));
    PL_TRY(pl_mem_copy_text(&monitor->folder, opts->folder));
    PL_TRY(pl_file_make_folder_unflushed(monitor->folder));
    PL_TRY(
        pl_mem_format(&path, "%s/.%s.tasks", monitor->folder, monitor->host));
    double lasts_s = LASTS * opts->every_s;
    pl_status status = pl_tasks_new(
        &monitor->tasks,
        &(pl_tasks_opts) { .path = path,
                           .place = opts->place,
                           .role = opts->role,
                           .lasts_s = lasts_s > LASTS_S ? lasts_s : LASTS_S });
    pl_mem_free(path);
    PL_TRY(status);
    return pl_thread_start(&monitor->thread, "monitor", monitor_main, monitor);
}

pl_status pl_monitor_start(pl_monitor **out, const pl_monitor_opts *opts)
{
    pl_monitor *monitor;
    PL_TRY(PL_NEW(monitor, 1));
    monitor->opts = *opts;
    monitor->file = -1;
    gethostname(monitor->host, sizeof monitor->host - 1);
    pl_mutex_init(&monitor->lock);
    pl_cond_init(&monitor->wake);
    pl_status status = open_monitor(monitor);
    if (status != PL_OK) {
        pl_monitor_stop(monitor);
        return pl_context(status, "resources");
    }
    *out = monitor;
    return PL_OK;
}

void pl_monitor_stop(pl_monitor *monitor)
{
    if (monitor == NULL)
        return;
    pl_mutex_lock(&monitor->lock);
    monitor->stopping = true;
    pl_cond_signal(&monitor->wake);
    pl_mutex_unlock(&monitor->lock);
    if (monitor->thread != NULL) {
        PL_ASSERT(pl_thread_join(monitor->thread) == PL_OK);
        if (pl_clock_now_ns(pl_clock_real()) - monitor->sampled_ns > LAST_NS)
            sample(monitor);
    }
    if (!monitor->began && !monitor->broken && write_held(monitor) != PL_OK)
        give_up(monitor);
    pl_buffer_close(&monitor->held);
    pl_tasks_free(monitor->tasks);
    pl_usage_free(monitor->usage);
    if (monitor->file >= 0)
        close(monitor->file);
    pl_cond_close(&monitor->wake);
    pl_mutex_close(&monitor->lock);
    pl_mem_free(monitor->folder);
    pl_mem_free(monitor);
}
