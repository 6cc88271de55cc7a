#include "base/thread.h"

#include "support/unit.h"

#include <sched.h>
#include <stdatomic.h>

#define MOST_THREADS 5

static pl_status fail_with_text(void *arg)
{
    return PL_FAIL(PL_PEER, "worker %d is gone", *(int *)arg);
}

static void thread_join_carries_the_error_over(void **state)
{
    (void)state;
    int worker = 3;
    pl_thread *thread;
    (void)PL_FAIL(PL_IO, "mine");
    assert_ok(pl_thread_start(&thread, "failing", fail_with_text, &worker));
    pl_status status = pl_thread_join(thread);
    assert_int_equal(PL_PEER, status);
    assert_non_null(strstr(pl_error_message(), "worker 3 is gone [tests/"));
}

static pl_status fail_and_recover(void *arg)
{
    (void)PL_FAIL(PL_IO, "not for the caller");
    *(int *)arg = 7;
    return PL_OK;
}

static void thread_join_of_a_success_leaves_the_message(void **state)
{
    (void)state;
    int result = 0;
    pl_thread *thread;
    assert_ok(pl_thread_start(&thread, "a name longer than the system takes",
                              fail_and_recover, &result));
    (void)PL_FAIL(PL_IO, "mine");
    assert_ok(pl_thread_join(thread));
    assert_int_equal(7, result);
    assert_non_null(strstr(pl_error_message(), "mine"));
    assert_ok(pl_thread_join(NULL));
}

static pl_status do_nothing(void *arg)
{
    (void)arg;
    return PL_OK;
}

static void join_ok(pl_thread *thread)
{
    assert_ok(pl_thread_join(thread));
}

static void thread_start_survives_each_failed_allocation(void **state)
{
    (void)state;
    pl_thread *thread = NULL;
    assert_survives_failed_allocations(
        pl_thread_start(&thread, "t", do_nothing, NULL), join_ok(thread));
}

/* A waiter and the thread that wakes it. */
struct waiting {
    pl_clock clock;
    pl_mutex lock;
    pl_cond changed;
    bool waits; /* the waiter holds the lock from here on; guarded by lock */
    bool ready; /* what it waits for; guarded by lock */
};

static void waiting_init(struct waiting *waiting)
{
    pl_clock_init_fake(&waiting->clock, 0);
    pl_mutex_init(&waiting->lock);
    pl_cond_init(&waiting->changed);
    waiting->waits = waiting->ready = false;
}

static void waiting_close(struct waiting *waiting)
{
    pl_cond_close(&waiting->changed);
    pl_mutex_close(&waiting->lock);
}

static pl_status wait_until_ready(void *arg)
{
    struct waiting *waiting = arg;
    pl_status status = PL_OK;
    pl_deadline deadline = pl_deadline_in_ms(&waiting->clock, 1000);
    pl_mutex_lock(&waiting->lock);
    waiting->waits = true;
    pl_cond_broadcast(&waiting->changed);
    while (status == PL_OK && !waiting->ready)
        status =
            pl_cond_wait_until(&waiting->changed, &waiting->lock, deadline);
    pl_mutex_unlock(&waiting->lock);
    return status;
}

/* Return holding the lock, with the waiter inside its wait. */
static void lock_when_it_waits(struct waiting *waiting)
{
    pl_deadline never = pl_deadline_in_ms(pl_clock_real(), 60000);
    pl_mutex_lock(&waiting->lock);
    while (!waiting->waits)
        assert_ok(pl_cond_wait_until(&waiting->changed, &waiting->lock, never));
}

static void cond_wait_ends_when_signalled(void **state)
{
    (void)state;
    struct waiting waiting;
    pl_thread *thread;
    waiting_init(&waiting);
    assert_ok(pl_thread_start(&thread, "w", wait_until_ready, &waiting));
    lock_when_it_waits(&waiting);
    waiting.ready = true;
    pl_cond_signal(&waiting.changed);
    pl_mutex_unlock(&waiting.lock);
    assert_ok(pl_thread_join(thread));
    waiting_close(&waiting);
}

static void cond_wait_ends_when_a_fake_clock_passes_the_deadline(void **state)
{
    (void)state;
    struct waiting waiting;
    pl_thread *thread;
    waiting_init(&waiting);
    assert_ok(pl_thread_start(&thread, "w", wait_until_ready, &waiting));
    lock_when_it_waits(&waiting);
    pl_mutex_unlock(&waiting.lock);
    pl_clock_advance(&waiting.clock, 999999999);
    pl_clock_advance(&waiting.clock, 1);
    assert_fails(PL_TIMEOUT, "deadline passed", pl_thread_join(thread));
    waiting_close(&waiting);
}

static void cond_wait_past_the_deadline_returns_at_once(void **state)
{
    (void)state;
    struct waiting waiting;
    waiting_init(&waiting);
    pl_mutex_lock(&waiting.lock);
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), 0);
    assert_fails(PL_TIMEOUT, "deadline passed",
                 pl_cond_wait_until(&waiting.changed, &waiting.lock, deadline));
    pl_mutex_unlock(&waiting.lock);
    waiting_close(&waiting);
}

static void cond_wait_times_out_on_the_real_clock(void **state)
{
    (void)state;
    struct waiting waiting;
    waiting_init(&waiting);
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), 2);
    pl_mutex_lock(&waiting.lock);
    pl_status status = PL_OK;
    while (status == PL_OK)
        status = pl_cond_wait_until(&waiting.changed, &waiting.lock, deadline);
    pl_mutex_unlock(&waiting.lock);
    assert_int_equal(PL_TIMEOUT, status);
    assert_true(pl_deadline_passed(deadline));
    waiting_close(&waiting);
}

#define MOST_ITEMS 40

struct rounds {
    int threads;
    int64_t ran[MOST_ITEMS]; /* plain: the pool must publish them */
};

static void count_item(void *arg, int item, int thread)
{
    struct rounds *rounds = arg;
    /* cmocka's assertions belong to the test's own thread. */
    rounds->ran[item] += thread >= 0 && thread < rounds->threads ? 1 : 1000;
}

static void pool_runs_each_item_once(void **state)
{
    (void)state;
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        struct rounds rounds = { .threads = threads };
        pl_pool *pool;
        assert_ok(pl_pool_new(&pool, threads));
        assert_int_equal(threads, pl_pool_threads(pool));
        for (int round = 1; round <= 300; round++) {
            pl_pool_run(pool, MOST_ITEMS, count_item, &rounds);
            for (int i = 0; i < MOST_ITEMS; i++)
                assert_int_equal(round, rounds.ran[i]);
        }
        pl_pool_free(pool);
    }
}

static void pool_runs_jobs_of_changing_size(void **state)
{
    (void)state;
    struct rounds rounds = { .threads = MOST_THREADS };
    int64_t expected[MOST_ITEMS] = { 0 };
    pl_pool *pool;
    assert_ok(pl_pool_new(&pool, MOST_THREADS));
    for (int round = 0; round < 2000; round++) {
        int items = round * 7 % (MOST_ITEMS + 1); /* none at times */
        pl_pool_run(pool, items, count_item, &rounds);
        for (int i = 0; i < items; i++)
            expected[i]++;
    }
    pl_pool_free(pool);
    assert_memory_equal(expected, rounds.ran, sizeof expected);
}

/* One item lasts far past the spinning time, so that the threads without one
 * fall asleep, and so does the caller if another thread has it. */
static void last_long(void *arg, int item, int thread)
{
    (void)thread;
    struct rounds *rounds = arg;
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), 5);
    while (item == 0 && !pl_deadline_passed(deadline))
        ;
    rounds->ran[item]++;
}

static void pool_wakes_threads_that_fell_asleep(void **state)
{
    (void)state;
    struct rounds rounds = { .threads = 3 };
    pl_pool *pool;
    assert_ok(pl_pool_new(&pool, 3));
    for (int i = 0; i < 5; i++)
        pl_pool_run(pool, 4, last_long, &rounds);
    pl_pool_free(pool);
    for (int i = 0; i < 4; i++)
        assert_int_equal(5, rounds.ran[i]);
}

/* All threads share one core, so most jobs end before the other thread gets
 * a turn. */
static void pool_needs_no_thread_but_the_callers(void **state)
{
    (void)state;
    struct rounds rounds = { .threads = 2 };
    cpu_set_t all, one;
    CPU_ZERO(&one);
    assert_int_equal(0, sched_getaffinity(0, sizeof all, &all));
    for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    assert_int_equal(0, sched_setaffinity(0, sizeof one, &one));
    pl_pool *pool;
    assert_ok(pl_pool_new(&pool, 2)); /* its thread inherits the core */
    for (int i = 0; i < 200; i++)
        pl_pool_run(pool, 2, count_item, &rounds);
    pl_pool_free(pool);
    assert_int_equal(0, sched_setaffinity(0, sizeof all, &all));
    assert_int_equal(200, rounds.ran[0]);
    assert_int_equal(200, rounds.ran[1]);
}

struct meeting {
    atomic_int here;
    atomic_bool met;
};

/* Each of two items waits for the other: on one thread they never meet. */
static void meet(void *arg, int item, int thread)
{
    (void)item, (void)thread;
    struct meeting *meeting = arg;
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), 10000);
    atomic_fetch_add(&meeting->here, 1);
    while (atomic_load(&meeting->here) < 2 && !pl_deadline_passed(deadline))
        ;
    if (atomic_load(&meeting->here) == 2)
        atomic_store(&meeting->met, true);
}

static void pool_runs_two_items_at_once(void **state)
{
    (void)state;
    struct meeting meeting = { 0 };
    pl_pool *pool;
    assert_ok(pl_pool_new(&pool, 2));
    pl_pool_run(pool, 2, meet, &meeting);
    pl_pool_free(pool);
    assert_true(atomic_load(&meeting.met));
}

/* The other thread takes what was started while the caller is busy. */
static void pool_works_alongside_the_caller(void **state)
{
    (void)state;
    struct meeting meeting = { 0 };
    pl_pool *pool;
    assert_ok(pl_pool_new(&pool, 2));
    pl_pool_start(pool, 1, meet, &meeting);
    meet(&meeting, 1, 0);
    pl_pool_finish(pool);
    pl_pool_free(pool);
    assert_true(atomic_load(&meeting.met));
}

/* Finished, or overtaken by a job of one item, of several, or by another that
 * is started, or by the end. */
static void pool_completes_everything_that_was_started(void **state)
{
    (void)state;
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        struct rounds started = { .threads = threads };
        struct rounds other = { .threads = threads };
        pl_pool *pool;
        assert_ok(pl_pool_new(&pool, threads));
        pl_pool_finish(pool); /* nothing */
        for (int round = 0; round < 300; round++) {
            pl_pool_start(pool, MOST_ITEMS, count_item, &started);
            pl_pool_run(pool, round % 3, count_item, &other);
            if (round % 2)
                pl_pool_finish(pool);
        }
        pl_pool_free(pool);
        for (int i = 0; i < MOST_ITEMS; i++)
            assert_int_equal(300, started.ran[i]);
        assert_int_equal(200, other.ran[0]);
        assert_int_equal(100, other.ran[1]);
    }
}

static void pool_that_never_ran_can_be_freed(void **state)
{
    (void)state;
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        pl_pool *pool;
        assert_ok(pl_pool_new(&pool, threads));
        pl_pool_free(pool);
    }
    pl_pool_free(NULL);
}

static void pool_new_survives_each_failed_allocation(void **state)
{
    (void)state;
    pl_pool *pool = NULL;
    assert_survives_failed_allocations(pl_pool_new(&pool, 4),
                                       pl_pool_free(pool));
}

static void thread_cores_are_at_least_one(void **state)
{
    (void)state;
    assert_true(pl_thread_cores() >= 1);
}

UNIT_TESTS(
    cmocka_unit_test(thread_join_carries_the_error_over),
    cmocka_unit_test(thread_join_of_a_success_leaves_the_message),
    cmocka_unit_test(thread_start_survives_each_failed_allocation),
    cmocka_unit_test(cond_wait_ends_when_signalled),
    cmocka_unit_test(cond_wait_ends_when_a_fake_clock_passes_the_deadline),
    cmocka_unit_test(cond_wait_past_the_deadline_returns_at_once),
    cmocka_unit_test(cond_wait_times_out_on_the_real_clock),
    cmocka_unit_test(pool_runs_each_item_once),
    cmocka_unit_test(pool_runs_jobs_of_changing_size),
    cmocka_unit_test(pool_needs_no_thread_but_the_callers),
    cmocka_unit_test(pool_runs_two_items_at_once),
    cmocka_unit_test(pool_works_alongside_the_caller),
    cmocka_unit_test(pool_completes_everything_that_was_started),
    cmocka_unit_test(pool_wakes_threads_that_fell_asleep),
    cmocka_unit_test(pool_that_never_ran_can_be_freed),
    cmocka_unit_test(pool_new_survives_each_failed_allocation),
    cmocka_unit_test(thread_cores_are_at_least_one))
