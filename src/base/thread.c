/* Thin wrappers of mutex, condition and thread, and the fork-join pool,
 * whose design is explained where it begins. */
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

    /* A fake clock cannot wake anyone, so poll it every millisecond. */
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

void pl_cond_pause_until(pl_cond *cond, pl_mutex *mutex, const bool *stop,
                         pl_deadline deadline)
{
    while (!*stop && !pl_deadline_passed(deadline))
        if (pl_cond_wait_until(cond, mutex, deadline) != PL_OK)
            return;
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
 * A ticket, one 64-bit word, names the current job, the number of its items and
 * the next one; an item is taken by raising the last part with a
 * compare-and-swap.  As the counts are in the same word, a thread that is late
 * for a finished job cannot take an item of it.  A thread that holds an item
 * may read `job` and `arg`: they change only when all items are done.
 *
 * Idle threads wait for the ticket's job to change, the caller for `done`; both
 * spin, then sleep on a futex.  `sleepers` tells whether a thread must be
 * woken, so the common case makes no system call.
 *
 * On a busy machine a thread can be preempted while it holds an item, and the
 * caller waits a time slice for 20 us of work.  So a caller that waited far
 * longer than it worked continues alone for a while, longer each time: the cost
 * is at most the help of the threads. */
#define ITEM_BITS 16
#define ITEM_MASK ((uint64_t)0xffff)

#define STALL_NS      200000 /* beyond this and 4 x the own work: a stall */
#define ALONE_LEAST_S 0.01
#define ALONE_MOST_S  1.0

/* A counter that only grows (and may wrap), and its waiting threads. */
typedef struct gate {
    _Atomic uint32_t count;
    _Atomic int sleepers;
} gate;

struct pl_pool {
    int threads;
    pl_pool_job *job;
    void *arg;
    /* Used by the caller only. */
    uint32_t round; /* jobs begun */
    bool started;   /* the last job is not done */
    uint32_t goal;  /* value of `done` when it is */
    uint64_t stall_ticks, least_alone, most_alone; /* the limits, in ticks */
    uint64_t alone_ticks;                          /* for the next stall */
    uint64_t alone_until;                          /* ticks */
    _Atomic bool stopping;
    _Alignas(PL_CACHE_LINE) _Atomic uint64_t ticket; /* round, items, next */
    _Alignas(PL_CACHE_LINE) gate begun;              /* jobs */
    _Alignas(PL_CACHE_LINE) gate done;               /* items of all jobs */
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

/* Return once the gate's count is at least `goal`. */
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

/* The next item of the current job, or -1 when none is left. */
static int take_item(pl_pool *pool)
{
    uint64_t ticket = atomic_load(&pool->ticket);
    for (;;) {
        uint64_t items = ticket >> ITEM_BITS & ITEM_MASK;
        uint64_t next = ticket & ITEM_MASK;
        if (next >= items)
            return -1;
        if (atomic_compare_exchange_weak(&pool->ticket, &ticket, ticket + 1))
            return (int)next;
    }
}

static void run_items(pl_pool *pool, int thread)
{
    for (int item; (item = take_item(pool)) >= 0;) {
        pool->job(pool->arg, item, thread);
        gate_raise(&pool->done);
    }
}

static pl_status worker_main(void *arg)
{
    struct pool_worker *worker = arg;
    pl_pool *pool = worker->pool;
    for (uint32_t begun = 0;;) {
        gate_wait(&pool->begun, begun + 1);
        begun = atomic_load(&pool->begun.count);
        if (atomic_load(&pool->stopping))
            return PL_OK;
        run_items(pool, worker->index);
    }
}

pl_status pl_pool_new(pl_pool **out, int threads)
{
    PL_ASSERT(threads >= 1);
    pl_pool *pool = pl_mem_alloc_aligned(
        1, sizeof *pool + (size_t)threads * sizeof pool->workers[0]);
    PL_TRY(pl_mem_check(pool, 1, sizeof *pool));
    pool->threads = 1;
    double ticks_per_s = 1e9 / pl_ticks_ns();
    pool->stall_ticks = (uint64_t)(STALL_NS * 1e-9 * ticks_per_s);
    pool->least_alone = (uint64_t)(ALONE_LEAST_S * ticks_per_s);
    pool->most_alone = (uint64_t)(ALONE_MOST_S * ticks_per_s);
    pool->alone_ticks = pool->least_alone;
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
    pl_pool_finish(pool);
    atomic_store(&pool->stopping, true);
    gate_raise(&pool->begun);
    for (int t = 1; t < pool->threads; t++)
        PL_ASSERT(pl_thread_join(pool->workers[t - 1].thread) == PL_OK);
    pl_mem_free(pool);
}

int pl_pool_threads(const pl_pool *pool)
{
    return pool->threads;
}

/* The caller worked until `worked` and then waited until now. */
static void judge_wait(pl_pool *pool, uint64_t begin, uint64_t worked)
{
    uint64_t now = pl_ticks_now();
    if (now - worked > 4 * (worked - begin) + pool->stall_ticks) {
        pool->alone_until = now + pool->alone_ticks;
        pool->alone_ticks = 2 * pool->alone_ticks < pool->most_alone
                                ? 2 * pool->alone_ticks
                                : pool->most_alone;
    } else if (pool->alone_ticks > pool->least_alone) {
        pool->alone_ticks -= pool->alone_ticks / 4096; /* forgive slowly */
    }
}

/* Should other threads take items, too? */
static bool has_help(const pl_pool *pool)
{
    return pool->threads > 1 && pl_ticks_now() >= pool->alone_until;
}

void pl_pool_start(pl_pool *pool, int items, pl_pool_job *job, void *arg)
{
    PL_ASSERT(items >= 0 && (uint64_t)items <= ITEM_MASK);
    pl_pool_finish(pool);
    pool->job = job;
    pool->arg = arg;
    pool->round++;
    pool->started = true;
    pool->goal = atomic_load(&pool->done.count) + (uint32_t)items;
    atomic_store(&pool->ticket, (uint64_t)pool->round << 2 * ITEM_BITS |
                                    (uint64_t)items << ITEM_BITS);
    if (has_help(pool))
        gate_raise(&pool->begun);
}

void pl_pool_finish(pl_pool *pool)
{
    if (!pool->started)
        return;
    uint64_t begin = pl_ticks_now();
    run_items(pool, 0);
    uint64_t worked = pl_ticks_now();
    gate_wait(&pool->done, pool->goal);
    judge_wait(pool, begin, worked);
    pool->started = false;
}

void pl_pool_run(pl_pool *pool, int items, pl_pool_job *job, void *arg)
{
    PL_ASSERT(items >= 0 && (uint64_t)items <= ITEM_MASK);
    if (items > 1)
        pl_pool_finish(pool);
    if (items > 1 && has_help(pool)) {
        pl_pool_start(pool, items, job, arg);
        pl_pool_finish(pool);
        return;
    }
    for (int item = 0; item < items; item++)
        job(arg, item, 0);
}

int pl_thread_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 ? (int)cores : 1;
}
