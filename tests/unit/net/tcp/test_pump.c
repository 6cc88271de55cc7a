/* The thread that works for endpoints: chores run when they were requested, and
 * none after the end.
 *
 * Invariants and the tests that check them:
 *   pump P1  endpoints_beside_each_other_share_a_thread (test_endpoint.c)
 *   pump P2  pump_starts_again_after_its_thread_has_ended
 *   pump P3  pump_repeats_a_chore_requested_while_it_runs
 *   pump P4  pump_runs_no_chore_after_finish */
#include "net/tcp/pump.h"

#include "support/unit.h"

#include <stdatomic.h>

typedef struct rig {
    pl_pump_user user;
    pl_mutex lock;
    pl_cond changed;
    int begun, ended; /* chores */
    bool holds;       /* the chore that runs waits */
} rig;

static bool chore(void *context, struct pollfd *poll, int64_t *until_ns)
{
    (void)poll, (void)until_ns;
    rig *r = context;
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), 60000);
    pl_mutex_lock(&r->lock);
    r->begun++;
    pl_cond_broadcast(&r->changed);
    while (r->holds &&
           pl_cond_wait_until(&r->changed, &r->lock, deadline) == PL_OK)
        continue;
    r->ended++;
    pl_cond_broadcast(&r->changed);
    pl_mutex_unlock(&r->lock);
    return false;
}

static void open_rig(rig *r)
{
    *r = (rig) { .begun = 0 };
    pl_mutex_init(&r->lock);
    pl_cond_init(&r->changed);
    assert_ok(pl_pump_join(&r->user, NULL, chore, r));
}

static void close_rig(rig *r)
{
    pl_pump_finish(&r->user, pl_deadline_in_ms(pl_clock_real(), 0));
    pl_pump_leave(&r->user);
    pl_cond_close(&r->changed);
    pl_mutex_close(&r->lock);
    assert_int_equal(0, pl_mem_live());
}

static void hold(rig *r, bool holds)
{
    pl_mutex_lock(&r->lock);
    r->holds = holds;
    pl_cond_broadcast(&r->changed);
    pl_mutex_unlock(&r->lock);
}

/* Wait until this many chores have begun, or ended. */
static void await(rig *r, const int *chores, int count)
{
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), 60000);
    pl_mutex_lock(&r->lock);
    while (*chores < count)
        assert_ok(pl_cond_wait_until(&r->changed, &r->lock, deadline));
    assert_int_equal(count, *chores);
    pl_mutex_unlock(&r->lock);
}

static void await_end_of_thread(pl_pump *pump)
{
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), 60000);
    pl_mutex_lock(&pump->lock);
    while (pump->running)
        assert_ok(pl_cond_wait_until(&pump->changed, &pump->lock, deadline));
    pl_mutex_unlock(&pump->lock);
}

static void pump_starts_again_after_its_thread_has_ended(void **state)
{
    (void)state;
    rig r;
    open_rig(&r);
    for (int i = 1; i <= 2; i++) {
        assert_ok(pl_pump_call(&r.user));
        await(&r, &r.ended, i);
        await_end_of_thread(r.user.pump); /* idle for a second */
    }
    pl_pump_tidy(r.user.pump);
    assert_null(r.user.pump->thread);
    close_rig(&r);
}

static void pump_repeats_a_chore_requested_while_it_runs(void **state)
{
    (void)state;
    rig r;
    open_rig(&r);
    hold(&r, true);
    assert_ok(pl_pump_call(&r.user));
    await(&r, &r.begun, 1);
    for (int i = 0; i < 3; i++)
        assert_ok(pl_pump_call(&r.user));
    hold(&r, false);
    await(&r, &r.ended, 2); /* three calls are one chore more */
    await_end_of_thread(r.user.pump);
    assert_int_equal(2, r.ended);
    close_rig(&r);
}

static pl_status finish(void *context)
{
    rig *r = context;
    pl_pump_finish(&r->user, pl_deadline_in_ms(pl_clock_real(), 0));
    pl_mutex_lock(&r->lock);
    int begun = r->begun, ended = r->ended;
    pl_mutex_unlock(&r->lock);
    return begun == ended ? PL_OK : PL_FAIL(PL_CLOSED, "a chore still runs");
}

/* It waits for the chore that runs. */
static void pump_runs_no_chore_after_finish(void **state)
{
    (void)state;
    rig r;
    pl_thread *thread;
    open_rig(&r);
    hold(&r, true);
    assert_ok(pl_pump_call(&r.user));
    await(&r, &r.begun, 1);
    assert_ok(pl_thread_start(&thread, "finish", finish, &r));
    hold(&r, false);
    assert_ok(pl_thread_join(thread));
    await_end_of_thread(r.user.pump);
    assert_int_equal(1, r.begun);
    close_rig(&r);
}

UNIT_TESTS(cmocka_unit_test(pump_starts_again_after_its_thread_has_ended),
           cmocka_unit_test(pump_repeats_a_chore_requested_while_it_runs),
           cmocka_unit_test(pump_runs_no_chore_after_finish))
