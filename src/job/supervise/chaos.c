/* Deliberate faults: decides when the next one occurs, which task it hits and
 * how, from the seed alone. */
#include "job/supervise/chaos.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"

#include <math.h>
#include <signal.h>

#define FREEZE_MS 10000

/* The random numbers of each fault. */
enum {
    GAP,
    WHOM,
    HOW,
    HOW_LONG,
    DRAWS,
};

typedef struct victim {
    bool hit;        /* this process of the task was hit */
    int64_t thaw_ns; /* 0: not frozen, INT64_MAX: killed */
} victim;

struct pl_chaos {
    pl_chaos_opts opts;
    uint64_t key;
    uint64_t faults;
    int64_t left_ns; /* until the next fault */
    int64_t last_ns; /* when time was last counted; 0: not yet */
    victim *victims; /* [tasks] */
};

static uint64_t counter(const pl_chaos *chaos, int what)
{
    return chaos->faults * DRAWS + (uint64_t)what;
}

static void draw_gap(pl_chaos *chaos)
{
    double uniform = pl_rng_uniform(chaos->key, counter(chaos, GAP));
    chaos->left_ns = (int64_t)(-log1p(-uniform) / chaos->opts.rate * 1e9);
}

pl_status pl_chaos_new(pl_chaos **out, const pl_chaos_opts *opts)
{
    pl_chaos *chaos;
    PL_ASSERT(opts->rate > 0 && opts->tasks > 0);
    PL_TRY(PL_NEW(chaos, 1));
    chaos->opts = *opts;
    if (chaos->opts.freeze_ms <= 0)
        chaos->opts.freeze_ms = FREEZE_MS;
    chaos->key = pl_rng_key_text(opts->seed, "chaos");
    draw_gap(chaos);
    pl_status status = PL_NEW(chaos->victims, (size_t)opts->tasks);
    if (status != PL_OK) {
        pl_chaos_free(chaos);
        return status;
    }
    *out = chaos;
    return PL_OK;
}

void pl_chaos_free(pl_chaos *chaos)
{
    if (chaos == NULL)
        return;
    pl_mem_free(chaos->victims);
    pl_mem_free(chaos);
}

int pl_chaos_due(pl_chaos *chaos, const pl_job_task *tasks, bool training,
                 int64_t now_ns)
{
    int count = chaos->opts.tasks;
    if (training && chaos->last_ns > 0)
        chaos->left_ns -= now_ns - chaos->last_ns;
    chaos->last_ns = training ? now_ns : 0;
    if (!training || chaos->left_ns > 0)
        return -1;
    uint32_t first =
        pl_rng_below(chaos->key, counter(chaos, WHOM), (uint32_t)count);
    for (int k = 0; k < count; k++) {
        int i = ((int)first + k) % count;
        if (tasks[i].pid > 0 && chaos->victims[i].thaw_ns == 0)
            return i;
    }
    return -1;
}

void pl_chaos_hit(pl_chaos *chaos, const pl_job_task *tasks, int task,
                  int64_t now_ns)
{
    const pl_job_task *seen = &tasks[task];
    victim *v = &chaos->victims[task];
    const char *role = pl_role_text(seen->task.role);
    bool freeze = pl_rng_uniform(chaos->key, counter(chaos, HOW)) < 0.5;
    double part = pl_rng_uniform(chaos->key, counter(chaos, HOW_LONG));
    int64_t ms = 1 + (int64_t)(part * (double)chaos->opts.freeze_ms);
    v->hit = true;
    chaos->faults++;
    if (freeze) {
        v->thaw_ns = now_ns + ms * 1000000;
        pl_log(PL_LOG_WARN, "chaos: fault %lld, freeze %s %d for %.1f s",
               (long long)chaos->faults, role, seen->task.index,
               (double)ms * 1e-3);
    } else {
        v->thaw_ns = INT64_MAX;
        pl_log(PL_LOG_WARN, "chaos: fault %lld, kill %s %d",
               (long long)chaos->faults, role, seen->task.index);
    }
    kill(seen->pid, freeze ? SIGSTOP : SIGKILL);
    draw_gap(chaos);
}

void pl_chaos_thaw(pl_chaos *chaos, const pl_job_task *tasks, bool all,
                   int64_t now_ns)
{
    for (int i = 0; i < chaos->opts.tasks; i++) {
        victim *v = &chaos->victims[i];
        if (v->thaw_ns == 0 || (!all && now_ns < v->thaw_ns))
            continue;
        v->thaw_ns = 0;
        if (tasks[i].pid > 0)
            kill(tasks[i].pid, SIGCONT);
    }
}

bool pl_chaos_ended(pl_chaos *chaos, int task)
{
    bool hit = chaos->victims[task].hit;
    chaos->victims[task] = (victim) { 0 };
    return hit;
}

int64_t pl_chaos_faults(const pl_chaos *chaos)
{
    return (int64_t)chaos->faults;
}
