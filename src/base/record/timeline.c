/* The file timeline.jsonl: appends events and reads them.
 *
 * Several processes, also of several hosts, append to one file.  A line is one
 * write under the file's lock: without it, appending over a network file system
 * would overwrite another host's line.  When the lock is not available soon,
 * the line is written without it: a record must not delay training. */
#include "base/record/timeline.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define NAME      "timeline.jsonl"
#define READ_MOST ((size_t)64 << 20)
#define LOCK_MS   20 /* tries, a millisecond each */

const char *const pl_event_kind_names[] = {
    "start",      "lost", "restart", "rollback",
    "checkpoint", "test", "warning", NULL,
};

#define MAYBE .when = PL_WHEN_SET, .or_null = true

static const pl_field rows[] = {
    { "time", PL_FIELD_REAL(pl_run_event, time) },
    { "event", PL_FIELD_CHOICE(pl_run_event, kind, pl_event_kind_names) },
    { "task", PL_FIELD_CHARS(pl_run_event, task), .when = PL_WHEN_SET },
    { "step", PL_FIELD_INT(pl_run_event, step), MAYBE },
    { "from", PL_FIELD_INT(pl_run_event, from), MAYBE },
    { "test_loss", PL_FIELD_REAL(pl_run_event, test_loss), MAYBE },
    { "test_accuracy", PL_FIELD_REAL(pl_run_event, test_accuracy), MAYBE },
    { "text", PL_FIELD_CHARS(pl_run_event, text), .when = PL_WHEN_SET },
};
const pl_fields pl_run_event_fields = PL_FIELDS(pl_run_event, rows);

pl_run_event pl_run_event_of(pl_event_kind kind)
{
    return (pl_run_event) {
        .kind = kind,
        .step = -1,
        .from = -1,
        .test_loss = NAN,
        .test_accuracy = NAN,
    };
}

struct pl_timeline {
    pl_timeline_opts opts;
    char *path;
    char task[64];
    int file;
    atomic_bool broken; /* reported once */
};

static pl_status open_file(const char *path, int *out)
{
    *out = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
                0666);
    return *out >= 0 ? PL_OK
                     : PL_FAIL(PL_IO, "open %s: %s", path, strerror(errno));
}

pl_status pl_timeline_new(pl_timeline **out, const pl_timeline_opts *opts)
{
    pl_timeline *timeline;
    PL_TRY(PL_NEW(timeline, 1));
    timeline->opts = *opts;
    timeline->file = -1;
    snprintf(timeline->task, sizeof timeline->task, "%s", opts->task);
    pl_status status;
    PL_TRY_OUT(status, pl_file_join(&timeline->path, opts->folder, NAME));
    PL_TRY_OUT(status, open_file(timeline->path, &timeline->file));
    *out = timeline;
    return PL_OK;
out:
    pl_timeline_free(timeline);
    return status;
}

void pl_timeline_free(pl_timeline *timeline)
{
    if (timeline == NULL)
        return;
    if (timeline->file >= 0)
        close(timeline->file);
    pl_mem_free(timeline->path);
    pl_mem_free(timeline);
}

static bool lock_file(int file)
{
    for (int try = 0; try < LOCK_MS; try++) {
        if (flock(file, LOCK_EX | LOCK_NB) == 0)
            return true;
        if (errno != EWOULDBLOCK)
            return false; /* some file systems have no locks */
        poll(NULL, 0, 1);
    }
    return false;
}

static pl_status write_lines(int file, const char *path, const char *lines,
                             size_t bytes)
{
    bool locked = lock_file(file);
    ssize_t wrote = write(file, lines, bytes);
    int why = errno;
    if (locked)
        flock(file, LOCK_UN);
    if (wrote != (ssize_t)bytes)
        return PL_FAIL(PL_IO, "write %s: %s", path,
                       wrote < 0 ? strerror(why) : "cut short");
    return PL_OK;
}

static pl_status append(const pl_timeline *timeline, const pl_run_event *event)
{
    char *line, *text;
    PL_TRY(pl_fields_text(&pl_run_event_fields, event, 0, &text));
    pl_status status = pl_mem_format(&line, "%s\n", text);
    pl_mem_free(text);
    PL_TRY(status);
    status = write_lines(timeline->file, timeline->path, line, strlen(line));
    pl_mem_free(line);
    return status;
}

void pl_timeline_put(pl_timeline *timeline, const pl_run_event *event)
{
    if (timeline == NULL ||
        (timeline->opts.own_only && (event->kind == PL_EVENT_ROLLBACK ||
                                     event->kind == PL_EVENT_CHECKPOINT)))
        return;
    pl_run_event full = *event;
    full.time = (double)pl_clock_wall_ns() * 1e-9;
    if (full.task[0] == '\0')
        snprintf(full.task, sizeof full.task, "%s", timeline->task);
    if (timeline->opts.told != NULL)
        timeline->opts.told(timeline->opts.context, &full);
    if (append(timeline, &full) != PL_OK &&
        !atomic_exchange(&timeline->broken, true))
        pl_log(PL_LOG_WARN, "%s; events of this run are not recorded",
               pl_error_message());
}

pl_status pl_timeline_append(const char *folder, const char *lines,
                             size_t bytes)
{
    char *path;
    int file = -1;
    PL_TRY(pl_file_join(&path, folder, NAME));
    pl_status status = open_file(path, &file);
    if (status == PL_OK)
        status = write_lines(file, path, lines, bytes);
    if (file >= 0)
        close(file);
    pl_mem_free(path);
    return status;
}

/* --- reading ---------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
    double first = ((const pl_run_event *)a)->time;
    double second = ((const pl_run_event *)b)->time;
    return (first > second) - (first < second);
}

static size_t count_lines(const pl_map *map)
{
    size_t count = 0;
    for (size_t i = 0; i < map->bytes; i++)
        count += ((const char *)map->data)[i] == '\n';
    return count;
}

/* A line without its end was cut short. */
static pl_status read_lines(pl_run_events *events, const pl_map *map)
{
    const char *line = (const char *)map->data, *end = line + map->bytes;
    for (const char *stop; line < end; line = stop + 1) {
        stop = memchr(line, '\n', (size_t)(end - line));
        if (stop == NULL)
            break;
        pl_run_event *event = &events->list[events->count];
        pl_status status = pl_fields_parse(&pl_run_event_fields, line,
                                           (size_t)(stop - line), NAME, event);
        if (status == PL_NOMEM)
            return status;
        events->count += status == PL_OK;
    }
    return PL_OK;
}

/* Events before the last start belong to another job. */
static void drop_earlier(pl_run_events *events)
{
    size_t first = 0;
    for (size_t i = 0; i < events->count; i++)
        if (events->list[i].kind == PL_EVENT_START)
            first = i;
    events->count -= first;
    memmove(events->list, events->list + first,
            events->count * sizeof *events->list);
}

pl_status pl_run_events_read(pl_run_events *out, const char *folder)
{
    char *path;
    pl_map map;
    pl_run_events events = { 0 };
    PL_TRY(pl_file_join(&path, folder, NAME));
    bool there = pl_file_exists(path);
    pl_status status = there ? pl_map_read(&map, path, READ_MOST) : PL_OK;
    pl_mem_free(path);
    PL_TRY(status);
    if (there) {
        status = PL_NEW(events.list, count_lines(&map) + 1);
        if (status == PL_OK)
            status = read_lines(&events, &map);
        pl_map_close(&map);
        if (status != PL_OK) {
            pl_run_events_close(&events);
            return status;
        }
        if (events.count > 0) {
            qsort(events.list, events.count, sizeof *events.list, by_time);
            drop_earlier(&events);
        }
    }
    *out = events;
    return PL_OK;
}

void pl_run_events_close(pl_run_events *events)
{
    pl_mem_free(events->list);
    *events = (pl_run_events) { 0 };
}
