/* Design.
 *
 * sync   A gradient is fresh when it was computed at the present step and all
 *        of it is here.  The other servers report theirs to server 0 (HAVE);
 *        when enough workers' gradients are complete on all servers, server 0
 *        chooses them, once for all (APPLY), and everyone combines them in
 *        the order of workers.  So no server can be a step ahead of what a
 *        worker that dies in mid-push left behind.
 * async  A gradient is applied alone, as soon as it is complete on all servers
 *        (ps_settle.c).
 * ssp    Likewise, but the answer, without which a worker does not go on,
 *        waits while the worker is too far ahead of the slowest.  A worker's
 *        clock (`pace`) counts the gradients it makes, of any share; a worker
 *        that the job went on without returns with the slowest one's clock.
 *
 * With --steps, async and ssp workers go on only with a grant of server 0, and
 * no more grants are out than steps are left: the count comes out exact. */
#include "sync/ps/core/core_priv.h"
#include "sync/ps/store/table.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Floats combined and updated in one go: they stay in the first cache. */
#define RANGE 2048

/* core->chosen: what became of a worker's gradient in the last step. */
#define NOT_CHOSEN 0
#define CHOSEN     2

pl_status pl_core_update_init(pl_ps_core *core)
{
    size_t workers = (size_t)core->opts.workers;
    PL_TRY(PL_NEW(core->have, workers * (size_t)core->opts.ps));
    for (size_t i = 0; i < workers * (size_t)core->opts.ps; i++)
        core->have[i] = -1;
    PL_TRY(PL_NEW(core->terms, workers));
    PL_TRY(PL_NEW(core->chosen, workers));
    return PL_NEW_ALIGNED(core->sum, RANGE);
}

void pl_core_update_close(pl_ps_core *core)
{
    pl_mem_free(core->have);
    pl_mem_free(core->terms);
    pl_mem_free(core->chosen);
    pl_mem_free(core->sum);
}

int64_t *pl_core_have(pl_ps_core *core, int32_t worker, int32_t ps)
{
    return &core->have[worker * core->opts.ps + ps];
}

static void count_update(pl_ps_core *core)
{
    if (core->counts.first_update_ns == 0)
        core->counts.first_update_ns = core->now_ns;
    core->counts.last_update_ns = core->now_ns;
    core->counts.updates++;
    core->step++;
}

/* Combine gradients[0 .. count-1] in this order and apply the result. */
static void combine(pl_ps_core *core, const float *const *gradients,
                    int32_t count)
{
    const pl_ps_core_opts *opts = &core->opts;
    int64_t number = core->step + 1;
    pl_optim_begin(opts->optim, number, pl_schedule_lr(opts->schedule, number));
    if (count == 1) {
        pl_optim_update(opts->optim, 0, opts->count, gradients[0],
                        opts->params);
        count_update(core);
        return;
    }
    const float *terms[PL_CLUSTER_WORKERS_MAX];
    for (int64_t first = 0; first < opts->count; first += RANGE) {
        int64_t n = opts->count - first < RANGE ? opts->count - first : RANGE;
        for (int32_t i = 0; i < count; i++)
            terms[i] = gradients[i] + first;
        opts->kernels->sum_parts(n, count, terms, core->sum);
        if (!opts->sum)
            opts->kernels->scale(n, 1.0f / (float)count, core->sum, core->sum);
        pl_optim_update(opts->optim, first, n, core->sum, opts->params);
    }
    count_update(core);
}

static void trace_update(pl_ps_core *core, uint64_t begin, int32_t count)
{
    pl_trace_span(core->opts.trace, 0,
                  count == 1 ? "apply" : "aggregate, apply", core->step, begin,
                  pl_ticks_now());
}

/* The same for sparse parameters, and for these workers' gradients. */
static void update_table(pl_ps_core *core, const int32_t *workers,
                         int32_t count)
{
    const pl_ps_core_opts *opts = &core->opts;
    int64_t number = core->step + 1;
    uint64_t begin = pl_ticks_now();
    pl_optim_begin(opts->optim, number, pl_schedule_lr(opts->schedule, number));
    if (pl_ps_table_update(core, workers, count) != PL_OK)
        pl_core_end(core, true, "%s", pl_error_message());
    count_update(core);
    trace_update(core, begin, count);
}

static void update(pl_ps_core *core, const float *const *gradients,
                   int32_t count)
{
    uint64_t begin = pl_ticks_now();
    combine(core, gradients, count);
    trace_update(core, begin, count);
}

unsigned pl_core_stop_flag(const pl_ps_core *core)
{
    /* In async only server 0's count is the job's. */
    bool counts = core->opts.mode == PL_PS_SYNC || pl_core_leads(core);
    bool over = core->stopping || (counts && core->opts.end_step > 0 &&
                                   core->step >= core->opts.end_step);
    return (over ? PL_ANSWER_STOP : 0) |
           (core->interrupted ? PL_ANSWER_BROKEN : 0);
}

/* The gradient of `member` is about to become an update of its own. */
static void count_alone(pl_ps_core *core, const pl_member *member)
{
    int64_t behind = core->step - member->request.push.step;
    core->counts.accepted++;
    core->counts.behind += behind > 0 ? behind : 0;
}

static void drop(pl_ps_core *core, pl_member *member)
{
    member->dropped++;
    core->counts.dropped++;
    pl_core_answer(core, member, pl_core_stop_flag(core) | PL_ANSWER_DROPPED);
}

/* Make the step from the gradients of the chosen workers. */
static void make_step(pl_ps_core *core)
{
    int32_t workers = core->opts.workers, count = 0;
    int32_t chosen[PL_CLUSTER_WORKERS_MAX] = { 0 };
    for (int32_t w = 0; w < workers; w++)
        if (core->chosen[w] == CHOSEN) {
            core->terms[count] = core->members[w].gradient;
            chosen[count++] = w;
        }
    if (core->table != NULL)
        update_table(core, chosen, count);
    else
        update(core, core->terms, count);
    core->counts.accepted += count;
    if (count != workers)
        core->counts.mixed = true;
    for (int32_t w = 0; w < workers; w++) {
        pl_member *member = &core->members[w];
        bool fresh = member->fresh;
        member->fresh = false;
        if (!fresh)
            continue;
        member->own += core->chosen[w] == CHOSEN;
        member->made = member->own;
        if (member->stage != PL_STAGE_WAITING ||
            member->request.kind != PL_REQUEST_PUSH)
            continue; /* of one that was lost */
        if (core->chosen[w] == CHOSEN)
            pl_core_answer(core, member, pl_core_stop_flag(core));
        else
            drop(core, member);
    }
    pl_core_release(core);
}

/* The gradient of this worker is complete on all servers. */
static bool in_everywhere(pl_ps_core *core, int32_t worker)
{
    if (!core->members[worker].fresh)
        return false;
    for (int32_t j = 1; j < core->opts.ps; j++)
        if (*pl_core_have(core, worker, j) != core->step)
            return false;
    return true;
}

static void send_apply(pl_ps_core *core, const pl_member *server, int64_t step)
{
    pl_core_send(core, server->peer,
                 pl_core_stamp(pl_ps_choice_encode(step, core->opts.workers),
                               server->incarnation),
                 core->chosen, false);
}

void pl_core_try_step(pl_ps_core *core)
{
    if (!pl_core_leads(core) || core->opts.mode != PL_PS_SYNC ||
        pl_core_stop_flag(core) != 0 || !core->initialized ||
        core->members[0].paused)
        return;
    int32_t workers = core->opts.workers, ready = 0;
    for (int32_t w = 0; w < workers; w++)
        ready += in_everywhere(core, w);
    int32_t needed = pl_core_active(core);
    if (needed > core->opts.replicas)
        needed = core->opts.replicas;
    if (ready == 0 || ready < needed || !pl_core_may_change(core, NULL))
        return;
    for (int32_t w = 0; w < workers; w++)
        core->chosen[w] = in_everywhere(core, w) ? CHOSEN : NOT_CHOSEN;
    for (int32_t j = 1; j < core->opts.ps; j++)
        send_apply(core, &core->members[workers + 1 + j], core->step);
    make_step(core);
}

void pl_core_on_have(pl_ps_core *core, const pl_member *from,
                     const pl_message *message)
{
    int32_t server = pl_core_id(core, from) - core->opts.workers - 1;
    pl_ps_have have;
    if (!pl_core_leads(core) || server < 1 ||
        !pl_ps_have_decode(&have, message) || have.worker >= core->opts.workers)
        return;
    if (core->opts.mode != PL_PS_SYNC) {
        pl_core_on_pushed(core, from, &have);
        return;
    }
    if (have.step == core->step) {
        *pl_core_have(core, have.worker, server) = have.step;
        pl_core_try_step(core);
    } else if (have.step == core->step - 1) { /* our APPLY was lost */
        send_apply(core, from, have.step);
    }
}

void pl_core_on_apply(pl_ps_core *core, const pl_message *message)
{
    const uint8_t *chosen = message->payload;
    int64_t step;
    if (core->opts.mode != PL_PS_SYNC) {
        pl_core_on_verdict(core, message);
        return;
    }
    if (!pl_ps_choice_decode(&step, message, core->opts.workers) ||
        step != core->step)
        return;
    /* What cannot be made now is asked for again (HAVE). */
    if (!core->initialized ||
        memchr(chosen, CHOSEN, (size_t)core->opts.workers) == NULL ||
        !pl_core_may_change(core, NULL))
        return;
    for (int32_t w = 0; w < core->opts.workers; w++) {
        if (chosen[w] == CHOSEN && !core->members[w].fresh) {
            pl_core_end(core, true,
                        "ps %d has no gradient of worker %d at step %lld, "
                        "which ps 0 chose",
                        core->opts.index, w, (long long)core->step);
            return;
        }
        core->chosen[w] = chosen[w] == CHOSEN ? CHOSEN : NOT_CHOSEN;
    }
    make_step(core);
}

void pl_core_say_have(pl_ps_core *core, int32_t worker)
{
    const pl_member *member = &core->members[worker];
    pl_ps_have have = { .worker = worker, .step = core->step };
    if (core->own_incarnation == 0)
        return; /* said when server 0 knows us */
    if (core->opts.mode != PL_PS_SYNC) {
        have.push = member->pushed;
        have.incarnation = member->incarnation;
    }
    pl_core_send(core, PL_PEER_COORDINATOR,
                 pl_core_stamp(pl_ps_have_encode(&have), core->own_incarnation),
                 NULL, false);
}

static void refuse_gradient(pl_ps_core *core, pl_member *member)
{
    char name[32], why[160];
    snprintf(why, sizeof why,
             "the gradient of step %lld is not finite: try a smaller --lr or "
             "--clip",
             (long long)member->request.push.step);
    pl_log(PL_LOG_WARN, "%s: %s", pl_core_name(core, member, name), why);
    member->stage = PL_STAGE_NONE;
    pl_core_reply_text(core, member, pl_ps_refuse_encode(false, 0), why);
}

bool pl_core_all_granted(const pl_ps_core *core)
{
    int64_t out = 0;
    for (int32_t w = 0; w < core->opts.workers; w++)
        out += core->members[w].granted;
    return core->opts.end_step > 0 && core->step + out >= core->opts.end_step;
}

void pl_core_update_alone(pl_ps_core *core, const pl_member *member)
{
    int32_t worker = pl_core_id(core, member);
    count_alone(core, member);
    if (core->table != NULL)
        update_table(core, &worker, 1);
    else
        update(core, &member->gradient, 1);
}

void pl_core_apply_held(pl_ps_core *core)
{
    int32_t workers = core->opts.workers;
    for (int32_t w = 0; w < workers; w++)
        if (core->members[w].held && pl_core_leads(core))
            pl_core_settle(core, &core->members[w]);
        else if (core->members[w].held)
            pl_core_apply_settled(core, &core->members[w]);
    for (int32_t w = 0; !pl_core_leads(core) && w < workers; w++)
        if (core->members[w].fresh)
            pl_core_say_have(core, w);
    pl_core_try_step(core);
}

void pl_core_gradient(pl_ps_core *core, pl_member *member)
{
    const pl_ps_core_opts *opts = &core->opts;
    int32_t worker = pl_core_id(core, member);
    bool finite =
        core->table != NULL
            ? pl_ps_table_finite(core, worker)
            : isfinite(opts->kernels->sum(opts->count, member->gradient));
    if (!finite) {
        refuse_gradient(core, member);
        return;
    }
    member->stage = PL_STAGE_WAITING;
    if (opts->mode != PL_PS_SYNC) {
        member->fresh = true;
        member->pushed = member->sequence;
        if (pl_core_leads(core))
            pl_core_settle(core, member);
        else
            pl_core_say_have(core, worker);
        return;
    }
    /* While its pieces came the step may have been made without it. */
    if (member->request.push.step != core->step || core->stopping) {
        member->gradient = NULL;
        drop(core, member);
        return;
    }
    member->fresh = true;
    if (pl_core_leads(core)) {
        *pl_core_have(core, worker, 0) = core->step;
        pl_core_try_step(core);
        return;
    }
    pl_core_say_have(core, worker);
}

/* The worker makes no gradient now: it evaluates, or waits until all others
 * are done.  A chief that has frozen the job is not idle: nobody moves, and a
 * worker that comes back meanwhile must not get ahead of it. */
static bool is_idle(const pl_ps_core *core, const pl_member *member)
{
    const pl_ps_request *request = &member->request;
    if (member->paused || member->stage != PL_STAGE_WAITING)
        return member->paused && !core->frozen;
    return (request->kind == PL_REQUEST_SHARE && request->share.wait) ||
           (request->kind == PL_REQUEST_PULL &&
            (request->pull.flags & PL_PULL_FINAL) != 0);
}

/* ssp: the clock of the slowest worker, or of the slowest that still makes
 * gradients. */
static int64_t slowest(const pl_ps_core *core, bool idle_too)
{
    int64_t least = INT64_MAX;
    for (int32_t w = 0; w < core->opts.workers; w++) {
        const pl_member *member = &core->members[w];
        if (pl_core_counts(core, member) &&
            (idle_too || !is_idle(core, member)) && member->pace < least)
            least = member->pace;
    }
    return least;
}

void pl_core_catch_up(pl_ps_core *core, pl_member *member)
{
    if (!pl_core_is_worker(core, member) || pl_core_counts(core, member))
        return;
    int64_t least = slowest(core, false);
    if (least == INT64_MAX) /* the chief alone, say, that evaluates */
        least = slowest(core, true);
    if (least != INT64_MAX && least > member->pace)
        member->pace = least;
}

/* May this worker make one more gradient?  *flags gets STOP when there is
 * none left to make. */
static bool may_go_on(pl_ps_core *core, pl_member *member, unsigned *flags)
{
    *flags |= pl_core_stop_flag(core);
    if (core->opts.mode == PL_PS_SYNC || !pl_core_leads(core) ||
        *flags & PL_ANSWER_STOP || member->granted)
        return true;
    if (core->frozen && member != core->members)
        return false;
    if (core->opts.mode == PL_PS_SSP) {
        int64_t least = slowest(core, false);
        if (least != INT64_MAX && member->pace > least + core->opts.staleness)
            return false;
    }
    if (pl_core_all_granted(core))
        return false; /* until a grant comes back, or the end */
    member->granted = true;
    return true;
}

bool pl_core_others_done(const pl_ps_core *core)
{
    for (int32_t w = 1; w < core->opts.workers; w++)
        if (pl_core_counts(core, &core->members[w]))
            return false;
    return true;
}

static bool may_pull(pl_ps_core *core, pl_member *member, unsigned *flags)
{
    const pl_ps_pull *pull = &member->request.pull;
    if (!pl_core_has_parameters(core) || !pl_core_servers_here(core))
        return false;
    /* A gradient is still to be applied. */
    if ((pull->flags & PL_PULL_FINAL) != 0 &&
        (core->save.held || core->step < pull->step))
        return false;
    if ((pull->flags & PL_PULL_FINAL) != 0 && pl_core_leads(core)) {
        *flags |= pl_core_stop_flag(core);
        return pl_core_others_done(core);
    }
    bool over =
        core->stopping || (pl_core_leads(core) && pl_core_others_done(core) &&
                           core->members[0].state == PL_MEMBER_LEFT);
    if (core->step < pull->step && !over)
        return false;
    if (!pl_core_is_worker(core, member)) {
        *flags |= over ? PL_ANSWER_STOP : 0;
        return true;
    }
    return (pull->flags & PL_PULL_PEEK) != 0 || may_go_on(core, member, flags);
}

/* The job ends, for which all servers had parameters, and this one has none:
 * it is new since the chief left (ps_members.c), and nobody gives it any. */
static bool is_hollow(const pl_ps_core *core)
{
    return !pl_core_leads(core) && core->stopping && !core->failed &&
           !core->initialized;
}

/* Nobody changes the parameters: every worker waits for us, or is gone. */
static bool all_wait(const pl_ps_core *core)
{
    if (core->opts.mode == PL_PS_SYNC)
        return true; /* no step is made while the chief pauses */
    for (int32_t w = 1; w < core->opts.workers; w++) {
        const pl_member *member = &core->members[w];
        if (member->state == PL_MEMBER_HERE && member->stage != PL_STAGE_NONE &&
            member->stage != PL_STAGE_VOID &&
            (member->stage != PL_STAGE_WAITING || member->held ||
             member->fresh))
            return false;
    }
    return true;
}

void pl_core_release(pl_ps_core *core)
{
    for (int32_t i = 0; i <= core->opts.workers; i++) {
        pl_member *member = &core->members[i];
        unsigned flags = 0;
        if (member->stage != PL_STAGE_WAITING || member->held ||
            member->state != PL_MEMBER_HERE)
            continue;
        if (member->request.kind == PL_REQUEST_PULL && is_hollow(core)) {
            pl_core_refuse(core, member,
                           "the job is over, and this server, which was "
                           "started again since, has no parameters");
            member->stage = PL_STAGE_NONE;
        } else if (member->request.kind == PL_REQUEST_PULL) {
            if (!may_pull(core, member, &flags))
                continue;
            /* Whoever comes back from here on is too late. */
            if ((member->request.pull.flags & PL_PULL_FINAL) != 0)
                core->stopping = true;
            pl_core_answer(core, member, flags);
        } else if (member->request.kind == PL_REQUEST_FREEZE) {
            if (all_wait(core))
                pl_core_answer(core, member, 0);
        } else if (member->request.kind == PL_REQUEST_SHARE) {
            pl_core_try_share(core, member);
        } else if (member->request.kind == PL_REQUEST_SAVE ||
                   member->request.kind == PL_REQUEST_SAVE_STATUS ||
                   member->request.kind == PL_REQUEST_LOAD) {
            pl_core_try_store(core, member);
        } else if (member->request.kind == PL_REQUEST_PUSH) {
            if (core->opts.mode != PL_PS_SYNC && member->fresh) {
                if (pl_core_leads(core) && core->stopping)
                    pl_core_settle(core, member);
            } else if (core->opts.mode != PL_PS_SYNC) {
                if (member->unwanted)
                    flags |= PL_ANSWER_DROPPED;
                if (may_go_on(core, member, &flags))
                    pl_core_answer(core, member, flags);
            } else if (core->stopping) { /* it will not be used any more */
                member->fresh = false;
                drop(core, member);
            }
        }
    }
    pl_core_try_step(core);
}
