#include "observe/resources/tasks.h"

#include "support/folder.h"

#include <unistd.h>

static pl_tasks *make(const char *folder, int place)
{
    pl_tasks *tasks;
    assert_ok(pl_tasks_new(&tasks, &(pl_tasks_opts) {
                                       .path = test_path(folder, "tasks"),
                                       .place = place,
                                       .lasts_s = 5,
                                   }));
    return tasks;
}

static void tasks_new_survives_each_failed_allocation(void **state)
{
    pl_tasks *tasks;
    pl_tasks_opts opts = { .path = test_path(*state, "tasks") };
    assert_survives_failed_allocations(pl_tasks_new(&tasks, &opts),
                                       pl_tasks_free(tasks));
}

static void tasks_see_each_other(void **state)
{
    pl_tasks *a = make(*state, 0), *b = make(*state, 7);
    pl_tasks_view view;
    assert_ok(pl_tasks_look(a, 100, &view));
    assert_int_equal(0, view.count);
    assert_ok(pl_tasks_tell(a, 100, 1, 10));
    assert_ok(pl_tasks_tell(b, 101, 2, 20));
    assert_ok(pl_tasks_look(a, 102, &view));
    assert_int_equal(2, view.count);
    assert_int_equal(getpid(), view.pids[0]);
    assert_int_equal(3, view.sent_bytes);
    assert_int_equal(30, view.received_bytes);
    /* A task that is silent for too long is gone; its sent bytes still count.
     */
    assert_ok(pl_tasks_look(a, 105.5, &view));
    assert_int_equal(1, view.count);
    assert_int_equal(3, view.sent_bytes);
    pl_tasks_free(a);
    pl_tasks_free(b);
}

static void tasks_publish_their_role_and_progress(void **state)
{
    pl_tasks *a = make(*state, 0), *b;
    pl_tasks_view view;
    assert_ok(pl_tasks_new(&b, &(pl_tasks_opts) {
                                   .path = test_path(*state, "tasks"),
                                   .place = 2,
                                   .role = PL_TASKS_PS,
                                   .lasts_s = 5,
                               }));
    assert_ok(pl_tasks_tell(a, 1, 1, 10));
    assert_ok(pl_tasks_tell(b, 1, 2, 20));
    assert_ok(pl_tasks_look(a, 1, &view));
    assert_int_equal(PL_TASKS_WORKER, view.roles[0]);
    assert_int_equal(PL_TASKS_PS, view.roles[1]);
    assert_int_equal(2, view.role_sent_bytes[PL_TASKS_PS]);
    assert_int_equal(10, view.role_received_bytes[PL_TASKS_WORKER]);
    uint64_t before = view.progress;
    pl_tasks_progress(b, 7);
    assert_ok(pl_tasks_tell(b, 2, 2, 20));
    assert_ok(pl_tasks_look(a, 2, &view));
    assert_true(view.progress != before);
    pl_tasks_free(b); /* a task that leaves keeps its counts */
    before = view.progress;
    assert_ok(pl_tasks_look(a, 2, &view));
    assert_true(view.progress == before);
    pl_tasks_free(a);
}

static void tasks_have_one_speaker(void **state)
{
    pl_tasks *a = make(*state, 0), *b = make(*state, 1);
    assert_ok(pl_tasks_tell(a, 1, 0, 0));
    assert_ok(pl_tasks_tell(b, 1, 0, 0));
    assert_true(pl_tasks_speaks(a));
    assert_false(pl_tasks_speaks(b));
    assert_true(pl_tasks_speaks(a));
    pl_tasks_free(a); /* however it ends */
    assert_true(pl_tasks_speaks(b));
    assert_true(pl_file_exists(test_path(*state, "tasks")));
    pl_tasks_free(b);
    assert_false(pl_file_exists(test_path(*state, "tasks")));
}

static void tasks_keep_their_counts_over_a_restart(void **state)
{
    pl_tasks *other = make(*state, 0), *first = make(*state, 1);
    pl_tasks_view view;
    assert_ok(pl_tasks_tell(other, 1, 0, 0));
    assert_ok(pl_tasks_tell(first, 1, 100, 1000));
    pl_tasks_free(first);
    pl_tasks *second = make(*state, 1);
    assert_ok(pl_tasks_tell(second, 2, 5, 50));
    assert_ok(pl_tasks_look(other, 2, &view));
    assert_int_equal(105, view.sent_bytes);
    assert_int_equal(1050, view.received_bytes);
    assert_int_equal(2, view.count);
    pl_tasks_free(second);
    pl_tasks_free(other);
}

static void tasks_skip_invalid_records(void **state)
{
    char junk[1000];
    pl_tasks_view view;
    memset(junk, 0x5a, sizeof junk);
    assert_ok(pl_file_replace(test_path(*state, "tasks"), junk, sizeof junk));
    pl_tasks *tasks = make(*state, 30);
    assert_ok(pl_tasks_tell(tasks, 1, 1, 1));
    assert_ok(pl_tasks_look(tasks, 1, &view));
    assert_int_equal(1, view.count);
    assert_int_equal(1, view.sent_bytes);
    pl_tasks_free(tasks);
}

static void tasks_file_in_no_folder_is_refused(void **state)
{
    pl_tasks *tasks = NULL;
    const char *path = test_path(test_path(*state, "none"), "tasks");
    assert_fails(PL_IO, path,
                 pl_tasks_new(&tasks, &(pl_tasks_opts) { .path = path }));
    assert_null(tasks);
}

UNIT_TESTS(TEST_IN_FOLDER(tasks_new_survives_each_failed_allocation),
           TEST_IN_FOLDER(tasks_see_each_other),
           TEST_IN_FOLDER(tasks_publish_their_role_and_progress),
           TEST_IN_FOLDER(tasks_have_one_speaker),
           TEST_IN_FOLDER(tasks_keep_their_counts_over_a_restart),
           TEST_IN_FOLDER(tasks_skip_invalid_records),
           TEST_IN_FOLDER(tasks_file_in_no_folder_is_refused))
