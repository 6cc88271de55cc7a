#include "state/checkpointer.h"

#include "base/thread.h"
#include "support/checkpoint.h"

static pl_checkpointer *start(const char *folder, int32_t keep)
{
    pl_checkpointer *checkpointer;
    assert_ok(pl_checkpointer_new(
        &checkpointer,
        &(pl_checkpointer_opts) { .folder = folder, .keep = keep }));
    return checkpointer;
}

static pl_status save(pl_checkpointer *checkpointer, const sample *s)
{
    return pl_checkpointer_save(checkpointer, &s->manifest, s->tensors,
                                SAMPLE_TENSORS);
}

/* What the caller does with its memory after the save changes nothing. */
static void checkpointer_saves_a_copy(void **state)
{
    sample s;
    sample_init(&s, 3);
    pl_checkpointer *checkpointer = start(*state, 0);
    assert_ok(save(checkpointer, &s));
    sample_fill(&s, 99);
    sample_close(&s);
    assert_ok(pl_checkpointer_wait(checkpointer));
    assert_int_equal(3, sample_found(*state));
    assert_ok(pl_checkpointer_stop(checkpointer));
    assert_ok(pl_checkpointer_stop(checkpointer));
    pl_checkpointer_free(checkpointer);
    assert_int_equal(0, pl_mem_live());
}

static void checkpointer_keeps_the_last(void **state)
{
    sample s;
    sample_init(&s, 0);
    pl_checkpointer *checkpointer = start(*state, 2);
    for (int64_t step = 1; step <= 5; step++) {
        sample_fill(&s, step);
        if (step % 2 == 0)
            assert_ok(pl_checkpointer_save_now(checkpointer, &s.manifest,
                                               s.tensors, SAMPLE_TENSORS));
        else
            assert_ok(save(checkpointer, &s));
    }
    assert_ok(pl_checkpointer_stop(checkpointer));
    pl_checkpointer_free(checkpointer);
    sample_close(&s);

    char **names;
    size_t count;
    assert_ok(pl_file_list(&names, &count, *state));
    assert_int_equal(2, count);
    assert_string_equal("step-0000000004", names[0]);
    assert_string_equal("step-0000000005", names[1]);
    pl_mem_free(names);
}

static void checkpointer_takes_other_tensors_later(void **state)
{
    sample s;
    sample_init(&s, 1);
    pl_checkpointer *checkpointer = start(*state, 0);
    assert_ok(pl_checkpointer_save(checkpointer, &s.manifest, s.tensors, 1));
    assert_ok(pl_checkpointer_wait(checkpointer));
    sample_fill(&s, 2);
    assert_ok(save(checkpointer, &s));
    assert_ok(pl_checkpointer_wait(checkpointer));
    pl_checkpointer_free(checkpointer);
    sample_close(&s);
    assert_int_equal(2, sample_found(*state));
}

/* A gate in the log: the writer says "written" while it is still at it, and
 * is held there until the test opens. */
struct gate {
    pl_mutex lock;
    pl_cond changed;
    bool reached;
    bool open;
};

static void wait_until(struct gate *gate, const bool *flag)
{
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), 60000);
    while (!*flag)
        if (pl_cond_wait_until(&gate->changed, &gate->lock, deadline) != PL_OK)
            abort();
}

static void gate_sink(void *context, pl_log_level level, const char *line)
{
    struct gate *gate = context;
    if (level != PL_LOG_DEBUG || strstr(line, "written to") == NULL)
        return;
    pl_mutex_lock(&gate->lock);
    gate->reached = true;
    pl_cond_broadcast(&gate->changed);
    wait_until(gate, &gate->open);
    pl_mutex_unlock(&gate->lock);
}

static void checkpointer_leaves_out_what_comes_too_soon(void **state)
{
    struct gate gate = { .open = false };
    pl_mutex_init(&gate.lock);
    pl_cond_init(&gate.changed);
    pl_log_set(gate_sink, &gate, PL_LOG_DEBUG);

    sample s;
    sample_init(&s, 1);
    pl_checkpointer *checkpointer = start(*state, 0);
    assert_ok(save(checkpointer, &s));
    pl_mutex_lock(&gate.lock);
    wait_until(&gate, &gate.reached);
    pl_mutex_unlock(&gate.lock);

    sample_fill(&s, 2);
    assert_fails(PL_AGAIN, "still being written", save(checkpointer, &s));
    pl_mutex_lock(&gate.lock);
    gate.open = true;
    pl_cond_broadcast(&gate.changed);
    pl_mutex_unlock(&gate.lock);
    assert_ok(pl_checkpointer_wait(checkpointer));
    assert_int_equal(1, sample_found(*state));
    assert_ok(save(checkpointer, &s));
    assert_ok(pl_checkpointer_stop(checkpointer));
    assert_int_equal(2, sample_found(*state));

    pl_checkpointer_free(checkpointer);
    sample_close(&s);
    pl_log_set(NULL, NULL, PL_LOG_INFO);
    pl_cond_close(&gate.changed);
    pl_mutex_close(&gate.lock);
}

/* A file where the folder should be makes every write fail. */
static void checkpointer_tells_of_each_failure_once(void **state)
{
    const char *folder = test_path(*state, "checkpoints");
    assert_ok(pl_file_replace(folder, "", 0));
    sample s;
    sample_init(&s, 1);
    pl_checkpointer *checkpointer = start(folder, 0);
    assert_ok(save(checkpointer, &s));
    assert_fails(PL_IO, "checkpoint of step 1",
                 pl_checkpointer_wait(checkpointer));
    assert_ok(pl_checkpointer_wait(checkpointer)); /* told once */

    sample_fill(&s, 2);
    assert_ok(save(checkpointer, &s));
    pl_status status;
    while ((status = save(checkpointer, &s)) == PL_AGAIN)
        sched_yield();
    assert_int_equal(PL_IO, status); /* the one before; step 2 is under way */
    assert_fails(PL_IO, "checkpoint of step 2",
                 pl_checkpointer_stop(checkpointer));
    assert_ok(pl_checkpointer_stop(checkpointer));
    pl_checkpointer_free(checkpointer);
    sample_close(&s);
}

static void checkpointer_makes_good_a_failure(void **state)
{
    const char *folder = test_path(*state, "checkpoints");
    warnings seen = { 0 };
    pl_log_set(warnings_sink, &seen, PL_LOG_INFO);
    assert_ok(pl_file_replace(folder, "", 0));
    sample s;
    sample_init(&s, 1);
    pl_checkpointer *checkpointer = start(folder, 0);
    assert_ok(save(checkpointer, &s));
    assert_fails(PL_IO, "checkpoint of step 1",
                 pl_checkpointer_wait(checkpointer));
    assert_ok(save(checkpointer, &s));
    assert_fails(PL_IO, "checkpoint of step 2",
                 (sample_fill(&s, 2),
                  pl_checkpointer_save_now(checkpointer, &s.manifest, s.tensors,
                                           SAMPLE_TENSORS)));
    assert_int_equal(1, seen.count);
    assert_ok(pl_file_remove_all(folder));
    assert_ok(pl_checkpointer_save_now(checkpointer, &s.manifest, s.tensors,
                                       SAMPLE_TENSORS));
    assert_int_equal(2, sample_found(folder));
    pl_checkpointer_free(checkpointer);
    sample_close(&s);
    pl_log_set(NULL, NULL, PL_LOG_INFO);
}

static pl_status save_once(const char *folder, const sample *s)
{
    pl_checkpointer *checkpointer;
    PL_TRY(pl_checkpointer_new(&checkpointer,
                               &(pl_checkpointer_opts) { .folder = folder }));
    pl_status status = save(checkpointer, s);
    if (status == PL_OK)
        status = pl_checkpointer_stop(checkpointer);
    pl_checkpointer_free(checkpointer);
    return status;
}

static void checkpointer_survives_failed_allocations(void **state)
{
    sample s;
    sample_init(&s, 4);
    assert_survives_failed_allocations(save_once(*state, &s), (void)0);
    assert_int_equal(4, sample_found(*state));
    sample_close(&s);
}

UNIT_TESTS(TEST_IN_FOLDER(checkpointer_saves_a_copy),
           TEST_IN_FOLDER(checkpointer_keeps_the_last),
           TEST_IN_FOLDER(checkpointer_takes_other_tensors_later),
           TEST_IN_FOLDER(checkpointer_leaves_out_what_comes_too_soon),
           TEST_IN_FOLDER(checkpointer_tells_of_each_failure_once),
           TEST_IN_FOLDER(checkpointer_makes_good_a_failure),
           TEST_IN_FOLDER(checkpointer_survives_failed_allocations))
