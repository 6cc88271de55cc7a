#include "observe/record/events.h"

#include "base/bytes.h"
#include "base/log.h"
#include "proto/tfrecord.h"
#include "support/folder.h"

#include <signal.h>
#include <sys/resource.h>

#define SCALARS 10000

/* Metrics with one tag, and events of them in <folder>/events. */
typedef struct rig {
    pl_metrics *metrics;
    pl_events *events;
    int loss;
    const char *folder;
} rig;

static void open_rig(rig *r, const char *folder, int64_t start_step)
{
    r->folder = test_path(folder, "events");
    assert_ok(pl_metrics_new(&r->metrics, NULL));
    assert_ok(pl_metrics_tag(r->metrics, "loss", &r->loss));
    assert_ok(pl_events_start(&r->events, &(pl_events_opts) {
                                              .metrics = r->metrics,
                                              .folder = r->folder,
                                              .start_step = start_step,
                                          }));
}

static void close_rig(rig *r)
{
    pl_events_stop(r->events);
    pl_metrics_free(r->metrics);
}

/* Records of the only file there, each with a right frame; of their bodies,
 * how many hold `part`. */
static int count_records(const char *folder, const char *part, int *with)
{
    char **names;
    size_t files;
    pl_map map;
    int records = 0;
    *with = 0;
    assert_ok(pl_file_list(&names, &files, folder));
    assert_int_equal(1, files);
    assert_ok(pl_map_init(&map, test_path(folder, names[0])));
    for (size_t at = 0; at < map.bytes; records++) {
        const uint8_t *head = map.data + at, *data = head + PL_TFRECORD_HEAD;
        size_t bytes = pl_get_u64(head);
        assert_int_equal(pl_tfrecord_sum(head, 8), pl_get_u32(head + 8));
        assert_int_equal(pl_tfrecord_sum(data, bytes),
                         pl_get_u32(data + bytes));
        *with += memmem(data, bytes, part, strlen(part)) != NULL;
        at += PL_TFRECORD_HEAD + bytes + PL_TFRECORD_TAIL;
        assert_true(at <= map.bytes);
    }
    pl_map_close(&map);
    pl_mem_free(names);
    return records;
}

static void events_hold_all_that_was_recorded(void **state)
{
    rig r;
    int with;
    open_rig(&r, *state, 0);
    for (int i = 0; i < SCALARS; i++)
        pl_metrics_scalar(r.metrics, r.loss, i, i);
    pl_metrics_histogram_put(
        r.metrics,
        &(pl_metrics_histogram) { .group = "weights", .name = "dense" });
    const char *folder = r.folder;
    pl_events_stop(r.events);
    r.events = NULL;
    assert_int_equal(0, pl_metrics_dropped(r.metrics));
    assert_int_equal(1 + SCALARS + 1,
                     count_records(folder, "weights/dense", &with));
    assert_int_equal(1, with);
    count_records(folder, "loss", &with);
    assert_int_equal(SCALARS, with);
    close_rig(&r);
}

/* SessionLog { status: START } */
static void events_record_where_a_run_resumes(void **state)
{
    rig r;
    int restart, with;
    open_rig(&r, *state, 500);
    assert_ok(pl_metrics_tag(r.metrics, PL_METRICS_RESTART, &restart));
    pl_metrics_scalar(r.metrics, restart, 400, 400);
    pl_events_stop(r.events);
    r.events = NULL;
    assert_int_equal(3, count_records(r.folder, "\x3a\x02\x08\x01", &with));
    assert_int_equal(2, with);
    close_rig(&r);
}

static void events_of_one_second_get_files_of_their_own(void **state)
{
    rig a, b;
    char **names;
    size_t files;
    open_rig(&a, *state, 0);
    open_rig(&b, *state, 0);
    assert_ok(pl_file_list(&names, &files, a.folder));
    assert_int_equal(2, files);
    pl_mem_free(names);
    close_rig(&a);
    close_rig(&b);
}

static void count_warnings(void *context, pl_log_level level, const char *text)
{
    if (level == PL_LOG_WARN && strstr(text, "training continues") != NULL)
        ++*(int *)context;
}

/* A full disk is reported once, and later events are counted. */
static void events_without_space_are_reported_once_and_counted(void **state)
{
    rig r;
    int warnings = 0;
    struct rlimit before, small;
    assert_int_equal(0, getrlimit(RLIMIT_FSIZE, &before));
    small = (struct rlimit) { 4096, before.rlim_max };
    signal(SIGXFSZ, SIG_IGN);
    open_rig(&r, *state, 0);
    pl_log_set(count_warnings, &warnings, PL_LOG_INFO);
    assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &small));
    for (int i = 0; i < SCALARS; i++) /* two writes' worth */
        pl_metrics_scalar(r.metrics, r.loss, i, i);
    pl_buffer *out = pl_events_begin(r.events);
    pl_event_scalar(out, 0, 1, "more", 1);
    pl_events_end(r.events);
    while (pl_events_dropped(r.events) == 0) /* until the thread has seen it */
        pl_metrics_scalar(r.metrics, r.loss, 1, 1);
    pl_events_stop(r.events);
    r.events = NULL;
    assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &before));
    pl_log_set(NULL, NULL, PL_LOG_INFO);
    assert_int_equal(1, warnings);
    close_rig(&r);
}

static void events_in_a_file_are_refused(void **state)
{
    pl_metrics *metrics;
    pl_events *events = NULL;
    const char *file = test_path(*state, "file");
    assert_ok(pl_file_replace(file, "x", 1));
    assert_ok(pl_metrics_new(&metrics, NULL));
    assert_fails(PL_IO, "file",
                 pl_events_start(&events, &(pl_events_opts) {
                                              .metrics = metrics,
                                              .folder = file,
                                          }));
    assert_null(events);
    pl_metrics_free(metrics);
}

static void events_start_survives_each_failed_allocation(void **state)
{
    pl_metrics *metrics;
    pl_events *events;
    int tag;
    assert_ok(pl_metrics_new(&metrics, NULL));
    assert_ok(pl_metrics_tag(metrics, PL_METRICS_RESTART, &tag));
    pl_events_opts opts = { .metrics = metrics, .folder = *state };
    assert_survives_failed_allocations(pl_events_start(&events, &opts),
                                       pl_events_stop(events));
    pl_metrics_free(metrics);
}

UNIT_TESTS(TEST_IN_FOLDER(events_hold_all_that_was_recorded),
           TEST_IN_FOLDER(events_record_where_a_run_resumes),
           TEST_IN_FOLDER(events_of_one_second_get_files_of_their_own),
           TEST_IN_FOLDER(events_without_space_are_reported_once_and_counted),
           TEST_IN_FOLDER(events_in_a_file_are_refused),
           TEST_IN_FOLDER(events_start_survives_each_failed_allocation))
