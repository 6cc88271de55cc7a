/* A process of a simulated worker: joins, makes steps with gradients that can
 * be told apart, and ends, through pl_allreduce_sync; and the ledger that
 * checks the result.
 *
 * It runs on a stack of its own.  Where the engine `ring` would sleep until the
 * core has what is waited for, it returns to the scheduler. */
#include "sim/sim_ring_priv.h"

#include "base/mem.h"
#include "base/rng.h"
#include "job/member/member_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACK      ((size_t)256 << 10)
#define SAVE_EVERY 3

/* --- the ledger ------------------------------------------------------- */

/* Whole numbers: sums are exact in any order.  The first float names the
 * worker. */
static float gradient_of(int32_t worker, int64_t step, int64_t i)
{
    if (i == 0)
        return (float)(1 << worker);
    uint64_t key = pl_rng_key((uint64_t)step, (uint64_t)worker);
    return (float)pl_rng_below(key, (uint64_t)i, 15) - 7;
}

static int ones(uint32_t set)
{
    int count = 0;
    for (; set != 0; set &= set - 1)
        count++;
    return count;
}

/* S1: which workers made the step, and that all of it is theirs. */
static void check_step(ring_node *n, int64_t step, int32_t ranks)
{
    ring_sim *sim = n->sim;
    const float *before = sim->steps[step - 1].params;
    const float *params = pl_params_block(n->params);
    uint32_t set = (uint32_t)(before[0] - params[0]);
    if ((set & 1) == 0 ||
        (ranks > 0 && ((set >> n->worker & 1) == 0 || ones(set) != ranks)))
        ring_broken(sim, "S1: worker %d made step %lld with workers %x of %d",
                    n->worker, (long long)step, set, ranks);
    for (int64_t i = 0; i < sim->floats; i++) {
        float expected = before[i];
        for (int32_t w = 0; w < sim->workers; w++)
            if ((set >> w & 1) != 0)
                expected -= gradient_of(w, step, i);
        if (expected != params[i] &&
            ring_broken(sim, "S1: float %lld of step %lld at worker %d",
                        (long long)i, (long long)step, n->worker))
            return;
    }
}

static bool equals(const ring_node *n, int64_t step)
{
    return memcmp(n->sim->steps[step].params, pl_params_block(n->params),
                  (size_t)n->sim->floats * sizeof(float)) == 0;
}

/* Numbers restart when all processes of a job are new: later processes of the
 * chief come first. */
static uint64_t generation_of(const ring_node *n)
{
    const pl_membership *m = n->core->membership;
    uint32_t chief =
        n->worker == 0 ? m->opts.incarnation : m->coordinator_incarnation;
    return (uint64_t)chief << 32 | m->generation;
}

static void record(const ring_node *n, int64_t step)
{
    ring_step *noted = &n->sim->steps[step];
    noted->known = true;
    noted->generation = generation_of(n);
    memcpy(noted->params, pl_params_block(n->params),
           (size_t)n->sim->floats * sizeof(float));
}

/* A worker that was cut off may still complete a step of a generation that is
 * over elsewhere; it gets the chief's parameters when it joins again. */
static void note_step(ring_node *n, int64_t step)
{
    ring_sim *sim = n->sim;
    ring_step *noted = &sim->steps[step];
    uint64_t generation = generation_of(n);
    if (generation < sim->generation)
        return;
    if (noted->known && noted->generation == generation) {
        if (!equals(n, step))
            ring_broken(sim, "S2: step %lld at worker %d differs",
                        (long long)step, n->worker);
        return;
    }
    check_step(n, step, pl_ring_core_ranks(n->core).count);
    record(n, step);
}

/* The chief may have made the update of a step and then learned that the
 * generation is over: the step is first seen when all join again.  Steps beyond
 * the chief's are void: they are made again. */
static void note_join(ring_node *n, int64_t step)
{
    ring_sim *sim = n->sim;
    if (generation_of(n) < sim->generation)
        return;
    bool unseen = step > 0 && step <= RING_STEPS && !sim->steps[step].known &&
                  sim->steps[step - 1].known;
    if (unseen) {
        check_step(n, step, 0);
        record(n, step);
    }
    if (step < 0 || step > RING_STEPS || !sim->steps[step].known ||
        !equals(n, step))
        ring_broken(sim, "S3: worker %d joined at step %lld", n->worker,
                    (long long)step);
    if (n->worker != 0)
        return;
    sim->generation = generation_of(n);
    for (int64_t s = step + 1; s <= RING_STEPS; s++)
        if (sim->steps[s].generation < sim->generation)
            sim->steps[s].known = false;
}

/* --- waiting ---------------------------------------------------------- */

static pl_status outcome(const ring_node *n)
{
    if (n->dying)
        return PL_FAIL(PL_CLOSED, "killed");
    return pl_ring_core_outcome(n->core);
}

static pl_status await(ring_node *n, bool (*test)(ring_node *n), bool waiting)
{
    pl_status status = outcome(n);
    if (waiting)
        pl_ring_core_waiting(n->core, true);
    while (status == PL_OK && !test(n)) {
        n->awaits = test;
        swapcontext(&n->context, &n->sim->scheduler);
        n->awaits = NULL;
        status = outcome(n);
    }
    if (waiting)
        pl_ring_core_waiting(n->core, false);
    return status;
}

static bool is_formed(ring_node *n)
{
    return pl_ring_core_formed(n->core);
}

static bool is_summed(ring_node *n)
{
    return pl_ring_core_summed(n->core, n->ticket);
}

static bool is_quiet(ring_node *n)
{
    return pl_ring_core_is_quiet(n->core);
}

static bool is_exchanged(ring_node *n)
{
    return pl_ring_core_exchanged(n->core);
}

static bool is_time(ring_node *n)
{
    return n->sim->now_ns >= n->wake_ns;
}

/* --- the table -------------------------------------------------------- */

static pl_status join(pl_collective *c, pl_ranks *out)
{
    ring_node *n = (ring_node *)c;
    if (!n->dying)
        pl_ring_core_join(n->core, ring_time(n));
    PL_TRY(await(n, is_formed, false));
    *out = pl_ring_core_ranks(n->core);
    return PL_OK;
}

static float *memory(pl_collective *c)
{
    return ((ring_node *)c)->memory;
}

static pl_status start(pl_collective *c, const pl_sum_range *range,
                       int32_t *ticket)
{
    ring_node *n = (ring_node *)c;
    PL_TRY(outcome(n));
    *ticket = pl_ring_core_start(n->core, range);
    return PL_OK;
}

static pl_status wait_sum(pl_collective *c, int32_t ticket,
                          pl_deadline deadline)
{
    (void)deadline;
    ring_node *n = (ring_node *)c;
    n->ticket = ticket;
    return await(n, is_summed, true);
}

static pl_status quiet(pl_collective *c, pl_deadline deadline)
{
    (void)deadline;
    ring_node *n = (ring_node *)c;
    PL_TRY(await(n, is_quiet, true));
    pl_ring_core_quiet(n->core);
    return PL_OK;
}

static pl_status offer(pl_collective *c, const void *status, size_t bytes,
                       pl_combine *combine)
{
    ring_node *n = (ring_node *)c;
    PL_TRY(outcome(n));
    pl_ring_core_offer(n->core, status, bytes, combine);
    return PL_OK;
}

static pl_status exchange(pl_collective *c, void *out, pl_deadline deadline)
{
    (void)deadline;
    ring_node *n = (ring_node *)c;
    PL_TRY(await(n, is_exchanged, true));
    pl_ring_core_exchange(n->core, out);
    return PL_OK;
}

static void progress(pl_collective *c)
{
    pl_ring_core_progress(((ring_node *)c)->core);
}

static pl_collective_view look(pl_collective *c)
{
    return (pl_collective_view) {
        .restarts = pl_ring_core_restarts(((ring_node *)c)->core),
    };
}

static const pl_collective_ops ops = {
    .name = "simulated ring",
    .ordered = true,
    .join = join,
    .memory = memory,
    .start = start,
    .wait = wait_sum,
    .quiet = quiet,
    .offer = offer,
    .exchange = exchange,
    .progress = progress,
    .look = look,
};

/* --- the process ------------------------------------------------------ */

static pl_status make_step(ring_node *n, int64_t step, pl_commit *out)
{
    pl_sync *sync = pl_allreduce_sync_base(n->sync);
    n->wake_ns = n->sim->now_ns + n->compute_ns;
    PL_TRY(await(n, is_time, false));
    for (int64_t i = 0; i < n->sim->floats; i++)
        n->memory[i] = gradient_of(n->worker, step, i);
    PL_TRY(sync->ops->need(sync, 0, NULL));
    PL_TRY(sync->ops->ready(sync, 0, n->memory, NULL));
    return sync->ops->commit(sync, out);
}

/* The chief's checkpoint: the parameters of this step are in the ledger. */
static void save(ring_node *n, int64_t step)
{
    if (n->worker != 0 || step % SAVE_EVERY != 0)
        return;
    n->sim->saved = step;
    n->sim->result->saves++;
}

static pl_status train(ring_node *n, pl_standing *at)
{
    pl_sync *sync = pl_allreduce_sync_base(n->sync);
    PL_TRY(sync->ops->join(sync, at));
    note_join(n, at->step);
    while (at->step < RING_STEPS) {
        pl_commit made = { 0 };
        PL_TRY(make_step(n, at->step + 1, &made));
        if (made.dropped || made.step != at->step + 1)
            ring_broken(n->sim, "S1: worker %d lost a gradient of step %lld",
                        n->worker, (long long)made.step);
        at->step = made.step;
        note_step(n, at->step);
        save(n, at->step);
        if (n->worker == 0)
            n->sim->result->steps++;
    }
    return sync->ops->finish(sync);
}

static void run(ring_node *n)
{
    pl_standing at = { .step = n->worker == 0 ? n->sim->saved : 0 };
    pl_status status;
    do
        status = train(n, &at);
    while (status == PL_ROLLED);
    n->status = status;
    snprintf(n->why, sizeof n->why, "%s",
             status == PL_OK ? "" : pl_error_message());
    n->ended = !n->dying;
    n->runs = false;
    swapcontext(&n->context, &n->sim->scheduler);
    abort(); /* not resumed */
}

static void enter(unsigned high, unsigned low)
{
    run((ring_node *)(uintptr_t)((uint64_t)high << 32 | low));
}

static void release(ring_node *n)
{
    if (n->sync != NULL) {
        pl_sync *sync = pl_allreduce_sync_base(n->sync);
        sync->ops->free(sync);
    }
    pl_ring_core_free(n->core);
    pl_optim_free(n->optim);
    pl_params_free(n->params);
    pl_mem_free(n->memory);
    free(n->stack);
    n->sync = NULL;
    n->core = NULL;
    n->optim = NULL;
    n->params = NULL;
    n->memory = NULL;
    n->stack = NULL;
}

static pl_status build(ring_node *n)
{
    ring_sim *sim = n->sim;
    const pl_kernels *kernels = pl_kernels_best();
    PL_TRY(pl_params_new(&n->params));
    PL_TRY(pl_params_add(n->params, "w",
                         (pl_shape) { .rank = 1, .dim = { sim->floats } }));
    PL_TRY(pl_params_seal(n->params));
    int64_t floats = pl_params_block_count(n->params);
    if (n->worker == 0)
        memcpy(pl_params_block(n->params), sim->steps[sim->saved].params,
               (size_t)sim->floats * sizeof(float));
    PL_TRY(pl_optim_new(&n->optim, &(pl_optim_opts) { .name = "sgd" },
                        n->params, kernels));
    PL_TRY(PL_NEW_ALIGNED(n->memory, (size_t)floats));
    PL_TRY(pl_ring_core_new(&n->core, &(pl_ring_core_opts) {
                                          .worker = n->worker,
                                          .workers = sim->workers,
                                          .address = sim->address,
                                          .floats = floats,
                                          .memory = n->memory,
                                          .incarnation = ++sim->lives,
                                          .on_loss = sim->on_loss,
                                          .heartbeat_ms = 1000,
                                          .join_ms = 8000,
                                          .rejoin_ms = 6000,
                                          .kernels = kernels,
                                          .ops = &ring_net_ops,
                                          .context = n,
                                      }));
    return pl_allreduce_sync_new(&n->sync, &(pl_allreduce_sync_opts) {
                                               .collective = &n->base,
                                               .worker = n->worker,
                                               .workers = sim->workers,
                                               .sum = true,
                                               .bucket_bytes = 256,
                                               .end_step = RING_STEPS,
                                               .params = n->params,
                                               .optim = n->optim,
                                               .schedule = &sim->schedule,
                                               .pool = sim->pool,
                                           });
}

pl_status ring_node_start(ring_node *n)
{
    release(n);
    n->base.ops = &ops;
    n->process++;
    n->ended = n->dying = false;
    n->frozen_ns = n->restart_ns = 0;
    n->link = -1;
    PL_TRY(build(n));
    n->stack = malloc(STACK);
    if (n->stack == NULL)
        return PL_FAIL(PL_NOMEM, "no memory for a stack");
    getcontext(&n->context);
    n->context.uc_stack.ss_sp = n->stack;
    n->context.uc_stack.ss_size = STACK;
    uint64_t at = (uint64_t)(uintptr_t)n;
    makecontext(&n->context, (void (*)(void))enter, 2, (unsigned)(at >> 32),
                (unsigned)at);
    n->runs = true;
    swapcontext(&n->sim->scheduler, &n->context);
    return PL_OK;
}

void ring_node_kill(ring_node *n)
{
    if (n->runs) {
        n->dying = true;
        swapcontext(&n->sim->scheduler, &n->context); /* to its end */
    }
    release(n);
}

void ring_node_resume(ring_node *n)
{
    while (n->runs && n->frozen_ns <= n->sim->now_ns && n->awaits != NULL &&
           (pl_ring_core_outcome(n->core) != PL_OK || n->awaits(n)))
        swapcontext(&n->sim->scheduler, &n->context);
}
