/* thread.h - mutex, condition, thread and fork-join pool.
 *
 * A pool runs the items of a job on its threads and waits for the items, not
 * for the threads: any thread that is awake takes the next item.  The caller is
 * thread 0, so a job completes even when no other thread gets to run.  Between
 * two steps of a small model only microseconds pass, so idle threads spin for a
 * short while before they sleep.
 *
 * Threads: mutex and condition as usual; a pool is driven by one thread. */
#ifndef PL_BASE_THREAD_H
#define PL_BASE_THREAD_H

#include "base/clock.h"
#include "paceline/base.h"

#include <pthread.h>

typedef pthread_mutex_t pl_mutex;
typedef pthread_cond_t pl_cond;

void pl_mutex_init(pl_mutex *mutex);
void pl_mutex_close(pl_mutex *mutex);
void pl_mutex_lock(pl_mutex *mutex);
void pl_mutex_unlock(pl_mutex *mutex);

void pl_cond_init(pl_cond *cond);
void pl_cond_close(pl_cond *cond);
void pl_cond_signal(pl_cond *cond);
void pl_cond_broadcast(pl_cond *cond);

/* Wait until signalled, or PL_TIMEOUT at the deadline.  May wake early: loop
 * on the condition. */
pl_status pl_cond_wait_until(pl_cond *cond, pl_mutex *mutex,
                             pl_deadline deadline) PL_MUST_CHECK;
/* Wait until the deadline or until *stop, which is guarded by the mutex. */
void pl_cond_pause_until(pl_cond *cond, pl_mutex *mutex, const bool *stop,
                         pl_deadline deadline);

typedef struct pl_thread pl_thread;
typedef pl_status pl_thread_main(void *arg);

/* Start a thread; the caller must join it. */
pl_status pl_thread_start(pl_thread **out, const char *name,
                          pl_thread_main *main, void *arg) PL_MUST_CHECK;

/* Wait for the end; the thread's status and message become the caller's.
 * NULL is fine. */
pl_status pl_thread_join(pl_thread *thread) PL_MUST_CHECK;

typedef struct pl_pool pl_pool;
/* One item of a job, on thread 0 .. threads-1. */
typedef void pl_pool_job(void *arg, int item, int thread);

/* threads >= 1; the caller counts as one. */
pl_status pl_pool_new(pl_pool **out, int threads) PL_MUST_CHECK;
void pl_pool_free(pl_pool *pool); /* NULL is fine */
int pl_pool_threads(const pl_pool *pool);

/* Run job(arg, i, thread) for i = 0 .. items-1 (at most 65535), each once, on
 * whichever thread is free; return when all are done. */
void pl_pool_run(pl_pool *pool, int items, pl_pool_job *job, void *arg);

/* The same while the caller does something else: the other threads take items
 * until finish() runs the rest and waits.  A job of several items that is run
 * meanwhile finishes this one first.  finish() without a started job is
 * fine. */
void pl_pool_start(pl_pool *pool, int items, pl_pool_job *job, void *arg);
void pl_pool_finish(pl_pool *pool);

/* Cores this process may use. */
int pl_thread_cores(void);

#endif
