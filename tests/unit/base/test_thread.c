#include "base/thread.h"

#include "support/unit.h"

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

/* A waiter and whoever wakes it. */
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

struct rounds {
    pl_pool *pool;
    int threads;
    int barriers; /* in one job */
    int64_t shared[2][MOST_THREADS];
    int64_t wrong[MOST_THREADS]; /* each thread counts its own */
    int64_t ran[MOST_THREADS];
};

/* Between two barriers each thread writes its cell of one row and reads all
 * cells of the other, so a barrier that lets one through early is seen (by
 * the race detector, too). */
static void exchange(void *arg, int thread)
{
    struct rounds *rounds = arg;
    rounds->ran[thread]++;
    for (int b = 0; b < rounds->barriers; b++) {
        int row = b & 1;
        int64_t mark = rounds->ran[thread] * 100 + b;
        rounds->shared[row][thread] = mark;
        pl_pool_barrier(rounds->pool);
        for (int t = 0; t < rounds->threads; t++)
            rounds->wrong[thread] += rounds->shared[row][t] != mark;
    }
}

static void run_rounds(int threads, int barriers, int count)
{
    struct rounds rounds = { .threads = threads, .barriers = barriers };
    assert_ok(pl_pool_new(&rounds.pool, threads));
    assert_int_equal(threads, pl_pool_threads(rounds.pool));
    for (int i = 0; i < count; i++)
        pl_pool_run(rounds.pool, exchange, &rounds);
    pl_pool_free(rounds.pool);
    for (int t = 0; t < threads; t++) {
        assert_int_equal(count, rounds.ran[t]);
        assert_int_equal(0, rounds.wrong[t]);
    }
}

static void pool_runs_each_job_once_on_every_thread(void **state)
{
    (void)state;
    for (int threads = 1; threads <= MOST_THREADS; threads++)
        run_rounds(threads, 0, 500);
}

static void pool_barrier_holds_until_all_are_there(void **state)
{
    (void)state;
    for (int threads = 1; threads <= MOST_THREADS; threads++)
        for (int barriers = 1; barriers <= 4; barriers++)
            run_rounds(threads, barriers, 100);
}

static void sum_parts(void *arg, int thread)
{
    int64_t *parts = arg;
    for (int64_t i = thread; i < 1000; i += MOST_THREADS)
        parts[thread] += i;
}

static void pool_run_returns_after_all_have_written(void **state)
{
    (void)state;
    pl_pool *pool;
    assert_ok(pl_pool_new(&pool, MOST_THREADS));
    for (int round = 0; round < 200; round++) {
        int64_t parts[MOST_THREADS] = { 0 }; /* plain: run must publish them */
        int64_t sum = 0;
        pl_pool_run(pool, sum_parts, parts);
        for (int t = 0; t < MOST_THREADS; t++)
            sum += parts[t];
        assert_int_equal(999 * 1000 / 2, sum);
    }
    pl_pool_free(pool);
}

/* Thread 0 stays in the job until a deadline far past the spinning time, so
 * that the others fall asleep at the barrier and must be woken. */
static void keep_others_waiting(void *arg, int thread)
{
    struct rounds *rounds = arg;
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), 5);
    while (thread == 0 && !pl_deadline_passed(deadline))
        ;
    pl_pool_barrier(rounds->pool);
    rounds->ran[thread]++;
}

static void pool_wakes_threads_that_fell_asleep(void **state)
{
    (void)state;
    struct rounds rounds = { .threads = 3 };
    assert_ok(pl_pool_new(&rounds.pool, 3));
    for (int i = 0; i < 5; i++)
        pl_pool_run(rounds.pool, keep_others_waiting, &rounds);
    pl_pool_free(rounds.pool);
    for (int t = 0; t < 3; t++)
        assert_int_equal(5, rounds.ran[t]);
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
    cmocka_unit_test(pool_runs_each_job_once_on_every_thread),
    cmocka_unit_test(pool_barrier_holds_until_all_are_there),
    cmocka_unit_test(pool_run_returns_after_all_have_written),
    cmocka_unit_test(pool_wakes_threads_that_fell_asleep),
    cmocka_unit_test(pool_that_never_ran_can_be_freed),
    cmocka_unit_test(pool_new_survives_each_failed_allocation),
    cmocka_unit_test(thread_cores_are_at_least_one))
