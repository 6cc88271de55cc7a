/* The worker machine against a real core: what it requests, and when.
 * Messages to the core arrive at once, answers when the test delivers them.
 *
 * Invariants and the tests that check them:
 *   worker W1  worker_wish_waits_for_the_previous_request
 *   worker W2  worker_sends_nothing_after_a_rollback
 *   worker W3  worker_makes_no_update_before_the_first_save
 *   worker W4  worker_releases_others_after_a_failed_save
 *   worker W5  worker_reports_each_outcome_once
 *   worker W6  worker_that_said_goodbye_is_done,
 *              worker_that_was_leaving_is_done_if_its_server_is_lost */
#include "support/ps.h"
#include "sync/ps/worker/worker.h"

#define WORKERS 2
#define FLOATS  4

typedef struct job job;

typedef struct task {
    job *j;
    int32_t index;
    pl_ps_worker *machine;
    float params[FLOATS];
    int sent; /* frames */
    pl_frame_kind last;
} task;

struct job {
    ps_rig *rig;
    task tasks[WORKERS];
    int saves, commits; /* that the core began */
    bool plan_fails;
};

static job *at_work; /* the core's context is the rig's */

static bool on_save(void *context, const char *plan, size_t bytes)
{
    (void)context, (void)plan, (void)bytes;
    at_work->saves++;
    return true;
}

static bool on_commit(void *context, const pl_ps_part *parts)
{
    (void)context, (void)parts;
    at_work->commits++;
    return true;
}

static bool on_load(void *context, const char *plan, size_t bytes)
{
    (void)context, (void)plan, (void)bytes;
    return true;
}

static void on_cancel(void *context)
{
    (void)context;
}

static bool on_touch(void *context, int64_t first, int64_t count)
{
    (void)context, (void)first, (void)count;
    return true;
}

static const pl_ps_core_ops core_ops = {
    .send = ps_on_send,
    .lost = ps_on_lost,
    .save = on_save,
    .commit = on_commit,
    .load = on_load,
    .cancel = on_cancel,
    .touch = on_touch,
};

static void on_send(void *context, int32_t ps, const pl_frame *frame,
                    const void *payload, bool lasting)
{
    (void)ps, (void)lasting;
    task *t = context;
    t->sent++;
    t->last = frame->kind;
    ps_say(t->j->rig, PS_WORKER + t->index, *frame, payload);
}

static const pl_ps_client_ops client_ops = { .send = on_send };

static pl_status on_joined(void *context)
{
    (void)context;
    return PL_OK;
}

static void on_parted(void *context)
{
    (void)context;
}

static void on_tell(void *context, int64_t step, pl_phase phase)
{
    (void)context, (void)step, (void)phase;
}

static pl_status on_find(void *context, pl_ps_checkpoint *out)
{
    (void)context, (void)out;
    return PL_NOTFOUND;
}

static pl_status on_plan(void *context, int64_t step, const int64_t *counts,
                         char **plan)
{
    (void)step, (void)counts;
    if (((task *)context)->j->plan_fails)
        return PL_FAIL(PL_IO, "no folder");
    return pl_mem_copy_text(plan, "{}");
}

static const pl_ps_worker_ops worker_ops = { .joined = on_joined,
                                             .parted = on_parted,
                                             .tell = on_tell,
                                             .find = on_find,
                                             .plan = on_plan };

static void open_task(job *j, int32_t index, const pl_ps_core_opts *opts,
                      bool saves)
{
    task *t = &j->tasks[index];
    bool chief = index == 0;
    t->j = j;
    t->index = index;
    assert_ok(pl_ps_worker_new(&t->machine,
                               &(pl_ps_worker_opts) {
                                   .client = { .role = "worker",
                                               .index = index,
                                               .host = "node",
                                               .process = 100,
                                               .ps = 1,
                                               .workers = WORKERS,
                                               .mode = opts->mode,
                                               .count = FLOATS,
                                               .piece = opts->piece,
                                               .params = t->params,
                                               .job = chief ? 7 : 0,
                                               .ops = &client_ops,
                                               .context = t },
                                   .ops = &worker_ops,
                                   .name = "worker",
                                   .chief = chief,
                                   .saves = chief && saves,
                                   .backup = opts->replicas == 1,
                               },
                               j->rig->now_ns));
}

static void open_job(job *j, pl_ps_core_opts opts, bool saves)
{
    *j = (job) { 0 };
    at_work = j;
    opts.workers = WORKERS;
    opts.count = FLOATS;
    opts.ops = &core_ops;
    j->rig = ps_open(opts, "sgd");
    for (int32_t i = 0; i < WORKERS; i++)
        open_task(j, i, &opts, saves);
}

static void close_job(job *j)
{
    for (int32_t i = 0; i < WORKERS; i++)
        pl_ps_worker_free(j->tasks[i].machine);
    ps_close(j->rig);
}

/* The next of the core's messages arrives; false: there is none. */
static bool deliver_one(job *j)
{
    ps_rig *rig = j->rig;
    if (rig->taken == rig->made) {
        ps_forget(rig);
        return false;
    }
    ps_sent sent = rig->sent[rig->taken++];
    pl_message message = { .frame = sent.frame, .payload = sent.bytes };
    pl_ps_worker_receive(j->tasks[sent.to - PS_WORKER].machine, 0, &message,
                         rig->now_ns);
    return true;
}

static void deliver(job *j)
{
    while (deliver_one(j))
        continue;
}

/* A second of time, in which unanswered requests are repeated. */
static void wait_a_second(job *j)
{
    for (int i = 0; i < 10; i++) {
        ps_tick(j->rig, 100);
        deliver(j);
        for (int32_t w = 0; w < WORKERS; w++)
            pl_ps_worker_tick(j->tasks[w].machine, j->rig->now_ns);
        deliver(j);
    }
}

static bool is_busy(const task *t)
{
    return pl_ps_worker_busy(t->machine);
}

static void assert_done(const task *t)
{
    assert_false(is_busy(t));
    assert_ok(pl_ps_worker_outcome(t->machine));
}

static void join_all(job *j)
{
    for (int32_t i = 0; i < WORKERS; i++)
        pl_ps_worker_join(j->tasks[i].machine);
    deliver(j);
}

static void join_without_saves(job *j)
{
    join_all(j);
    wait_a_second(j);
    for (int32_t i = 0; i < WORKERS; i++)
        assert_done(&j->tasks[i]);
}

static const float grad[FLOATS] = { 1, 1, 1, 1 };

static void begin_step(task *t)
{
    assert_true(pl_ps_worker_have(t->machine, 0, FLOATS));
    pl_ps_worker_ready(t->machine, grad, 0);
    pl_ps_worker_commit(t->machine);
}

static void worker_wish_waits_for_the_previous_request(void **state)
{
    (void)state;
    job j;
    open_job(&j, (pl_ps_core_opts) { .mode = PL_PS_ASYNC, .piece = 2 }, false);
    task *t = &j.tasks[1];
    join_without_saves(&j);
    begin_step(t);
    /* The first of two pieces has the outcome of the commit. */
    while (is_busy(t))
        assert_true(deliver_one(&j));
    assert_false(pl_ps_worker_have(t->machine, 0, FLOATS));
    t->last = PL_FRAME_PUSH;
    pl_ps_worker_share(t->machine, 1, false);
    assert_true(is_busy(t));
    assert_int_equal(PL_FRAME_PUSH, t->last);
    deliver(&j);
    assert_done(t);
    assert_int_equal(PL_FRAME_SHARE, t->last);
    assert_true(pl_ps_worker_have(t->machine, 0, FLOATS));
    close_job(&j);
}

static void worker_sends_nothing_after_a_rollback(void **state)
{
    (void)state;
    job j;
    open_job(&j, (pl_ps_core_opts) { .mode = PL_PS_ASYNC }, false);
    task *t = &j.tasks[1];
    join_without_saves(&j);
    pl_ps_worker_lost(t->machine,
                      PL_FAIL(PL_ROLLED, "the job was rolled back"));
    int sent = t->sent;
    pl_ps_worker_ready(t->machine, grad, 0);
    pl_ps_worker_commit(t->machine);
    pl_ps_worker_share(t->machine, 1, false);
    assert_false(is_busy(t));
    assert_fails(PL_ROLLED, "rolled back", pl_ps_worker_check(t->machine));
    wait_a_second(&j);
    wait_a_second(&j);
    assert_int_equal(sent, t->sent);
    pl_ps_worker_join(t->machine);
    assert_int_equal(sent + 1, t->sent);
    assert_int_equal(PL_FRAME_JOIN, t->last);
    close_job(&j);
}

/* Worker 1 alone could make a step. */
static void worker_makes_no_update_before_the_first_save(void **state)
{
    (void)state;
    static const pl_ps_core_opts all[] = {
        { .mode = PL_PS_SYNC, .replicas = 1 },
        { .mode = PL_PS_ASYNC },
    };
    for (size_t m = 0; m < sizeof all / sizeof *all; m++) {
        job j;
        open_job(&j, all[m], true);
        join_all(&j);
        wait_a_second(&j);
        assert_int_equal(1, j.saves);
        pl_ps_stored good = { .outcome = PL_SAVED_GOOD, .bytes = 16 };
        if (!is_busy(&j.tasks[1]))
            begin_step(&j.tasks[1]);
        for (int commits = 0; commits < 2; commits++) {
            wait_a_second(&j);
            assert_int_equal(commits, j.commits);
            assert_int_equal(0, pl_ps_core_look(j.rig->core, 0).step);
            assert_true(is_busy(&j.tasks[0]));
            assert_true(is_busy(&j.tasks[1]));
            pl_ps_core_stored(j.rig->core, &good, j.rig->now_ns);
        }
        wait_a_second(&j);
        wait_a_second(&j);
        assert_done(&j.tasks[0]);
        assert_done(&j.tasks[1]);
        close_job(&j);
    }
}

static void worker_releases_others_after_a_failed_save(void **state)
{
    (void)state;
    job j;
    open_job(&j, (pl_ps_core_opts) { .mode = PL_PS_ASYNC }, true);
    pl_ps_stored good = { .outcome = PL_SAVED_GOOD, .bytes = 16 };
    join_all(&j);
    for (int i = 0; i < 2; i++) {
        wait_a_second(&j);
        pl_ps_core_stored(j.rig->core, &good, j.rig->now_ns);
    }
    wait_a_second(&j);
    assert_done(&j.tasks[1]);
    j.plan_fails = true;
    pl_ps_worker_save(j.tasks[0].machine, false);
    wait_a_second(&j);
    assert_true(is_busy(&j.tasks[0])); /* worker 1 is in mid-gradient */
    begin_step(&j.tasks[1]);
    wait_a_second(&j);
    assert_false(is_busy(&j.tasks[0]));
    assert_fails(PL_IO, "no folder", pl_ps_worker_outcome(j.tasks[0].machine));
    wait_a_second(&j);
    assert_done(&j.tasks[1]);
    close_job(&j);
}

static void worker_reports_each_outcome_once(void **state)
{
    (void)state;
    job j;
    open_job(&j, (pl_ps_core_opts) { .mode = PL_PS_SYNC, .replicas = 1 },
             false);
    task *first = &j.tasks[0], *late = &j.tasks[1];
    join_without_saves(&j);
    begin_step(first);
    deliver(&j);
    assert_done(first);
    assert_false(pl_ps_worker_look(first->machine).dropped);
    begin_step(late);
    deliver(&j);
    assert_done(late);
    assert_true(pl_ps_worker_look(late->machine).dropped);
    wait_a_second(&j);
    begin_step(late);
    deliver(&j);
    assert_done(late);
    assert_false(pl_ps_worker_look(late->machine).dropped);
    assert_int_equal(1, pl_ps_worker_look(late->machine).drops);
    /* A commit on its way when the job rolls back has no outcome. */
    wait_a_second(&j);
    begin_step(late);
    pl_ps_worker_lost(late->machine, PL_FAIL(PL_ROLLED, "rolled back"));
    assert_false(is_busy(late));
    assert_fails(PL_ROLLED, "rolled back", pl_ps_worker_outcome(late->machine));
    assert_int_equal(1, pl_ps_worker_look(late->machine).drops);
    close_job(&j);
}

/* A job of one step, which all have made. */
static void open_ended_job(job *j)
{
    open_job(j, (pl_ps_core_opts) { .mode = PL_PS_SYNC, .end_step = 1 }, false);
    join_without_saves(j);
    for (int32_t i = 0; i < WORKERS; i++)
        begin_step(&j->tasks[i]);
    deliver(j);
    for (int32_t i = 0; i < WORKERS; i++) {
        assert_done(&j->tasks[i]);
        assert_true(pl_ps_worker_look(j->tasks[i].machine).stop);
    }
}

static void worker_that_said_goodbye_is_done(void **state)
{
    (void)state;
    job j;
    open_ended_job(&j);
    task *chief = &j.tasks[0], *t = &j.tasks[1];
    pl_ps_worker_leave(t->machine, "{}");
    wait_a_second(&j);
    assert_true(is_busy(t)); /* the chief may still be lost */
    pl_ps_worker_settle(chief->machine);
    wait_a_second(&j);
    assert_done(chief);
    pl_ps_worker_leave(chief->machine, "{}");
    wait_a_second(&j);
    wait_a_second(&j);
    assert_done(chief);
    assert_done(t);
    int sent = t->sent;
    pl_ps_worker_lost(t->machine, PL_FAIL(PL_ROLLED, "ps 0 is silent"));
    pl_ps_worker_share(t->machine, 1, false);
    wait_a_second(&j);
    assert_done(t);
    assert_ok(pl_ps_worker_check(t->machine));
    assert_int_equal(sent, t->sent);
    close_job(&j);
}

/* It joins again, as the job may roll back after it left, and is refused. */
static void worker_that_was_leaving_is_done_if_its_server_is_lost(void **state)
{
    (void)state;
    job j;
    open_ended_job(&j);
    task *t = &j.tasks[1];
    pl_ps_worker_leave(t->machine, "{}");
    assert_true(is_busy(t));
    pl_ps_worker_lost(t->machine, PL_FAIL(PL_ROLLED, "ps 0 is silent"));
    assert_fails(PL_ROLLED, "silent", pl_ps_worker_outcome(t->machine));
    pl_ps_worker_join(t->machine);
    assert_true(is_busy(t));
    for (int s = 0; s <= 61 && is_busy(t); s++) /* the rejoin timeout */
        pl_ps_worker_tick(t->machine, j.rig->now_ns += 1000 * PS_MS);
    assert_done(t);
    assert_true(pl_ps_worker_look(t->machine).gone);
    assert_true(pl_ps_worker_look(t->machine).over);
    close_job(&j);
}

UNIT_TESTS(
    cmocka_unit_test(worker_wish_waits_for_the_previous_request),
    cmocka_unit_test(worker_sends_nothing_after_a_rollback),
    cmocka_unit_test(worker_makes_no_update_before_the_first_save),
    cmocka_unit_test(worker_releases_others_after_a_failed_save),
    cmocka_unit_test(worker_reports_each_outcome_once),
    cmocka_unit_test(worker_that_said_goodbye_is_done),
    cmocka_unit_test(worker_that_was_leaving_is_done_if_its_server_is_lost))
