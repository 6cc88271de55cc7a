/* What must hold, on the way and at the end of a simulated job.  A message
 * begins with the invariant that was broken: request R2 is the one of that
 * number in the head of src/sync/ps/core/request.c. */
#include "base/rng.h"
#include "sim/sim_priv.h"

#include <stdio.h>
#include <string.h>

/* N micro-batches in one process. */
pl_status sim_truth(sim *s)
{
    pl_params *shape = NULL;
    pl_optim *optim = NULL;
    float grads[SIM_WORKERS][SIM_FLOATS], sum[SIM_FLOATS];
    const float *terms[SIM_WORKERS];
    pl_status status;
    PL_TRY_OUT(status, pl_params_new(&shape));
    PL_TRY_OUT(status, pl_params_add(shape, "all", PL_SHAPE(s->floats)));
    PL_TRY_OUT(status, pl_params_seal(shape));
    PL_TRY_OUT(status, sim_optim(s, &optim, shape));
    for (int64_t i = 0; i < s->floats; i++)
        if (sim_counter(s, i) < 0 && s->mode == PL_PS_SYNC && !s->keyed)
            s->truth[0][i] = (float)pl_rng_normal(s->key, (uint64_t)i);
    for (int64_t step = 0; step < SIM_STEPS; step++) {
        float *params = s->truth[step + 1];
        memcpy(params, s->truth[step], sizeof s->truth[step]);
        for (int32_t w = 0; w < s->workers; w++) {
            sim_gradient(s, w, step, step, params, grads[w]);
            terms[w] = grads[w];
        }
        sim_combine(s, s->floats, s->workers, terms, sum);
        pl_optim_begin(optim, step + 1, pl_schedule_lr(&s->schedule, step + 1));
        pl_optim_update(optim, 0, s->floats, sum, params);
    }
out:
    pl_optim_free(optim);
    pl_params_free(shape);
    return status;
}

bool sim_exact(const sim *s)
{
    return s->mode == PL_PS_SYNC && s->replicas == s->workers &&
           s->on_loss != PL_ON_LOSS_CONTINUE;
}

/* The last step was made: a worker that does not know yet may compute on a
 * mixture, as its gradient will be dropped. */
static bool is_over(const sim *s)
{
    pl_ps_core_view view = pl_ps_core_look(s->server[0].core, 0);
    return view.step >= s->end_step || view.stopping ||
           s->worker[0].act >= PL_ACT_SUM_UP || s->interrupted;
}

uint32_t sim_life_of(pl_ps_client_view view)
{
    return view.incarnation >> 16;
}

/* The present life of server 0 admitted this worker.  Messages of an earlier
 * life may still arrive, and are of steps that this one never made; as the
 * worker is unknown by then, what it computes from them is refused, and it
 * joins again. */
static bool is_member(const sim *s, pl_ps_client_view view)
{
    return sim_life_of(view) == (uint32_t)s->server[0].life;
}

/* What the worker has of these parameters is the same as `other`. */
static bool same(const sim_worker *w, int64_t first, int64_t count,
                 const float *other)
{
    const sim *s = w->sim;
    for (int64_t i = 0; i < count; i++)
        if (w->params[first + i] != other[i] &&
            sim_has_key(s, w->index, w->batch, first + i))
            return false;
    return true;
}

/* The parameters are of one step, on all servers. */
static void check_one_step(sim_worker *w, pl_ps_client_view view)
{
    sim *s = w->sim;
    if (!is_member(s, view))
        return;
    for (int32_t j = 0; j < s->servers; j++) {
        const sim_server *server = &s->server[j];
        /* One that is rolled back makes its steps again. */
        if (server->core == NULL || !server->based ||
            server->generation != view.generation)
            continue;
        if (view.step < server->noted_from || view.step >= server->noted ||
            !same(w, server->first, server->count, server->history[view.step]))
            sim_broken(
                s,
                "client Q4: worker %d has parameters of ps %d that are not of "
                "step %lld",
                w->index, j, (long long)view.step);
    }
}

void sim_check_compute(sim_worker *w)
{
    sim *s = w->sim;
    pl_ps_client_view view = sim_view(w);
    if (s->mode != PL_PS_SYNC)
        return;
    bool over = s->server[0].core != NULL && is_over(s);
    if (s->server[0].core != NULL && !over)
        check_one_step(w, view);
    /* A server that knows of the end answers a gradient without parameters, and
     * a batch without values: what is here may be older.  The chief pulls them
     * all before it tests. */
    if (sim_exact(s) && !(over && (s->keyed || w->index > 0)) &&
        !same(w, 0, s->floats, s->truth[view.step]))
        sim_broken(
            s,
            "sync S1: worker %d has other parameters at step %lld than one "
            "process would",
            w->index, (long long)view.step);
}

void sim_check_staleness(sim_worker *w)
{
    sim *s = w->sim;
    const pl_ps_core *core = s->server[0].core;
    /* Keyed parameters are computed one batch ahead of the answer. */
    int64_t most = s->staleness + (s->keyed ? 1 : 0);
    if (s->mode != PL_PS_SSP || core == NULL ||
        pl_ps_core_look(core, 0).generation != sim_view(w).generation)
        return;
    pl_ps_core_view job = pl_ps_core_look(core, 0);
    if (job.stopping || (s->by_steps && job.step >= s->end_step))
        return; /* what is computed now will be dropped */
    int64_t pace = pl_ps_core_look(core, w->index).pace_of_worker;
    for (int32_t i = 0; i < s->workers; i++) {
        const sim_worker *other = &s->worker[i];
        int64_t theirs = pl_ps_core_look(core, i).pace_of_worker;
        if (!other->alive || other->act != PL_ACT_STEP ||
            (other->doing != SIM_COMPUTING && other->doing != SIM_COMMITTING) ||
            other->paused || other->was_lost || other->was_stuck)
            continue; /* it does not, or did not, block others */
        if (pace > theirs + most)
            sim_broken(
                s,
                "ssp C1: worker %d makes gradient %lld while worker %d made "
                "%lld (staleness %d)",
                w->index, (long long)pace + 1, i, (long long)theirs,
                s->staleness);
    }
}

/* The requested number of updates was made. */
static void check_counts(sim *s)
{
    int64_t total = 0, step = pl_ps_core_look(s->server[0].core, 0).step;
    bool whole = !s->stops_early && !s->interrupted;
    for (int32_t w = 0; w < s->workers; w++) {
        int64_t own = pl_ps_core_look(s->server[0].core, w).applied_of_worker;
        total += own;
        /* Another worker reads the share of one that is lost for good. */
        if (!s->by_steps && whole && own != s->own_steps)
            sim_broken(s,
                       "share H1: share %d has %lld gradients, expected %lld",
                       w, (long long)own, (long long)s->own_steps);
    }
    if (s->mode != PL_PS_SYNC && step != total)
        sim_broken(s, "request R2: %lld updates of %lld gradients",
                   (long long)step, (long long)total);
    if (s->by_steps && whole && step != s->end_step)
        sim_broken(s, "async I5: ended at step %lld, expected %lld",
                   (long long)step, (long long)s->end_step);
}

/* The outcomes that a worker received must be those on the servers.  A life
 * that ended in between may have received fewer, and a worker that joined after
 * a rollback received fewer than the checkpoint counts. */
static void check_told_worker(sim *s, int32_t w, int64_t *dropped, bool *all)
{
    const sim_worker *worker = &s->worker[w];
    pl_ps_core_view view = pl_ps_core_look(s->server[0].core, w);
    int64_t own = view.applied_of_worker;
    bool told = worker->told_life == (uint32_t)s->server[0].life &&
                worker->told_generation == view.generation;
    int64_t applied = told ? worker->applied : 0;
    bool whole = worker->life <= 2 && worker->turn == 0 && worker->ended &&
                 s->result->server_kills == 0;
    *all = *all && whole;
    *dropped += told ? worker->dropped : 0;
    if (sim_exact(s) && own != view.step)
        sim_broken(s,
                   "sync S1: %lld of %lld steps have a gradient of worker %d",
                   (long long)own, (long long)view.step, w);
    if (applied > own || (whole && applied != own))
        sim_broken(s,
                   "sync S3: worker %d was told that %lld gradients were "
                   "applied, which were %lld",
                   w, (long long)applied, (long long)own);
}

static void check_told(sim *s)
{
    int64_t counted = pl_ps_core_look(s->server[0].core, 0).dropped;
    int64_t dropped = 0;
    bool all = true; /* received every outcome */
    if (s->mode != PL_PS_SYNC)
        return; /* the ledger knows more */
    for (int32_t w = 0; w < s->workers; w++)
        check_told_worker(s, w, &dropped, &all);
    if (dropped > counted || (all && dropped != counted))
        sim_broken(s, "sync S3: %lld gradients were dropped, %lld counted",
                   (long long)dropped, (long long)counted);
    if (sim_exact(s) && !s->stops_early && !s->interrupted && counted > 0)
        sim_broken(
            s,
            "sync S3: %lld gradients were dropped, though all are waited for",
            (long long)counted);
}

/* The chief has what the servers have. */
static void check_servers(sim *s)
{
    for (int32_t j = 0; j < s->servers && s->has_final; j++) {
        const sim_server *server = &s->server[j];
        if (server->core != NULL &&
            pl_ps_core_look(server->core, 0).initialized &&
            memcmp(server->params, s->final + server->first,
                   (size_t)server->count * sizeof(float)) != 0)
            sim_broken(
                s, "client Q4: the chief ends with other parameters than ps %d",
                j);
    }
}

/* A task ended because of an interrupt, or when no task was restarted: a
 * worker, or a server that could not reach server 0 or that ended well.  A
 * failure is sent to all servers that joined; so that one got the end from a
 * server 0 that died before it received the goodbye. */
static bool somebody_left(const sim *s)
{
    if (s->worker_left)
        return true;
    for (int32_t j = 1; j < s->servers; j++) {
        const pl_ps_core *core = s->server[j].core;
        if (s->server[j].gave_up)
            return true;
        if (core == NULL)
            continue;
        if (pl_ps_core_outcome(core) == PL_OK
                ? pl_ps_core_finished(core)
                : strstr(pl_error_message(), "while ps 0 was lost") != NULL)
            return true;
    }
    return false;
}

/* A job that was interrupted may fail, as lost tasks are not restarted; but
 * only for these reasons. */
static bool excused(const sim *s, const char *why)
{
    for (int32_t w = 0; w < s->workers; w++) {
        char text[64];
        snprintf(text, sizeof text, "worker %d", w);
        if ((s->worker[w].gone || s->worker[w].was_stuck) &&
            strstr(why, text) != NULL && strstr(why, "join-timeout)") != NULL)
            return true; /* it was gone before it had come to a new ps 0 */
    }
    if (s->disk.failing > 0 && strstr(why, "the disk is full") != NULL)
        return true; /* the first or the last checkpoint */
    if (!s->interrupted)
        return false;
    return strstr(why, "before the training began") != NULL ||
           strstr(why, "was lost while the job was interrupted") != NULL ||
           strstr(why, "while ps 0 was lost") != NULL ||
           (strstr(why, "join-timeout)") != NULL && somebody_left(s));
}

/* What was saved last is what the job ended with, whatever went wrong before;
 * it may have been damaged since. */
static void check_saved(sim *s)
{
    const sim_checkpoint *last = &s->disk.kept[0];
    if (s->interrupted)
        return;
    if (last->serial == 0 || last->step != s->result->steps)
        sim_broken(
            s,
            "save K1: the last checkpoint is of step %lld, the job ended at "
            "%lld",
            last->serial > 0 ? (long long)last->step : -1,
            (long long)s->result->steps);
    else if (memcmp(last->params, s->final,
                    (size_t)s->floats * sizeof(float)) != 0)
        sim_broken(
            s, "save K2: the last checkpoint is not what the job ended with");
}

/* The chief reports that the job is done, but server 0 does not know: it was
 * restarted while the reports were on their way to the chief. */
static bool is_left_over(const sim *s)
{
    return s->worker[0].ended && s->has_final &&
           !pl_ps_core_look(s->server[0].core, 0).initialized;
}

static void check_final(sim *s, int64_t step)
{
    if (!s->has_final)
        sim_broken(s, "watch L4: the chief never got the final parameters");
    else if (sim_exact(s) && memcmp(s->final, s->truth[step],
                                    (size_t)s->floats * sizeof(float)) != 0)
        sim_broken(
            s, "sync S1: the job ends with other parameters than one process");
}

void sim_check_end(sim *s)
{
    pl_sim_result *result = s->result;
    pl_ps_core *first = s->server[0].core;
    result->seconds = (double)s->now_ns * 1e-9;
    if (first == NULL)
        return;
    result->steps = pl_ps_core_look(first, 0).step;
    if (!result->good)
        return;
    if (is_left_over(s)) {
        result->ended_well = true;
        result->steps = s->end_step;
        if (!s->stops_early && !s->interrupted)
            check_final(s, s->end_step);
        return;
    }
    result->ended_well = pl_ps_core_outcome(first) == PL_OK;
    if (!result->ended_well) {
        snprintf(result->why, sizeof result->why, "%s", pl_error_message());
        char why[sizeof result->why];
        memcpy(why, result->why, sizeof why);
        if (s->on_loss != PL_ON_LOSS_ABORT && !excused(s, why))
            sim_broken(s, "watch L2: the job failed: %.400s", why);
        return;
    }
    check_counts(s);
    sim_check_ledger(s);
    if (!s->has_final && s->interrupted)
        return; /* it was not restarted */
    check_final(s, result->steps);
    check_told(s);
    check_servers(s);
    check_saved(s);
}
