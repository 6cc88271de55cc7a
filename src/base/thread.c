#include "base/thread.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/mem.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Turns of about 20-40 ns each a waiting thread spins before it sleeps. */
#define SPIN_TURNS 2000

void pl_mutex_init(pl_mutex *mutex)
{
    PL_ASSERT(pthread_mutex_init(mutex, NULL) == 0);
}

void pl_mutex_close(pl_mutex *mutex)
{
    PL_ASSERT(pthread_mutex_destroy(mutex) == 0);
}

void pl_mutex_lock(pl_mutex *mutex)
{
    PL_ASSERT(pthread_mutex_lock(mutex) == 0);
}

void pl_mutex_unlock(pl_mutex *mutex)
{
    PL_ASSERT(pthread_mutex_unlock(mutex) == 0);
}

void pl_cond_init(pl_cond *cond)
{
    pthread_condattr_t attr;
    PL_ASSERT(pthread_condattr_init(&attr) == 0);
    PL_ASSERT(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    PL_ASSERT(pthread_cond_init(cond, &attr) == 0);
    PL_ASSERT(pthread_condattr_destroy(&attr) == 0);
}

void pl_cond_close(pl_cond *cond)
{
    PL_ASSERT(pthread_cond_destroy(cond) == 0);
}

void pl_cond_signal(pl_cond *cond)
{
    PL_ASSERT(pthread_cond_signal(cond) == 0);
}

void pl_cond_broadcast(pl_cond *cond)
{
    PL_ASSERT(pthread_cond_broadcast(cond) == 0);
}

pl_status pl_cond_wait_until(pl_cond *cond, pl_mutex *mutex,
                             pl_deadline deadline)
{
    if (pl_deadline_passed(deadline))
        return PL_FAIL(PL_TIMEOUT, "deadline passed");

    /* A fake clock cannot wake anyone, so look at it every millisecond. */
    int64_t until_ns = deadline.at_ns;
    if (deadline.clock->fake)
        until_ns = pl_clock_now_ns(pl_clock_real()) + 1000000;
    struct timespec until = { until_ns / 1000000000, until_ns % 1000000000 };
    int error = pthread_cond_timedwait(cond, mutex, &until);
    PL_ASSERT(error == 0 || error == ETIMEDOUT);
    if (error == ETIMEDOUT && pl_deadline_passed(deadline))
        return PL_FAIL(PL_TIMEOUT, "deadline passed");
    return PL_OK;
}

struct pl_thread {
    pthread_t handle;
    pl_thread_main *main;
    void *arg;
    pl_error error; /* written by the thread, read after the join */
};

static void *thread_entry(void *arg)
{
    pl_thread *thread = arg;
    pl_error_save(&thread->error, thread->main(thread->arg));
    return NULL;
}

pl_status pl_thread_start(pl_thread **out, const char *name,
                          pl_thread_main *main, void *arg)
{
    pl_thread *thread;
    PL_TRY(PL_NEW(thread, 1));
    thread->main = main;
    thread->arg = arg;
    int error = pthread_create(&thread->handle, NULL, thread_entry, thread);
    if (error != 0) {
        pl_mem_free(thread);
        return PL_FAIL(PL_NOMEM, "start thread %s: %s", name, strerror(error));
    }
    pthread_setname_np(thread->handle, name); /* for debuggers only */
    *out = thread;
    return PL_OK;
}

pl_status pl_thread_join(pl_thread *thread)
{
    if (thread == NULL)
        return PL_OK;
    PL_ASSERT(pthread_join(thread->handle, NULL) == 0);
    pl_status status = pl_error_raise(&thread->error);
    pl_mem_free(thread);
    return status;
}

/* Design of the pool.
 *
 * Two gates, counters that only grow (and may wrap), each waited on by
 * spinning, then by futex: `round` is raised by the driver to start a job,
 * `passed` by the last thread that arrives at a barrier.  The end of a job is
 * a barrier like any other.  `sleepers` says whether anyone must be woken, so
 * that the common case makes no system call. */
typedef struct gate {
    _Atomic uint32_t count;
    _Atomic int sleepers;
} gate;

struct pl_pool {
    int threads;
    pl_pool_job *job;
    void *arg;
    _Atomic bool stopping;
    _Alignas(PL_CACHE_LINE) gate round;
    _Alignas(PL_CACHE_LINE) gate passed;
    _Atomic int arrived; /* threads at the barrier not yet passed */
    struct pool_worker {
        pl_pool *pool;
        pl_thread *thread;
        int index;
    } workers[]; /* threads - 1 of them */
};

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void gate_raise(gate *g)
{
    atomic_fetch_add(&g->count, 1);
    if (atomic_load(&g->sleepers) > 0)
        syscall(SYS_futex, &g->count, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL,
                0);
}

/* Return once the gate's count is at least `goal` (counts may wrap). */
static void gate_wait(gate *g, uint32_t goal)
{
    for (int turn = 0; turn < SPIN_TURNS; turn++) {
        if ((int32_t)(atomic_load_explicit(&g->count, memory_order_acquire) -
                      goal) >= 0)
            return;
        relax();
    }
    atomic_fetch_add(&g->sleepers, 1);
    for (;;) {
        uint32_t count = atomic_load(&g->count);
        if ((int32_t)(count - goal) >= 0)
            break;
        syscall(SYS_futex, &g->count, FUTEX_WAIT_PRIVATE, count, NULL, NULL, 0);
    }
    atomic_fetch_sub(&g->sleepers, 1);
}

static pl_status worker_main(void *arg)
{
    struct pool_worker *worker = arg;
    pl_pool *pool = worker->pool;
    for (uint32_t round = 1;; round++) {
        gate_wait(&pool->round, round);
        if (atomic_load(&pool->stopping))
            return PL_OK;
        pool->job(pool->arg, worker->index);
        pl_pool_barrier(pool);
    }
}

pl_status pl_pool_new(pl_pool **out, int threads)
{
    PL_ASSERT(threads >= 1);
    pl_pool *pool = pl_mem_alloc_aligned(
        1, sizeof *pool + (size_t)threads * sizeof pool->workers[0]);
    PL_TRY(pl_mem_check(pool, 1, sizeof *pool));
    pool->threads = 1;
    for (int t = 1; t < threads; t++) {
        struct pool_worker *worker = &pool->workers[t - 1];
        worker->pool = pool;
        worker->index = t;
        pl_status status =
            pl_thread_start(&worker->thread, "pl-pool", worker_main, worker);
        if (status != PL_OK) {
            pl_pool_free(pool);
            return pl_context(status, "thread pool of %d", threads);
        }
        pool->threads = t + 1;
    }
    *out = pool;
    return PL_OK;
}

void pl_pool_free(pl_pool *pool)
{
    if (pool == NULL)
        return;
    atomic_store(&pool->stopping, true);
    gate_raise(&pool->round);
    for (int t = 1; t < pool->threads; t++)
        PL_ASSERT(pl_thread_join(pool->workers[t - 1].thread) == PL_OK);
    pl_mem_free(pool);
}

int pl_pool_threads(const pl_pool *pool)
{
    return pool->threads;
}

void pl_pool_run(pl_pool *pool, pl_pool_job *job, void *arg)
{
    if (pool->threads == 1) {
        job(arg, 0);
        return;
    }
    pool->job = job;
    pool->arg = arg;
    gate_raise(&pool->round);
    job(arg, 0);
    pl_pool_barrier(pool);
}

void pl_pool_barrier(pl_pool *pool)
{
    if (pool->threads == 1)
        return;
    uint32_t passed = atomic_load(&pool->passed.count);
    if (atomic_fetch_add(&pool->arrived, 1) == pool->threads - 1) {
        atomic_store(&pool->arrived, 0);
        gate_raise(&pool->passed);
    } else {
        gate_wait(&pool->passed, passed + 1);
    }
}

int pl_thread_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 ? (int)cores : 1;
}
