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

static void send_verdict(pl_ps_core *core, const pl_member *server,
                         const pl_ps_verdict *verdict)
{
    pl_core_send(
        core, server->peer,
        pl_core_stamp(pl_ps_verdict_encode(verdict), server->incarnation), NULL,
        false);
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
    pl_ps_verdict verdict = {
        .worker = pl_core_id(core, member),
        .incarnation = member->incarnation,
        .push = member->pushed,
        .dropped = unwanted,
    };
    if (unwanted) {
        drop_gradient(core, member);
    } else {
        member->applied_incarnation = member->incarnation;
        member->applied = member->pushed;
        member->applied_share = pl_core_id(core, share);
        verdict.share = member->applied_share;
    }
    for (int32_t j = 1; j < core->opts.ps; j++)
        send_verdict(core, &core->members[core->opts.workers + 1 + j],
                     &verdict);
    if (!unwanted)
        make_update(core, member, member->applied_share);
    member->gradient = NULL;
    pl_core_release(core);
}

void pl_core_on_pushed(pl_ps_core *core, const pl_member *from,
                       const pl_ps_have *have)
{
    int32_t server = pl_core_id(core, from) - core->opts.workers - 1;
    pl_member *member = &core->members[have->worker];
    pl_ps_verdict verdict = { .worker = have->worker,
                              .incarnation = have->incarnation,
                              .push = have->push };
    if (have->incarnation < 1 || have->incarnation > member->incarnation)
        return;
    if (have->incarnation == member->applied_incarnation &&
        have->push == member->applied) {
        verdict.share = member->applied_share;
        send_verdict(core, from, &verdict);
    } else if (have->incarnation < member->incarnation ||
               have->push <= member->settled) {
        verdict.dropped = true;
        send_verdict(core, from, &verdict);
    } else {
        *pl_core_have(core, have->worker, server) = (int64_t)have->push;
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

void pl_core_on_verdict(pl_ps_core *core, const pl_message *message)
{
    pl_ps_verdict verdict;
    if (!pl_ps_verdict_decode(&verdict, message) ||
        verdict.worker >= core->opts.workers ||
        verdict.share >= core->opts.workers)
        return;
    pl_member *member = &core->members[verdict.worker];
    if (!member->fresh || verdict.incarnation != member->incarnation ||
        verdict.push != member->pushed)
        return; /* told before */
    member->fresh = false;
    member->unwanted = verdict.dropped;
    if (!member->unwanted) {
        member->counts_for = verdict.share;
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
