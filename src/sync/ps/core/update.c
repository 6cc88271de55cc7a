/* What all modes share: how gradients are combined and applied, when a job has
 * made its last step, and which waiting requests may be answered.  The mode
 * decides how gradients become updates (mode.h). */
#include "sync/ps/core/core_priv.h"
#include "sync/ps/modes/mode.h"
#include "sync/ps/store/store.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

pl_status pl_core_update_init(pl_ps_core *core)
{
    size_t workers = (size_t)core->opts.workers;
    PL_TRY(PL_NEW(core->have, workers * (size_t)core->opts.ps));
    for (int32_t w = 0; w < core->opts.workers; w++)
        pl_core_forget_have(core, w);
    PL_TRY(PL_NEW(core->gradients, workers));
    PL_TRY(PL_NEW(core->chosen, workers));
    return PL_NEW_ALIGNED(core->sum, PL_UPDATE_FLOATS);
}

void pl_core_update_close(pl_ps_core *core)
{
    pl_mem_free(core->have);
    pl_mem_free(core->gradients);
    pl_mem_free(core->chosen);
    pl_mem_free(core->sum);
}

void pl_core_note_have(pl_ps_core *core, int32_t worker, int32_t ps,
                       int64_t number)
{
    pl_member *member = &core->members[worker];
    int64_t *have = &core->have[worker * core->opts.ps + ps];
    member->have_count -= *have == member->have_of;
    *have = number;
    member->have_count += *have == member->have_of;
}

/* The count is made once for each gradient, which takes as long as its
 * messages. */
bool pl_core_is_elsewhere(pl_ps_core *core, int32_t worker, int64_t number)
{
    pl_member *member = &core->members[worker];
    if (member->have_of != number) {
        member->have_of = number;
        member->have_count = 0;
        for (int32_t j = 1; j < core->opts.ps; j++)
            member->have_count +=
                core->have[worker * core->opts.ps + j] == number;
    }
    return member->have_count == core->opts.ps - 1;
}

void pl_core_forget_have(pl_ps_core *core, int32_t worker)
{
    for (int32_t j = 0; j < core->opts.ps; j++)
        core->have[worker * core->opts.ps + j] = -1;
    core->members[worker].have_of = INT64_MIN; /* no step or request yet */
    core->members[worker].have_count = 0;
}

void pl_core_grant(pl_ps_core *core, pl_member *member, bool granted)
{
    core->grants += granted - member->granted;
    member->granted = granted;
}

static void count_update(pl_ps_core *core)
{
    if (core->counts.first_update_ns == 0)
        core->counts.first_update_ns = core->now_ns;
    core->counts.last_update_ns = core->now_ns;
    core->counts.updates++;
    core->step++;
    core->version++;
}

void pl_core_traced(const pl_ps_core *core, const char *name, uint64_t begin,
                    int64_t bytes)
{
    if (pl_trace_on(core->opts.trace))
        pl_trace_moved(core->opts.trace, 0, name, core->step + 1, begin,
                       pl_ticks_now(), bytes);
}

void pl_core_update(pl_ps_core *core, const int32_t *workers, int32_t count)
{
    const pl_ps_core_opts *opts = &core->opts;
    int64_t number = core->step + 1;
    pl_optim_begin(opts->optim, number, pl_schedule_lr(opts->schedule, number));
    if (core->store->update(core, workers, count) != PL_OK)
        pl_core_end(core, true, "%s", pl_error_message());
    count_update(core);
}

unsigned pl_core_stop_flag(const pl_ps_core *core)
{
    /* Without lock step, only server 0's count is that of the job. */
    bool counts = core->mode->lock_step || pl_core_leads(core);
    bool over = core->stopping || (counts && core->opts.end_step > 0 &&
                                   core->step >= core->opts.end_step);
    return (over ? PL_ANSWER_STOP : 0) |
           (core->interrupted ? PL_ANSWER_BROKEN : 0);
}

void pl_core_drop(pl_ps_core *core, pl_member *member)
{
    member->dropped++;
    core->counts.dropped++;
    pl_core_answer(core, member, pl_core_stop_flag(core) | PL_ANSWER_DROPPED);
}

void pl_core_try_step(pl_ps_core *core)
{
    if (core->mode->try_step != NULL)
        core->mode->try_step(core);
}

void pl_core_on_have(pl_ps_core *core, const pl_member *from,
                     const pl_message *message)
{
    int32_t server = pl_core_id(core, from) - core->opts.workers - 1;
    pl_ps_have have;
    if (!pl_core_leads(core) || server < 1 ||
        !pl_ps_have_decode(&have, message) || have.worker >= core->opts.workers)
        return;
    core->mode->on_have(core, from, &have);
}

void pl_core_send_have(pl_ps_core *core, int32_t worker)
{
    pl_ps_have have = core->mode->have(core, worker);
    if (core->own_incarnation == 0)
        return; /* sent when we have joined server 0 */
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

void pl_core_gradient(pl_ps_core *core, pl_member *member)
{
    if (!core->store->is_finite(core, member)) {
        refuse_gradient(core, member);
        return;
    }
    member->stage = PL_STAGE_WAITING;
    core->mode->gradient_arrived(core, member);
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
    /* A gradient has yet to be applied. */
    if ((pull->flags & PL_PULL_FINAL) != 0 &&
        (core->save.held || core->step < pull->step))
        return false;
    if ((pull->flags & PL_PULL_FINAL) != 0 && pl_core_leads(core)) {
        *flags |= pl_core_stop_flag(core);
        return pl_core_others_done(core);
    }
    bool over = core->stopping || (pl_core_leads(core) &&
                                   core->members[0].state == PL_MEMBER_LEFT &&
                                   pl_core_others_done(core));
    if (core->step < pull->step && !over)
        return false;
    if (!pl_core_is_worker(core, member)) {
        *flags |= over ? PL_ANSWER_STOP : 0;
        return true;
    }
    return (pull->flags & PL_PULL_PEEK) != 0 ||
           core->mode->may_go_on(core, member, flags);
}

/* Whether the job ends and this server has no parameters, though all had them:
 * it joined after the chief left (members.c), and no task will send any. */
static bool is_hollow(const pl_ps_core *core)
{
    return !pl_core_leads(core) && core->stopping && !core->failed &&
           !core->initialized;
}

static void release_pull(pl_ps_core *core, pl_member *member)
{
    unsigned flags = 0;
    if (is_hollow(core)) {
        pl_core_refuse(core, member,
                       "the job is over, and this server, which was started "
                       "again since, has no parameters");
        member->stage = PL_STAGE_NONE;
        return;
    }
    if (!may_pull(core, member, &flags))
        return;
    /* A worker that rejoins from now on is too late. */
    if ((member->request.pull.flags & PL_PULL_FINAL) != 0)
        core->stopping = true;
    pl_core_answer(core, member, flags);
}

/* Answer the waiting request, if possible. */
static void release_one(pl_ps_core *core, pl_member *member)
{
    switch (member->request.kind) {
    case PL_REQUEST_PULL:
        release_pull(core, member);
        break;
    case PL_REQUEST_FREEZE:
        if (core->mode->all_wait(core))
            pl_core_answer(core, member, 0);
        break;
    case PL_REQUEST_SHARE:
        pl_core_try_share(core, member);
        break;
    case PL_REQUEST_SAVE:
    case PL_REQUEST_SAVE_STATUS:
    case PL_REQUEST_LOAD:
        pl_core_try_store(core, member);
        break;
    case PL_REQUEST_PUSH:
        core->mode->release_push(core, member);
        break;
    default:
        break;
    }
}

void pl_core_release_member(pl_ps_core *core, pl_member *member)
{
    if (member->stage == PL_STAGE_WAITING && !member->held &&
        member->state == PL_MEMBER_HERE)
        release_one(core, member);
}

void pl_core_release_after(pl_ps_core *core, pl_member *member)
{
    if (core->frozen || pl_core_stop_flag(core) != 0 ||
        member == core->members || pl_core_idles(&member->request)) {
        pl_core_release(core);
        return;
    }
    pl_core_release_member(core, core->members);
    pl_core_release_member(core, member);
    pl_core_release_member(core, &core->members[core->opts.workers]);
}

void pl_core_release(pl_ps_core *core)
{
    core->slowest_known = false;
    for (int32_t i = 0; i <= core->opts.workers; i++)
        pl_core_release_member(core, &core->members[i]);
    pl_core_try_step(core);
}
