/* async: each gradient becomes an update of its own, on all servers or on none,
 * whichever task dies in the middle of a push.
 *
 * A gradient is identified by its worker's incarnation and the sequence of its
 * push.  A server other than 0 that has received all of a gradient keeps it,
 * reports it to server 0 (HAVE) and repeats that until it receives the verdict
 * (APPLY).  Server 0 applies a gradient once it is complete on all servers, and
 * notifies the others; it may drop one earlier.  A gradient that it has not
 * applied when the worker rejoins can never be completed and is dropped.  So
 *
 * I1  a gradient that server 0 applied is complete on every other server, which
 *     keeps it until it has applied it;
 * I2  a gradient that server 0 did not apply is applied by no server;
 * I3  a worker that was admitted by a server has no unsettled gradient there,
 *     so the counts that it got from server 0 remain true;
 * I4  a checkpoint, whose counts are server 0's, waits on each server for
 *     verdicts only, never for data.
 *
 * An unsettled gradient of a worker that never rejoins changes nothing.
 *
 * With --steps, workers continue only with a grant of server 0:
 *
 * I5  no more grants are in use than steps are left, so the number of steps is
 *     exact.
 *
 * If the chief's tests affect training, workers also need a grant to reach the
 * step of the next test, and beyond it only the chief gets one:
 *
 * I6  while the chief makes gradients, no other worker's update follows that of
 *     a test's step before the job was frozen for that test and resumed.  (A
 *     worker that was lost with its grant may add one; in ssp the workers that
 *     the chief waits for continue.) */
#include "sync/ps/modes/mode.h"

bool pl_async_begin_push(pl_ps_core *core, pl_member *member)
{
    if (!core->stopping)
        return false;
    member->settled = member->sequence;
    pl_core_drop(core, member);
    return true;
}

/* With --steps: whether all gradients that are still needed were granted. */
static bool all_granted(const pl_ps_core *core)
{
    return core->opts.end_step > 0 &&
           core->step + core->grants >= core->opts.end_step;
}

static void make_update(pl_ps_core *core, pl_member *member, int32_t share)
{
    int32_t worker = pl_core_id(core, member);
    int64_t behind = core->step - member->request.push.step;
    core->counts.accepted++;
    core->counts.behind += behind > 0 ? behind : 0;
    pl_core_update(core, &worker, 1);
    core->members[share].own++;
    member->made++;
    member->pace++;
    pl_core_grant(core, member, false);
}

/* A gradient was settled: its worker may continue, and the chief or the
 * evaluator may have waited for it.  Other workers wait for the end of the job
 * or of a freeze, or in ssp for the slowest worker. */
static void release_after(pl_ps_core *core, pl_member *member)
{
    member->gradient = NULL;
    if (core->mode->slowest_moved != NULL &&
        core->mode->slowest_moved(core, member))
        pl_core_release(core);
    else
        pl_core_release_after(core, member);
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

/* Server 0: apply or drop a complete gradient, if that can be decided. */
static void settle(pl_ps_core *core, pl_member *member)
{
    const pl_member *share = pl_core_share_of(core, member);
    /* A lost worker may return after another worker has made its gradient. */
    bool unwanted = core->stopping || share == NULL ||
                    (!member->granted && all_granted(core));
    if (!unwanted && !pl_core_is_elsewhere(core, pl_core_id(core, member),
                                           (int64_t)member->pushed))
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
    release_after(core, member);
}

void pl_async_on_have(pl_ps_core *core, const pl_member *from,
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
        pl_core_note_have(core, have->worker, server, (int64_t)have->push);
        if (member->fresh)
            settle(core, member);
    }
}

/* Server 0 has decided: the gradient at hand is applied. */
static void apply_settled(pl_ps_core *core, pl_member *member)
{
    member->held = !pl_core_may_change(core, member);
    if (member->held) {
        pl_core_keep(core, member);
        return;
    }
    make_update(core, member, member->counts_for);
    release_after(core, member);
}

void pl_async_on_apply(pl_ps_core *core, const pl_message *message)
{
    pl_ps_verdict verdict;
    if (!pl_ps_verdict_decode(&verdict, message) ||
        verdict.worker >= core->opts.workers ||
        verdict.share >= core->opts.workers)
        return;
    pl_member *member = &core->members[verdict.worker];
    if (!member->fresh || verdict.incarnation != member->incarnation ||
        verdict.push != member->pushed)
        return; /* already received */
    member->fresh = false;
    member->unwanted = verdict.dropped;
    if (!member->unwanted) {
        member->counts_for = verdict.share;
        apply_settled(core, member);
        return;
    }
    drop_gradient(core, member);
    release_after(core, member);
}

void pl_async_void_pushes(pl_ps_core *core, pl_member *member, uint64_t last)
{
    if (!pl_core_leads(core) || !pl_core_is_worker(core, member))
        return;
    member->fresh = member->held = false;
    member->settled = last;
    pl_core_forget_have(core, pl_core_id(core, member));
}

void pl_async_gradient_arrived(pl_ps_core *core, pl_member *member)
{
    member->fresh = true;
    member->pushed = member->sequence;
    if (pl_core_leads(core))
        settle(core, member);
    else
        pl_core_send_have(core, pl_core_id(core, member));
}

void pl_async_release_push(pl_ps_core *core, pl_member *member)
{
    unsigned flags = member->unwanted ? PL_ANSWER_DROPPED : 0;
    if (member->fresh) {
        if (pl_core_leads(core) && core->stopping)
            settle(core, member);
    } else if (core->mode->may_go_on(core, member, &flags)) {
        pl_core_answer(core, member, flags);
    }
}

bool pl_async_is_decided(pl_ps_core *core, const pl_member *member,
                         unsigned *flags, bool *may)
{
    *flags |= pl_core_stop_flag(core);
    *may = true;
    if (!pl_core_leads(core) || (*flags & PL_ANSWER_STOP) != 0 ||
        member->granted)
        return true;
    /* The chief that froze the job pulls the parameters to test: no update is
     * made in between, and no worker that it could wait for advances. */
    if (core->frozen && member == core->members)
        return true;
    *may = false;
    return core->frozen;
}

/* Whether the chief makes no gradients now, and so no tests. */
static bool chief_rests(const pl_ps_core *core)
{
    const pl_member *chief = core->members;
    return chief->state != PL_MEMBER_HERE ||
           (chief->stage == PL_STAGE_WAITING && pl_core_idles(&chief->request));
}

/* A chief that has not yet pulled learns the step only with its first gradient:
 * that must not be after the test's step. */
static bool chief_is_to_begin(const pl_ps_core *core)
{
    const pl_member *chief = core->members;
    return !chief->granted && chief->stage != PL_STAGE_WAITING;
}

/* I6: all updates up to the next test are made or granted? */
static bool test_is_near(pl_ps_core *core)
{
    if (core->tests.count == 0 || chief_rests(core))
        return false;
    if (core->test_step == 0)
        core->test_step = pl_due_step_after(core->tests, core->step);
    int64_t expected = core->grants + chief_is_to_begin(core);
    return core->step + expected >= core->test_step;
}

bool pl_async_grant(pl_ps_core *core, pl_member *member, bool past_test)
{
    bool may = !all_granted(core); /* I5 */
    if (!past_test && test_is_near(core))
        may = may && member == core->members && core->grants == 0;
    pl_core_grant(core, member, may);
    return member->granted;
}

static bool may_go_on(pl_ps_core *core, pl_member *member, unsigned *flags)
{
    bool may;
    return pl_async_is_decided(core, member, flags, &may)
               ? may
               : pl_async_grant(core, member, false);
}

bool pl_async_all_wait(const pl_ps_core *core)
{
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

void pl_async_retry(pl_ps_core *core)
{
    bool leads = pl_core_leads(core);
    for (int32_t w = 0; w < core->opts.workers; w++)
        if (core->members[w].held && leads)
            settle(core, &core->members[w]);
        else if (core->members[w].held)
            apply_settled(core, &core->members[w]);
    for (int32_t w = 0; !leads && w < core->opts.workers; w++)
        if (core->members[w].fresh)
            pl_core_send_have(core, w);
}

pl_ps_have pl_async_have(const pl_ps_core *core, int32_t worker)
{
    return (pl_ps_have) {
        .worker = worker,
        .step = core->step,
        .incarnation = core->members[worker].incarnation,
        .push = core->members[worker].pushed,
    };
}

const pl_ps_mode_ops pl_ps_mode_async = {
    .name = "async",
    .begin_push = pl_async_begin_push,
    .gradient_arrived = pl_async_gradient_arrived,
    .release_push = pl_async_release_push,
    .may_go_on = may_go_on,
    .all_wait = pl_async_all_wait,
    .retry = pl_async_retry,
    .have = pl_async_have,
    .on_have = pl_async_on_have,
    .on_apply = pl_async_on_apply,
    .void_pushes = pl_async_void_pushes,
};
