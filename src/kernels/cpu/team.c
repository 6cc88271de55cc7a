/* Runs a job on libgomp's threads, which oneDNN also uses: a second pool would
 * oversubscribe the cores. Threads take items from a shared counter, so which
 * thread runs an item varies, but not what the item computes. */
#include "kernels/cpu/team.h"

#include <stdatomic.h>

/* Part of libgomp, for which oneDNN is built: the calls that a compiler makes
 * for `#pragma omp parallel`.  Called directly, because a compiler with its own
 * OpenMP would add a second set of threads. */
void GOMP_parallel(void (*body)(void *), void *arg, unsigned threads,
                   unsigned flags);
int omp_get_thread_num(void);

typedef struct team {
    pl_pool_job *job;
    void *arg;
    int items;
    atomic_int next;
} team;

static void work(void *arg)
{
    team *t = arg;
    int thread = omp_get_thread_num(), item;
    while ((item = atomic_fetch_add(&t->next, 1)) < t->items)
        t->job(t->arg, item, thread);
}

void pl_team_run(int threads, int items, pl_pool_job *job, void *arg)
{
    if (threads <= 1 || items <= 1) {
        for (int i = 0; i < items; i++)
            job(arg, i, 0);
        return;
    }
    team t = { .job = job, .arg = arg, .items = items };
    GOMP_parallel(work, &t, (unsigned)threads, 0);
}
