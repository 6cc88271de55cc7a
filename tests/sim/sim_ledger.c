/* Which gradients a server's parameters are the sum of.
 *
 * After every event the change of a server's parameters is explained.  In
 * async and ssp the first elements of each part have one place a worker, and
 * push n of a worker adds n there and other whole numbers everywhere else: so
 * the change names the gradients, and is compared with their sum, exactly:
 * whole gradients (dense D1), each at most once (request R2), of this
 * generation (core P2), none that its worker was told was dropped (async I2).
 * When a worker learns that its gradient was applied, all servers have it
 * (async I3).  All parts of a checkpoint, and all servers at the end, have the
 * same set, with as many gradients of each share as is counted, each position
 * of it once (async I1, I4, share H2).
 *
 * In sync the same places tell whose gradients made a step; what these are
 * follows from the parameters before, and the step is made again, from the same
 * workers on all servers (sync S1). */
#include "base/rng.h"
#include "sim/sim_priv.h"

#include <stdio.h>
#include <string.h>

static bool has(const sim_set *set, int32_t worker, int32_t n)
{
    return (set->bits[worker][n / 8] >> n % 8 & 1) != 0;
}

static void put(sim_set *set, int32_t worker, int32_t n)
{
    set->bits[worker][n / 8] |= (uint8_t)(1u << n % 8);
}

pl_status sim_optim(const sim *s, pl_optim **out, const pl_params *shape)
{
    return pl_optim_new(out, &(pl_optim_opts) { .name = s->optim }, shape,
                        pl_kernels_best());
}

/* Element `i` of the block: 1 to 255. */
static float stamp(uint64_t key, int64_t i)
{
    return (float)(1 + pl_rng_below(key, (uint64_t)i, 255));
}

static uint64_t stamp_key(const sim *s, int32_t worker, int32_t n)
{
    return pl_rng_key(pl_rng_key(pl_rng_key(s->key, 78), (uint64_t)worker),
                      (uint64_t)n);
}

/* What push `n`, which is this one, adds to element `i`. */
static float part_of(const sim *s, int32_t worker, int32_t n, uint64_t key,
                     int64_t i)
{
    int32_t place = sim_counter(s, i);
    if (place >= 0)
        return place == worker ? (float)n : 0.0f;
    sim_batch batch = s->worker[worker].pushes[n].batch;
    return sim_has_key(s, worker, batch, i) ? stamp(key, i) : 0.0f;
}

void sim_stamp(const sim *s, int32_t worker, int32_t n, float *grad)
{
    uint64_t key = stamp_key(s, worker, n);
    for (int64_t i = 0; i < s->floats; i++)
        grad[i] = -part_of(s, worker, n, key, i);
}

/* Gradient `n` of a worker is in the parameters of a server now. */
static void take_in(sim *s, sim_server *server, int32_t worker, int32_t n)
{
    const sim_push *push = &s->worker[worker].pushes[n];
    uint64_t key = stamp_key(s, worker, n);
    if (has(&server->set, worker, n))
        sim_broken(s,
                   "request R2: ps %d applies gradient %d of worker %d twice",
                   server->index, n, worker);
    if (push->generation != server->generation)
        sim_broken(
            s,
            "core P2: ps %d applies gradient %d of worker %d, of before a "
            "rollback",
            server->index, n, worker);
    if (push->dropped)
        sim_broken(
            s,
            "async I2: ps %d applies gradient %d of worker %d, which was "
            "dropped",
            server->index, n, worker);
    put(&server->set, worker, n);
    for (int64_t i = 0; i < server->count; i++)
        server->last[i] += part_of(s, worker, n, key, server->first + i);
}

static void note_async(sim *s, sim_server *server, int64_t step)
{
    int64_t made = step - server->step;
    for (int32_t w = 0; w < s->workers; w++) {
        float change = server->params[w] - server->last[w];
        int32_t n = (int32_t)change;
        if (change == 0.0f)
            continue;
        if ((float)n != change || n < 1 || n > s->worker[w].pushed) {
            sim_broken(
                s,
                "request R4: ps %d applies a gradient that worker %d did not "
                "push",
                server->index, w);
            return;
        }
        take_in(s, server, w, n);
        made--;
    }
    if (made != 0)
        sim_broken(s, "request R2: ps %d counts %lld updates more than it made",
                   server->index, (long long)made);
    if (memcmp(server->last, server->params,
               (size_t)server->count * sizeof(float)) != 0)
        sim_broken(s,
                   "dense D1: the parameters of ps %d are not a sum of whole "
                   "gradients",
                   server->index);
}

/* Make a step of sync again: of which workers' gradients? */
static void note_step(sim *s, sim_server *server)
{
    float grads[SIM_WORKERS][SIM_FLOATS], whole[SIM_FLOATS] = { 0 };
    float sum[SIM_FLOATS];
    const float *terms[SIM_WORKERS];
    int32_t count = 0;
    uint32_t chosen = 0;
    bool unclear = false; /* which of two batches: only with backup workers */
    memcpy(whole + server->first, server->last,
           (size_t)server->count * sizeof(float));
    for (int32_t w = 0; w < s->workers; w++) {
        if (server->params[w] == server->last[w])
            continue;
        int64_t position = s->worker[w].positions[server->step];
        unclear = unclear || position < 0;
        sim_gradient(s, w, server->step, position - 1, whole, grads[count]);
        terms[count] = grads[count] + server->first;
        count++;
        chosen |= UINT32_C(1) << w;
    }
    server->chosen[server->step] = chosen;
    sim_combine(s, server->count, count, terms, sum);
    for (int64_t i = 0; i < server->count && !unclear; i++)
        if (server->last[i] - sum[i] != server->params[i]) {
            sim_broken(
                s,
                "dense D1: step %lld of ps %d is not made of whole gradients",
                (long long)server->step, server->index);
            return;
        }
    for (int32_t j = 0; j < s->servers; j++) {
        const sim_server *other = &s->server[j];
        if (other->based && other->generation == server->generation &&
            server->step >= other->noted_from &&
            server->step + 1 < other->noted &&
            other->chosen[server->step] != chosen)
            sim_broken(
                s,
                "sync S1: step %lld is made of other gradients on ps %d than "
                "on ps %d",
                (long long)server->step, server->index, j);
    }
}

static void remember(const sim *s, sim_server *server, int64_t step)
{
    memcpy(server->last, server->params, sizeof server->last);
    server->step = step;
    if (s->mode != PL_PS_SYNC || step > SIM_STEPS)
        return;
    memcpy(server->history[step], server->params, sizeof server->params);
    server->noted = step + 1;
}

void sim_note(sim *s, sim_server *server)
{
    pl_ps_core_view view = pl_ps_core_look(server->core, 0);
    if (!view.initialized) {
        server->based = false;
        return;
    }
    if (!server->based || server->generation != view.generation) {
        if (!server->loaded)
            memset(&server->set, 0, sizeof server->set);
        server->based = true;
        server->loaded = false;
        server->generation = view.generation;
        server->noted_from = view.step;
        remember(s, server, view.step);
        return;
    }
    if (s->mode != PL_PS_SYNC)
        note_async(s, server, view.step);
    else if (view.step == server->step + 1 && strcmp(s->optim, "sgd") == 0)
        note_step(s, server);
    if (view.step != server->step ||
        memcmp(server->last, server->params, sizeof server->last) != 0)
        remember(s, server, view.step);
}

void sim_check_told(sim_worker *w)
{
    sim *s = w->sim;
    int32_t n = w->told;
    const sim_push *push = &w->pushes[n];
    w->told = 0;
    for (int32_t j = 0; n > 0 && j < s->servers; j++) {
        const sim_server *server = &s->server[j];
        if (server->core == NULL || !server->based ||
            server->generation != push->generation ||
            s->server[0].life != push->life ||
            has(&server->set, w->index, n) == push->applied)
            continue;
        sim_broken(
            s,
            "async I3: worker %d was told that gradient %d was %s, but ps %d "
            "%s it",
            w->index, n, push->dropped ? "dropped" : "applied", j,
            push->dropped ? "has" : "lacks");
    }
}

/* A worker received the outcome of push `n`: from server 0, or, `all`, when all
 * had answered. */
static void note_told(sim_worker *w, int32_t n, bool dropped, bool all)
{
    w->pushes[n].applied = !dropped;
    w->pushes[n].dropped = dropped;
    w->told = n;
    if (all)
        sim_check_told(w);
}

/* Keyed parameters in async: a commit has the outcome of the push before. */
static void note_late(sim_worker *w, const pl_commit *commit)
{
    if (w->open_push > 0 && !w->unsure)
        note_told(w, w->open_push, commit->dropped, true);
    w->unsure = false;
    if (commit->unsent)
        w->pushed--;
    w->open_push = commit->unsent ? 0 : w->pushed;
}

void sim_note_commit(sim_worker *w)
{
    const sim *s = w->sim;
    pl_ps_worker_view view = pl_ps_worker_look(w->machine);
    pl_commit commit = { .step = view.client.step,
                         .dropped = view.dropped,
                         .stop = view.stop,
                         .unsent = view.unsent };
    uint32_t life = sim_life_of(view.client);
    if (life != w->told_life || view.client.generation != w->told_generation)
        w->applied = w->dropped = 0; /* a lost server's outcomes are void */
    w->told_life = life;
    w->told_generation = view.client.generation;
    w->dropped += commit.dropped;
    w->applied += !commit.dropped;
    if (s->mode != PL_PS_SYNC && s->keyed)
        note_late(w, &commit);
    else if (s->mode != PL_PS_SYNC)
        note_told(w, w->pushed, commit.dropped, commit.stop);
    pl_course_stepped(&w->course, &commit);
}

static void check_set(sim *s, const sim_set *set, const int64_t *counts,
                      const char *what)
{
    uint8_t seen[SIM_WORKERS][SIM_PUSHES] = { 0 };
    int64_t found[SIM_WORKERS] = { 0 };
    for (int32_t w = 0; w < s->workers; w++)
        for (int32_t n = 1; n <= s->worker[w].pushed; n++) {
            const sim_push *push = &s->worker[w].pushes[n];
            if (!has(set, w, n))
                continue;
            sim_batch batch = push->batch;
            found[batch.share]++;
            if (batch.position >= SIM_PUSHES ||
                seen[batch.share][batch.position]++ > 0)
                sim_broken(s, "share H2: batch %lld of share %d is twice in %s",
                           (long long)batch.position, batch.share, what);
        }
    for (int32_t w = 0; w < s->workers; w++)
        if (found[w] != counts[w])
            sim_broken(
                s,
                "async I4: %lld gradients of share %d are counted, %lld are in "
                "%s",
                (long long)counts[w], w, (long long)found[w], what);
}

void sim_check_sets(sim *s, const sim_set *const *sets, const int64_t *counts,
                    const char *what)
{
    for (int32_t j = 0; j < s->servers; j++)
        if (sets[j] != NULL && memcmp(sets[j], sets[0], sizeof **sets) != 0)
            sim_broken(s, "async I1: %s: ps %d has other gradients than ps 0",
                       what, j);
    check_set(s, sets[0], counts, what);
}

/* The chief was gone when the job was interrupted, and the final parameters
 * were not requested: a server may still keep gradients that it was to apply
 * after a save.  It has none that server 0 has not. */
static void check_no_others(sim *s, const sim_set *const *sets)
{
    for (int32_t j = 1; j < s->servers; j++)
        for (int32_t w = 0; w < s->workers && sets[j] != NULL; w++)
            for (int32_t n = 1; n <= s->worker[w].pushed; n++)
                if (has(sets[j], w, n) && !has(sets[0], w, n))
                    sim_broken(s,
                               "async I2: the end: ps %d has gradient %d of "
                               "worker %d, "
                               "which ps 0 has not",
                               j, n, w);
}

void sim_check_ledger(sim *s)
{
    const sim_set *sets[SIM_SERVERS] = { NULL };
    int64_t counts[SIM_WORKERS] = { 0 };
    const sim_server *first = &s->server[0];
    if (s->mode == PL_PS_SYNC)
        return;
    for (int32_t j = 0; j < s->servers; j++) {
        const sim_server *server = &s->server[j];
        bool counts_in = server->core != NULL && server->based &&
                         pl_ps_core_outcome(server->core) == PL_OK &&
                         server->generation == first->generation;
        sets[j] = counts_in ? &server->set : NULL;
    }
    for (int32_t w = 0; w < s->workers; w++)
        counts[w] = pl_ps_core_look(first->core, w).applied_of_worker;
    if (sets[0] != NULL && !s->has_final && s->interrupted) {
        check_no_others(s, sets);
        for (int32_t j = 1; j < s->servers; j++)
            sets[j] = NULL;
    }
    if (sets[0] != NULL)
        sim_check_sets(s, sets, counts, "the end");
    for (int32_t w = 0; w < s->workers; w++)
        for (int32_t n = 1; n <= s->worker[w].pushed; n++)
            if (s->worker[w].pushes[n].applied && sets[0] != NULL &&
                s->worker[w].pushes[n].generation == first->generation &&
                s->worker[w].pushes[n].life == first->life &&
                !has(&first->set, w, n))
                sim_broken(
                    s,
                    "async I3: gradient %d of worker %d was applied and is "
                    "lost",
                    n, w);
}
