#include "base/record/timeline.h"

#include "base/clock.h"
#include "support/folder.h"

#include <math.h>
#include <unistd.h>

static pl_timeline *open_timeline(const char *folder, const char *task,
                                  bool own_only)
{
    pl_timeline *timeline;
    assert_ok(pl_timeline_new(
        &timeline, &(pl_timeline_opts) {
                       .folder = folder, .task = task, .own_only = own_only }));
    return timeline;
}

static void put(pl_timeline *timeline, pl_event_kind kind, int64_t step)
{
    pl_run_event event = pl_run_event_of(kind);
    event.step = step;
    pl_timeline_put(timeline, &event);
}

static void assert_event(const pl_run_event *event, pl_event_kind kind,
                         const char *task, int64_t step)
{
    double now = (double)pl_clock_wall_ns() * 1e-9;
    assert_int_equal(kind, event->kind);
    assert_string_equal(task, event->task);
    assert_int_equal(step, event->step);
    assert_true(event->time <= now && event->time > now - 600);
}

static void timeline_has_the_events_of_all_tasks(void **state)
{
    pl_run_events events;
    pl_timeline *chief = open_timeline(*state, "worker 0", false);
    pl_timeline *other = open_timeline(*state, "worker 1", true);
    put(chief, PL_EVENT_START, 0);
    put(chief, PL_EVENT_CHECKPOINT, 5);
    put(other, PL_EVENT_CHECKPOINT, 5); /* only the chief records these */
    put(other, PL_EVENT_TEST, 7);
    put(other, PL_EVENT_ROLLBACK, 5);
    pl_run_event lost = pl_run_event_of(PL_EVENT_LOST);
    snprintf(lost.task, sizeof lost.task, "ps 0");
    snprintf(lost.text, sizeof lost.text, "was \"killed\"\n");
    pl_timeline_put(chief, &lost);
    put(NULL, PL_EVENT_TEST, 8); /* nowhere */
    pl_timeline_free(chief);
    pl_timeline_free(other);
    assert_ok(pl_run_events_read(&events, *state));
    assert_int_equal(4, events.count);
    assert_event(&events.list[0], PL_EVENT_START, "worker 0", 0);
    assert_event(&events.list[1], PL_EVENT_CHECKPOINT, "worker 0", 5);
    assert_event(&events.list[2], PL_EVENT_TEST, "worker 1", 7);
    assert_event(&events.list[3], PL_EVENT_LOST, "ps 0", -1);
    assert_string_equal("was \"killed\"\n", events.list[3].text);
    assert_true(isnan(events.list[3].test_loss));
    pl_run_events_close(&events);
    assert_int_equal(0, pl_mem_live());
}

static void timeline_is_read_from_the_last_start(void **state)
{
    static const char text[] =
        "{\"time\":1,\"event\":\"start\"}\n"
        "{\"time\":2,\"event\":\"lost\",\"task\":\"worker 1\"}\n"
        "{\"time\":9,\"event\":\"restart\",\"task\":\"ps 1\"}\n"
        "no event\n"
        "{\"time\":5,\"event\":\"start\"}\n"
        "{\"time\":6,\"event\":\"rollback\",\"step\":0,\"from\":12}\n"
        "{\"time\":7,\"event\":\"of a newer version\"}\n"
        "{\"time\":8,\"event\":\"test\",\"step\":3"; /* cut short */
    pl_run_events events;
    assert_ok(pl_run_events_read(&events, *state)); /* there is no file */
    assert_int_equal(0, events.count);
    assert_ok(pl_file_replace(test_path(*state, "timeline.jsonl"), text,
                              strlen(text)));
    assert_ok(pl_run_events_read(&events, *state));
    assert_int_equal(3, events.count);
    assert_int_equal(PL_EVENT_START, events.list[0].kind);
    assert_int_equal(12, events.list[1].from);
    assert_int_equal(0, events.list[1].step);
    assert_string_equal("ps 1", events.list[2].task);
    pl_run_events_close(&events);
    assert_int_equal(0, pl_mem_live());
}

static void count_event(void *context, const pl_run_event *event)
{
    *(int64_t *)context += event->step;
}

static void timeline_notifies_its_owner(void **state)
{
    int64_t sum = 0;
    pl_timeline *timeline;
    assert_ok(pl_timeline_new(&timeline, &(pl_timeline_opts) {
                                             .folder = *state,
                                             .task = "worker 0",
                                             .told = count_event,
                                             .context = &sum,
                                         }));
    put(timeline, PL_EVENT_TEST, 3);
    put(timeline, PL_EVENT_ROLLBACK, 4);
    pl_timeline_free(timeline);
    assert_int_equal(7, sum);
}

static void timeline_does_not_follow_a_link(void **state)
{
    pl_timeline *timeline;
    assert_int_equal(0,
                     symlink("elsewhere", test_path(*state, "timeline.jsonl")));
    assert_fails(
        PL_IO, "timeline.jsonl",
        pl_timeline_new(&timeline, &(pl_timeline_opts) { .folder = *state,
                                                         .task = "worker 0" }));
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(TEST_IN_FOLDER(timeline_has_the_events_of_all_tasks),
           TEST_IN_FOLDER(timeline_is_read_from_the_last_start),
           TEST_IN_FOLDER(timeline_notifies_its_owner),
           TEST_IN_FOLDER(timeline_does_not_follow_a_link))
