/* sync: the gradients of one step become one update, the same on all servers.
 *
 * A gradient is fresh when it was computed at the current step and all of it
 * has arrived.  The other servers report their gradients to server 0 (HAVE);
 * when enough workers' gradients are complete on all servers, server 0 chooses
 * them for all servers (APPLY), and every server combines them in the order of
 * workers.
 *
 *   S1  All servers make a step from the same workers' gradients.
 *   S2  A worker that dies in mid-push never leaves one server a step ahead: a
 *       gradient is chosen only when it is complete on all servers.
 *   S3  A gradient of an earlier step is dropped, and its worker notified.
 *   S4  A step waits for every worker that counts, unless as many gradients are
 *       ready as a step needs: the gradient of a lost worker is added, but
 *       replaces none. */
#include "sync/ps/modes/mode.h"

#include <string.h>

/* core->chosen: the fate of a worker's gradient in the last step. */
#define NOT_CHOSEN 0
#define CHOSEN     2

static bool begin_push(pl_ps_core *core, pl_member *member)
{
    int32_t worker = pl_core_id(core, member);
    int64_t step = member->request.push.step;
    if (core->stopping ||
        (step == core->step && pl_core_stop_flag(core) != 0)) {
        pl_core_drop(core, member);
        return true;
    }
    if (step == core->step) {
        if (member->fresh) { /* sent by a process that was lost */
            member->stage = PL_STAGE_WAITING;
            pl_core_ack(core, member, PL_ACKED_COMPLETE);
        }
        return member->fresh;
    }
    if (step == core->step - 1 && core->chosen[worker] == CHOSEN)
        pl_core_answer(core, member, pl_core_stop_flag(core));
    else
        pl_core_drop(core, member); /* S3 */
    return true;
}

static void end_gradient(pl_ps_core *core, pl_member *member, bool chosen)
{
    if (!member->fresh)
        return;
    member->fresh = false;
    member->own += chosen;
    member->made = member->own;
    if (member->stage != PL_STAGE_WAITING ||
        member->request.kind != PL_REQUEST_PUSH)
        return; /* the process was lost */
    if (chosen)
        pl_core_answer(core, member, pl_core_stop_flag(core));
    else
        pl_core_drop(core, member);
}

/* Make the step from the gradients of the chosen workers. */
static void make_step(pl_ps_core *core)
{
    int32_t workers = core->opts.workers, count = 0;
    int32_t chosen[PL_CLUSTER_WORKERS_MAX] = { 0 };
    for (int32_t w = 0; w < workers; w++)
        if (core->chosen[w] == CHOSEN)
            chosen[count++] = w;
    pl_core_update(core, chosen, count);
    core->ready_count = 0;
    core->arrived_ns = 0;
    core->counts.accepted += count;
    if (count != workers)
        core->counts.mixed = true;
    for (int32_t w = 0; w < workers; w++)
        end_gradient(core, &core->members[w], core->chosen[w] == CHOSEN);
    pl_core_release(core);
}

/* Whether the gradient of this worker is complete on all servers. */
static bool in_everywhere(pl_ps_core *core, int32_t worker)
{
    return core->members[worker].fresh &&
           pl_core_is_elsewhere(core, worker, core->step);
}

static void send_choice(pl_ps_core *core, const pl_member *server, int64_t step)
{
    pl_core_send(core, server->peer,
                 pl_core_stamp(pl_ps_choice_encode(step, core->opts.workers),
                               server->incarnation),
                 core->chosen, false);
}

/* Recount the gradients that are ready; true: enough for a step (S4).  Fewer
 * than `needed` are never enough. */
static bool count_ready(pl_ps_core *core)
{
    int32_t active = pl_core_active(core), missing = 0;
    core->needed = active < core->opts.replicas ? active : core->opts.replicas;
    core->ready_count = 0;
    for (int32_t w = 0; w < core->opts.workers; w++) {
        bool ready = in_everywhere(core, w);
        core->ready_count += ready;
        missing += !ready && pl_core_counts(core, &core->members[w]);
    }
    return core->ready_count > 0 &&
           (missing == 0 || core->ready_count >= core->opts.replicas);
}

static void try_step(pl_ps_core *core)
{
    int32_t workers = core->opts.workers;
    if (!pl_core_leads(core))
        return;
    if (!count_ready(core) || pl_core_stop_flag(core) != 0 ||
        !core->initialized || core->members[0].paused ||
        !pl_core_may_change(core, NULL))
        return;
    for (int32_t w = 0; w < workers; w++)
        core->chosen[w] = in_everywhere(core, w) ? CHOSEN : NOT_CHOSEN; /* S2 */
    for (int32_t j = 1; j < core->opts.ps; j++)                         /* S1 */
        send_choice(core, &core->members[workers + 1 + j], core->step);
    make_step(core);
}

/* Server 0: the last gradient of a step delayed all others since the previous
 * one arrived. */
static void note_arrival(pl_ps_core *core, int32_t worker)
{
    pl_member *member = &core->members[worker];
    bool last = core->ready_count + 1 >= core->needed;
    if (last && core->arrived_ns > 0) {
        double held_s = 1e-9 * (double)(core->now_ns - core->arrived_ns);
        member->held_s += held_s;
        member->held_squares += held_s * held_s;
    }
    core->arrived_ns = core->now_ns;
}

/* Server 0: one more gradient is ready.  They are recounted only when there may
 * be enough: a step of N gradients takes O(N) in total. */
static void note_ready(pl_ps_core *core, int32_t worker)
{
    note_arrival(core, worker);
    if (++core->ready_count >= core->needed)
        try_step(core);
}

static void gradient_arrived(pl_ps_core *core, pl_member *member)
{
    int32_t worker = pl_core_id(core, member);
    /* The step may have been made without it while its pieces arrived. */
    if (member->request.push.step != core->step || core->stopping) {
        member->gradient = NULL;
        pl_core_drop(core, member);
        return;
    }
    member->fresh = true;
    if (!pl_core_leads(core)) {
        pl_core_send_have(core, worker);
        return;
    }
    if (in_everywhere(core, worker))
        note_ready(core, worker);
}

static void release_push(pl_ps_core *core, pl_member *member)
{
    if (!core->stopping)
        return;
    member->fresh = false; /* it will not be used */
    pl_core_drop(core, member);
}

static bool may_go_on(pl_ps_core *core, pl_member *member, unsigned *flags)
{
    (void)member;
    *flags |= pl_core_stop_flag(core);
    return true;
}

static bool all_wait(const pl_ps_core *core)
{
    (void)core;
    return true; /* no step is made while the chief pauses */
}

static void retry(pl_ps_core *core)
{
    for (int32_t w = 0; !pl_core_leads(core) && w < core->opts.workers; w++)
        if (core->members[w].fresh)
            pl_core_send_have(core, w);
    try_step(core);
}

static pl_ps_have have(const pl_ps_core *core, int32_t worker)
{
    return (pl_ps_have) { .worker = worker, .step = core->step };
}

static void on_have(pl_ps_core *core, const pl_member *from,
                    const pl_ps_have *said)
{
    int32_t server = pl_core_id(core, from) - core->opts.workers - 1;
    if (said->step == core->step) {
        bool before = in_everywhere(core, said->worker);
        pl_core_note_have(core, said->worker, server, said->step);
        if (!before && in_everywhere(core, said->worker))
            note_ready(core, said->worker);
    } else if (said->step == core->step - 1) { /* our APPLY was lost */
        send_choice(core, from, said->step);
    }
}

static void on_apply(pl_ps_core *core, const pl_message *message)
{
    const uint8_t *chosen = message->payload;
    int32_t workers = core->opts.workers;
    int64_t step;
    if (!pl_ps_choice_decode(&step, message, workers) || step != core->step)
        return;
    /* A step that cannot be made now is requested again (HAVE). */
    if (!core->initialized || memchr(chosen, CHOSEN, (size_t)workers) == NULL ||
        !pl_core_may_change(core, NULL))
        return;
    for (int32_t w = 0; w < workers; w++) {
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

const pl_ps_mode_ops pl_ps_mode_sync = {
    .name = "sync",
    .lock_step = true,
    .begin_push = begin_push,
    .gradient_arrived = gradient_arrived,
    .release_push = release_push,
    .may_go_on = may_go_on,
    .all_wait = all_wait,
    .retry = retry,
    .try_step = try_step,
    .have = have,
    .on_have = on_have,
    .on_apply = on_apply,
};
