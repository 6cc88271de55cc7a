/* Checkpoints in the background.
 *
 * Invariants and the tests that check them:
 *   writer W1  writer_reports_each_failure_once
 *   writer W2  writer_writes_the_memory_of_the_start */
#include "state/writer.h"

#include "support/checkpoint.h"

#include <sched.h>

#define FLOATS 6

typedef struct rig {
    float plane[FLOATS];
    pl_writer *writer;
    char request[600];
} rig;

static pl_status open_writer(rig *r)
{
    return pl_writer_new(&r->writer,
                         &(pl_partition_opts) {
                             .of = 1,
                             .count = FLOATS,
                             .planes = { .count = 1, .data = { r->plane } },
                         });
}

static void open_rig(rig *r)
{
    *r = (rig) { .plane = { 0 } };
    assert_ok(open_writer(r));
}

static void close_rig(rig *r)
{
    pl_writer_free(r->writer);
    assert_int_equal(0, pl_mem_live());
}

/* The request for a checkpoint of `step`, whose folder is made if `there`. */
static size_t make_request(rig *r, const char *checkpoints, int64_t step,
                           bool there)
{
    char *folder;
    if (there) {
        assert_ok(pl_checkpoint_begin(&folder, checkpoints, step));
        pl_mem_free(folder);
    }
    snprintf(r->request, sizeof r->request,
             "{\"checkpoints\": \"%s\", \"folder\": \"step-%010lld\", "
             "\"step\": %lld, \"keep\": 2, \"model\": \"m\", \"settings\": "
             "{}, \"state\": {}, \"tensors\": [{\"name\": \"w\", \"shape\": "
             "[6], \"first\": 0}]}",
             checkpoints, (long long)step, (long long)step);
    return strlen(r->request);
}

static void fill(rig *r, float value)
{
    pl_frozen_before_change(pl_writer_frozen(r->writer), 0, FLOATS);
    for (int i = 0; i < FLOATS; i++)
        r->plane[i] = value;
}

/* The value in the checkpoint of a step; -1: it is not complete. */
static float found(const char *checkpoints, int64_t step)
{
    float data[FLOATS];
    char name[40];
    pl_checkpoint *checkpoint;
    snprintf(name, sizeof name, "step-%010lld", (long long)step);
    if (pl_checkpoint_open(&checkpoint, test_path(checkpoints, name)) != PL_OK)
        return -1;
    assert_ok(pl_checkpoint_load(
        checkpoint,
        &(pl_checkpoint_tensor) { "w", PL_SHAPE(FLOATS), data, 0, 0 }, 1));
    pl_checkpoint_free(checkpoint);
    assert_memory_equal(data, data + 1, (FLOATS - 1) * sizeof(float));
    return data[0];
}

static void writer_new_survives_each_failed_allocation(void **state)
{
    (void)state;
    rig r;
    assert_survives_failed_allocations(open_writer(&r),
                                       pl_writer_free(r.writer));
    pl_writer_free(NULL);
}

static void writer_writes_the_memory_of_the_start(void **state)
{
    rig r;
    open_rig(&r);
    for (int64_t step = 1; step <= 6; step++) {
        size_t bytes = make_request(&r, *state, step, true);
        fill(&r, (float)step);
        assert_true(pl_writer_checkpoint(r.writer, r.request, bytes));
        fill(&r, -7);
        assert_ok(pl_writer_wait(r.writer));
        assert_false(pl_writer_busy(r.writer));
        assert_true(found(*state, step) == (float)step);
    }
    assert_true(found(*state, 5) == 5); /* two are kept */
    assert_true(found(*state, 4) == -1);
    close_rig(&r);
}

static void writer_in_the_foreground_copies_nothing(void **state)
{
    rig r;
    open_rig(&r);
    fill(&r, 3);
    size_t bytes = make_request(&r, *state, 3, true);
    assert_ok(pl_writer_checkpoint_now(r.writer, r.request, bytes));
    assert_true(found(*state, 3) == 3);
    r.plane[FLOATS - 1] = 1.0f / 0.0f;
    bytes = make_request(&r, *state, 4, true);
    assert_fails(PL_NUMERIC, "checkpoint of step 4: ",
                 pl_writer_checkpoint_now(r.writer, r.request, bytes));
    assert_false(pl_file_exists(test_path(*state, "step-0000000004")));
    close_rig(&r);
}

/* Until its outcome was reported, a finished task keeps others from starting.
 */
static void writer_reports_each_failure_once(void **state)
{
    rig r;
    pl_written written;
    open_rig(&r);
    size_t bytes = make_request(&r, *state, 1, false);
    assert_true(pl_writer_checkpoint(r.writer, r.request, bytes));
    assert_false(pl_writer_checkpoint(r.writer, r.request, bytes));
    assert_fails(PL_NOTFOUND, "checkpoint of step 1", pl_writer_wait(r.writer));
    assert_ok(pl_writer_wait(r.writer));
    assert_true(pl_writer_checkpoint(r.writer, r.request, bytes));
    while (!pl_writer_poll(r.writer, &written))
        sched_yield();
    assert_int_equal(PL_NOTFOUND, written.error.status);
    assert_ok(pl_writer_wait(r.writer));
    assert_true(pl_writer_checkpoint(r.writer, "{", 1));
    assert_fails(PL_FORMAT, "save request", pl_writer_wait(r.writer));
    bytes = make_request(&r, *state, 2, true);
    assert_true(pl_writer_checkpoint(r.writer, r.request, bytes));
    assert_ok(pl_writer_wait(r.writer));
    assert_true(found(*state, 2) == 0);
    close_rig(&r);
}

static pl_status write_once(rig *r, const char *checkpoints)
{
    size_t bytes = make_request(r, checkpoints, 5, false);
    PL_TRY(pl_file_make_folder(test_path(checkpoints, "step-0000000005")));
    PL_TRY(open_writer(r));
    pl_status status = PL_AGAIN;
    if (pl_writer_checkpoint(r->writer, r->request, bytes))
        status = pl_writer_wait(r->writer);
    if (status == PL_OK)
        status = pl_writer_checkpoint_now(r->writer, r->request, bytes);
    pl_writer_free(r->writer);
    return status;
}

static void writer_survives_failed_allocations(void **state)
{
    rig r = { .plane = { 0 } };
    assert_survives_failed_allocations(write_once(&r, *state), (void)0);
    assert_true(found(*state, 5) == 0);
}

UNIT_TESTS(TEST_IN_FOLDER(writer_new_survives_each_failed_allocation),
           TEST_IN_FOLDER(writer_writes_the_memory_of_the_start),
           TEST_IN_FOLDER(writer_in_the_foreground_copies_nothing),
           TEST_IN_FOLDER(writer_reports_each_failure_once),
           TEST_IN_FOLDER(writer_survives_failed_allocations))
