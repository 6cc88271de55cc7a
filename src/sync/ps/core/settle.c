/* Design.
 *
 * async and ssp: each gradient becomes an update of its own, on all servers or
 * on none, whatever dies in the middle of a push.
 *
 * A gradient is named by its worker's incarnation and the sequence of its
 * push.  A server other than 0 that has received all of one keeps it, reports
 * it to server 0 (HAVE) and repeats that until it is told the verdict (APPLY).
 * Server 0 applies a gradient once it is complete on all servers, and tells
 * the others; it may drop one earlier.  What it has not applied when a worker
 * joins again can never be completed and is dropped.  So
 *
 * I1  a gradient that server 0 applied is complete on every other server, which
 *     keeps it until it has applied it;
 * I2  a gradient that server 0 did not apply is applied by no server;
 * I3  a worker that was let in by a server has no unsettled gradient there, so
 *     what server 0 told it about its gradients stays true;
 * I4  a checkpoint, whose counts are server 0's, waits on each server for
 *     verdicts only, never for data.
 *
 * An unsettled gradient of a worker that never returns changes nothing. */
#include "sync/ps/core/core_priv.h"

static bool is_everywhere(pl_ps_core *core, const pl_member *member)
{
    int32_t worker = pl_core_id(core, member);
    for (int32_t j = 1; j < core->opts.ps; j++)
        if (*pl_core_have(core, worker, j) != (int64_t)member->pushed)
            return false;
    return true;
}

static void make_update(pl_ps_core *core, pl_member *member, int32_t share)
{
    pl_core_update_alone(core, member);
    core->members[share].own++;
    member->made++;
    member->pace++;
    member->granted = false;
}

static void drop_gradient(pl_ps_core *core, pl_member *member)
{
    member->dropped++;
    core->counts.dropped++;
}

static void tell_verdict(pl_ps_core *core, const pl_member *server,
                         const pl_member *worker, pl_frame verdict)
{
    verdict.kind = PL_FRAME_APPLY;
    verdict.incarnation = server->incarnation;
    verdict.value[0] = pl_core_id(core, worker);
    pl_core_send(core, server->peer, verdict, NULL, false);
}

void pl_core_settle(pl_ps_core *core, pl_member *member)
{
    const pl_member *share = pl_core_share_of(core, member);
    /* A worker that was lost may return when another one has made its
     * gradient. */
    bool unwanted = core->stopping || share == NULL ||
                    (!member->granted && pl_core_all_granted(core));
    if (!unwanted && !is_everywhere(core, member))
        return;
    /* It may also return while the chief begins a save. */
    member->held = !unwanted && !pl_core_may_change(core, member);
    if (member->held) {
        pl_core_keep(core, member);
        return;
    }
    member->fresh = false;
    member->unwanted = unwanted;
    member->settled = member->pushed;
    pl_frame verdict = {
        .flags = unwanted ? PL_APPLY_DROPPED : 0,
        .sequence = member->pushed,
        .first = member->incarnation,
    };
    if (unwanted) {
        drop_gradient(core, member);
    } else {
        member->applied_incarnation = member->incarnation;
        member->applied = member->pushed;
        member->applied_share = pl_core_id(core, share);
        verdict.value[1] = member->applied_share;
    }
    for (int32_t j = 1; j < core->opts.ps; j++)
        tell_verdict(core, &core->members[core->opts.workers + 1 + j], member,
                     verdict);
    if (!unwanted)
        make_update(core, member, member->applied_share);
    member->gradient = NULL;
    pl_core_release(core);
}

void pl_core_hear_pushed(pl_ps_core *core, const pl_member *from,
                         const pl_frame *frame)
{
    int32_t worker = (int32_t)frame->value[0];
    int32_t server = pl_core_id(core, from) - core->opts.workers - 1;
    pl_member *member = &core->members[worker];
    pl_frame verdict = { .sequence = frame->sequence, .first = frame->first };
    if (frame->sequence > INT64_MAX || frame->first < 1 ||
        frame->first > member->incarnation)
        return;
    if (frame->first == member->applied_incarnation &&
        frame->sequence == member->applied) {
        verdict.value[1] = member->applied_share;
        tell_verdict(core, from, member, verdict);
    } else if (frame->first < member->incarnation ||
               frame->sequence <= member->settled) {
        verdict.flags = PL_APPLY_DROPPED;
        tell_verdict(core, from, member, verdict);
    } else {
        *pl_core_have(core, worker, server) = (int64_t)frame->sequence;
        if (member->fresh)
            pl_core_settle(core, member);
    }
}

void pl_core_apply_settled(pl_ps_core *core, pl_member *member)
{
    member->held = !pl_core_may_change(core, member);
    if (member->held) {
        pl_core_keep(core, member);
        return;
    }
    make_update(core, member, member->counts_for);
    member->gradient = NULL;
    pl_core_release(core);
}

void pl_core_hear_verdict(pl_ps_core *core, const pl_frame *frame)
{
    int64_t worker = frame->value[0], share = frame->value[1];
    if (worker < 0 || worker >= core->opts.workers || share < 0 ||
        share >= core->opts.workers)
        return;
    pl_member *member = &core->members[worker];
    if (!member->fresh || frame->first != member->incarnation ||
        frame->sequence != member->pushed)
        return; /* told before */
    member->fresh = false;
    member->unwanted = (frame->flags & PL_APPLY_DROPPED) != 0;
    if (!member->unwanted) {
        member->counts_for = (int32_t)share;
        pl_core_apply_settled(core, member);
        return;
    }
    drop_gradient(core, member);
    member->gradient = NULL;
    pl_core_release(core);
}

void pl_core_void_pushes(pl_ps_core *core, pl_member *member, uint64_t last)
{
    if (core->opts.mode == PL_PS_SYNC || !pl_core_leads(core) ||
        !pl_core_is_worker(core, member))
        return;
    member->fresh = member->held = false;
    member->settled = last;
    for (int32_t j = 1; j < core->opts.ps; j++)
        *pl_core_have(core, pl_core_id(core, member), j) = -1;
}

bool pl_core_is_unsettled(const pl_ps_core *core, const pl_member *member)
{
    return core->opts.mode != PL_PS_SYNC && !pl_core_leads(core) &&
           (member->fresh || member->held);
}
