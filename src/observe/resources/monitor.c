/* monitor.c - the thread that samples host and job at a fixed interval and
 * appends a row to resources/<host>.csv, on the one task per host that holds
 * the lock. */
#include "observe/resources/monitor.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "observe/resources/tasks.h"
#include "observe/resources/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TABLE_MOST  ((size_t)1 << 28) /* bytes of one file */
#define HEADER_MOST ((size_t)1 << 20)
#define FILES       100               /* of one host in a run */
#define LAST_NS     INT64_C(50000000) /* too soon for another sample */
#define LASTS       5 /* samples after which a silent task counts as gone */

struct pl_monitor {
    pl_monitor_opts opts;
    int sent, received; /* tags */
    char host[256];
    char *folder;
    pl_tasks *tasks;
    pl_usage *usage; /* of who speaks for the host */
    int file;        /* -1: not open */
    bool broken;     /* was said */
    int64_t sampled_ns;
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
           "%s; training goes on, but what it uses is not recorded",
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

/* True for a file that begins with our header. */
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

/* Go on with the file of this host, where there is one with these columns
 * (the run is resumed, or its first writer is gone); else begin one. */
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

static pl_status sample_host(pl_monitor *monitor, double time)
{
    pl_tasks_view view;
    if (monitor->usage == NULL) { /* the first time: nothing to compare with */
        PL_TRY(pl_usage_new(&monitor->usage, NULL));
        PL_TRY(open_file(monitor));
    }
    PL_TRY(pl_tasks_look(monitor->tasks, time, &view));
    pl_usage_job job = {
        .pids = view.pids,
        .count = view.count,
        .sent_bytes = (double)view.sent_bytes,
        .received_bytes = (double)view.received_bytes,
    };
    bool first = monitor->sampled_ns == 0;
    (void)pl_usage_sample(monitor->usage, time, &job);
    monitor->sampled_ns = pl_clock_now_ns(pl_clock_real());
    return first ? PL_OK : write_text(monitor, pl_usage_line(monitor->usage));
}

static void sample(pl_monitor *monitor)
{
    const pl_metrics *metrics = monitor->opts.metrics;
    double time = now_s();
    if (monitor->broken)
        return;
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
    int64_t every_ms = (int64_t)(monitor->opts.every_s * 1000);
    pl_mutex_lock(&monitor->lock);
    while (!monitor->stopping) {
        pl_deadline next = pl_deadline_in_ms(pl_clock_real(), every_ms);
        pl_mutex_unlock(&monitor->lock);
        sample(monitor);
        pl_mutex_lock(&monitor->lock);
        while (!monitor->stopping && !pl_deadline_passed(next))
            if (pl_cond_wait_until(&monitor->wake, &monitor->lock, next) !=
                PL_OK)
                break;
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
    PL_TRY(pl_mem_copy_text(&monitor->folder, opts->folder));
    PL_TRY(pl_file_make_folder(monitor->folder));
    PL_TRY(
        pl_mem_format(&path, "%s/.%s.tasks", monitor->folder, monitor->host));
    pl_status status = pl_tasks_new(
        &monitor->tasks, &(pl_tasks_opts) { .path = path,
                                            .place = opts->place,
                                            .lasts_s = LASTS * opts->every_s });
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
    pl_tasks_free(monitor->tasks);
    pl_usage_free(monitor->usage);
    if (monitor->file >= 0)
        close(monitor->file);
    pl_cond_close(&monitor->wake);
    pl_mutex_close(&monitor->lock);
    pl_mem_free(monitor->folder);
    pl_mem_free(monitor);
}
