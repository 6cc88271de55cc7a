/* events.c - the thread that takes scalars and histograms from the metrics and
 * writes them to a TensorBoard event file; a file that cannot be written is
 * reported once. */
#include "observe/record/events.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOOK_MS     50
#define WRITE_MS    1000
#define WRITE_BYTES ((size_t)256 << 10)
#define TAG_BYTES   512
#define TRIES       100 /* files of the same second before giving up */

struct pl_events {
    pl_metrics *metrics;
    int restart; /* the tag of PL_METRICS_RESTART */
    char *path;
    int file; /* -1: failed, or not yet open */
    pl_thread *thread;
    pl_mutex lock;
    pl_cond wake;
    bool stopping;    /* guarded by lock */
    pl_buffer buffer; /* guarded by lock: data to write */
    size_t begun;     /* guarded by lock: buffer position at pl_events_begin */
    pl_deadline write_at;
    _Atomic uint64_t lost; /* records that could not be written */
};

static double seconds(int64_t wall_ns)
{
    return (double)wall_ns * 1e-9;
}

/* "folder/events.out.tfevents.1763200000.host", with ".2" on a clash. */
static pl_status open_file(pl_events *events, const char *folder)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    long long now = pl_clock_wall_ns() / 1000000000;
    PL_TRY(pl_file_make_folder_unflushed(folder));
    for (int n = 1; n <= TRIES; n++) {
        char suffix[16] = "";
        if (n > 1)
            snprintf(suffix, sizeof suffix, ".%d", n);
        pl_mem_free(events->path);
        events->path = NULL;
        PL_TRY(pl_mem_format(&events->path, "%s/events.out.tfevents.%lld.%s%s",
                             folder, now, host, suffix));
        events->file =
            open(events->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (events->file >= 0)
            return PL_OK;
        if (errno != EEXIST)
            break;
    }
    return PL_FAIL(PL_IO, "make %s: %s", events->path, strerror(errno));
}

/* Called with the lock held, as are all functions below. */
static void give_up(pl_events *events, int error)
{
    pl_log(
        PL_LOG_WARN,
        "write %s: %s; training continues, but TensorBoard will not see more "
        "of it",
        events->path, strerror(error));
    close(events->file);
    events->file = -1;
}

static void write_buffer(pl_events *events)
{
    const char *at = events->buffer.data;
    size_t left = events->buffer.bytes;
    while (left > 0 && events->file >= 0) {
        ssize_t wrote = write(events->file, at, left);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0) {
            give_up(events, errno);
            break;
        }
        at += wrote;
        left -= (size_t)wrote;
    }
    pl_buffer_clear(&events->buffer);
    events->write_at = pl_deadline_in_ms(pl_clock_real(), WRITE_MS);
}

/* Count a record as written or, if the file or memory is missing, as lost. */
static void count_record(pl_events *events, size_t before)
{
    if (events->file >= 0 && pl_buffer_status(&events->buffer) == PL_OK) {
        if (events->buffer.bytes >= WRITE_BYTES)
            write_buffer(events);
        return;
    }
    events->buffer.bytes = before;
    events->buffer.failed = false;
    atomic_fetch_add_explicit(&events->lost, 1, memory_order_relaxed);
}

static void put_scalar(pl_events *events, const pl_scalar *scalar)
{
    double time = seconds(scalar->wall_ns);
    if (scalar->tag == events->restart)
        pl_event_restart(&events->buffer, time, scalar->step);
    else
        pl_event_scalar(&events->buffer, time, scalar->step,
                        pl_metrics_tag_name(events->metrics, scalar->tag),
                        scalar->value);
}

static void take_scalars(pl_events *events)
{
    pl_scalar scalar;
    while (pl_metrics_take(events->metrics, &scalar)) {
        size_t before = events->buffer.bytes;
        put_scalar(events, &scalar);
        count_record(events, before);
    }
}

static void take_histograms(pl_events *events)
{
    pl_metrics_histogram *taken;
    while ((taken = pl_metrics_histogram_take(events->metrics)) != NULL) {
        char tag[TAG_BYTES];
        size_t before = events->buffer.bytes;
        snprintf(tag, sizeof tag, "%s/%s", taken->group, taken->name);
        pl_event_histogram(&events->buffer, seconds(taken->wall_ns),
                           taken->step, tag, &taken->values);
        count_record(events, before);
        pl_mem_free(taken);
    }
}

static pl_status events_main(void *arg)
{
    pl_events *events = arg;
    pl_mutex_lock(&events->lock);
    for (bool last = false; !last;) {
        last = events->stopping;
        take_scalars(events);
        take_histograms(events);
        if (last || pl_deadline_passed(events->write_at))
            write_buffer(events);
        pl_deadline next = pl_deadline_in_ms(pl_clock_real(), LOOK_MS);
        pl_cond_pause_until(&events->wake, &events->lock, &events->stopping,
                            next);
    }
    pl_mutex_unlock(&events->lock);
    return PL_OK;
}

pl_status pl_events_start(pl_events **out, const pl_events_opts *opts)
{
    pl_events *events;
    PL_TRY(PL_NEW(events, 1));
    events->metrics = opts->metrics;
    events->file = -1;
    pl_mutex_init(&events->lock);
    pl_cond_init(&events->wake);
    double now = seconds(pl_clock_wall_ns());
    pl_status status;
    PL_TRY_OUT(status, pl_metrics_tag(events->metrics, PL_METRICS_RESTART,
                                      &events->restart));
    PL_TRY_OUT(status, open_file(events, opts->folder));
    pl_event_version(&events->buffer, now);
    if (opts->start_step > 0)
        pl_event_restart(&events->buffer, now, opts->start_step);
    PL_TRY_OUT(status, pl_buffer_status(&events->buffer));
    events->write_at = pl_deadline_in_ms(pl_clock_real(), 0);
    PL_TRY_OUT(status,
               pl_thread_start(&events->thread, "events", events_main, events));
    *out = events;
    return PL_OK;
out:
    if (events->file >= 0)
        unlink(events->path);
    pl_events_stop(events);
    return pl_context(status, "events");
}

void pl_events_stop(pl_events *events)
{
    if (events == NULL)
        return;
    pl_mutex_lock(&events->lock);
    events->stopping = true;
    pl_cond_signal(&events->wake);
    pl_mutex_unlock(&events->lock);
    if (events->thread != NULL)
        PL_ASSERT(pl_thread_join(events->thread) == PL_OK);
    if (events->file >= 0)
        close(events->file);
    pl_cond_close(&events->wake);
    pl_mutex_close(&events->lock);
    pl_buffer_close(&events->buffer);
    pl_mem_free(events->path);
    pl_mem_free(events);
}

pl_buffer *pl_events_begin(pl_events *events)
{
    pl_mutex_lock(&events->lock);
    events->begun = events->buffer.bytes;
    return &events->buffer;
}

void pl_events_end(pl_events *events)
{
    count_record(events, events->begun);
    pl_mutex_unlock(&events->lock);
}

uint64_t pl_events_dropped(const pl_events *events)
{
    return pl_metrics_dropped(events->metrics) +
           atomic_load_explicit(&events->lost, memory_order_relaxed);
}
