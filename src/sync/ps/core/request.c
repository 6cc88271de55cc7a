/* Requests of tasks: how they arrive, in pieces or repeated, and their answers.
 *
 *   NONE -> ARRIVING -> WAITING -> ANSWERED -> ARRIVING (the next one) ...
 *
 * NONE: none yet, or the last one was refused.  ARRIVING: pieces are missing.
 * WAITING: complete, and the answer is not due.  VOID: the task has rejoined
 * since, and the request will never be answered.
 *
 * Invariants:
 *   R1  A member has one current request, the one with the highest sequence
 *       number; messages about earlier ones are ignored.
 *   R2  A request takes effect once; if repeated, it is only answered again.  A
 *       refused request that is repeated begins again, and is refused again.
 *   R3  An answer carries the sequence number of its request and the
 *       incarnation of the process that sent it.
 *   R4  A request of another generation or incarnation changes nothing. */
#include "sync/ps/core/core_priv.h"
#include "sync/ps/modes/mode.h"
#include "sync/ps/store/store.h"

#include "base/log.h"

#include <stdio.h>
#include <string.h>

void pl_core_ack(pl_ps_core *core, const pl_member *member, pl_ps_ack_kind kind)
{
    pl_core_reply(core, member, pl_ps_ack_encode(&(pl_ps_ack) { .kind = kind }),
                  NULL, false);
}

/* Whether the answer carries parameters. */
bool pl_core_has_params(const pl_member *member)
{
    return member->request.kind == PL_REQUEST_PULL ||
           (member->request.kind == PL_REQUEST_PUSH &&
            (member->answer & PL_ANSWER_STOP) == 0);
}

/* Send or resend the answer. */
static void deliver(pl_ps_core *core, pl_member *member)
{
    switch (member->request.kind) {
    case PL_REQUEST_PULL:
    case PL_REQUEST_PUSH:
        core->store->answer_again(core, member);
        break;
    case PL_REQUEST_FREEZE:
        pl_core_send_counts(core, member);
        break;
    case PL_REQUEST_SAVE_STATUS:
        pl_core_send_saved(core, member);
        break;
    case PL_REQUEST_SHARE:
        pl_core_send_share(core, member);
        break;
    case PL_REQUEST_DEAL:
        pl_core_send_deal(core, member);
        break;
    case PL_REQUEST_BYE:
        if (member == core->members) {
            pl_core_send_reports(core, member);
            break;
        }
        pl_core_ack(core, member, PL_ACKED_DONE);
        break;
    default:
        pl_core_ack(core, member, PL_ACKED_DONE);
        break;
    }
}

void pl_core_answer(pl_ps_core *core, pl_member *member, unsigned flags)
{
    member->stage = PL_STAGE_ANSWERED;
    member->answer = (uint8_t)flags;
    member->answer_step = core->step;
    if (member == core->members || pl_core_idles(&member->request))
        core->slowest_known = false; /* the worker may make gradients again */
    if (member->request.kind == PL_REQUEST_PULL ||
        member->request.kind == PL_REQUEST_PUSH)
        core->store->answer(core, member);
    else
        deliver(core, member);
}

void pl_core_refuse(pl_ps_core *core, const pl_member *member, const char *why)
{
    char name[32];
    if (pl_burst_shows(&core->refusals, core->now_ns))
        pl_log(PL_LOG_WARN, "%s (%s): refused: %s",
               pl_core_name(core, member, name), member->where, why);
    pl_core_reply_text(core, member, pl_ps_refuse_encode(false, 0), why);
}

void pl_core_complete(pl_ps_core *core, pl_member *member)
{
    if (member->request.kind == PL_REQUEST_PUSH) {
        pl_core_gradient(core, member);
        return;
    }
    pl_optim_reset(core->opts.optim);
    for (int32_t w = 0; w < core->opts.workers; w++)
        core->members[w].own = core->members[w].pace = 0;
    core->initialized = true;
    core->version++;
    core->step = member->request.init.step;
    if (core->step > 0)
        pl_core_lose_residuals(core);
    pl_core_answer(core, member, 0);
    pl_core_release(core);
}

void pl_core_end_pause(pl_ps_core *core, pl_member *member)
{
    if (member->paused)
        core->slowest_known = false;
    member->paused = false;
    if (member == core->members && core->frozen) {
        core->frozen = false;
        core->test_step = 0;
        pl_ps_core_retry(core, core->now_ns); /* what arrived meanwhile */
        pl_core_release(core);
    }
}

bool pl_core_settle_early(pl_ps_core *core, pl_member *member)
{
    pl_core_end_pause(core, member);
    return core->mode->begin_push(core, member);
}

/* Refuse an invalid request; its sender ends. */
void pl_core_turn_down(pl_ps_core *core, pl_member *member, const char *why)
{
    pl_core_refuse(core, member, why);
    member->stage = PL_STAGE_NONE;
}

static void begin_push(pl_ps_core *core, pl_member *member,
                       const pl_message *message)
{
    if (!pl_core_is_worker(core, member) || !core->initialized) {
        pl_core_refuse(core, member,
                       core->initialized
                           ? "only workers push"
                           : "pushed before there are parameters");
        member->stage = PL_STAGE_NONE;
        return;
    }
    if (!core->mode->lock_step && (member->fresh || member->held)) {
        pl_core_turn_down(core, member,
                          "pushed before the last gradient was settled");
        return;
    }
    core->store->begin_push(core, member, message);
}

static void begin_init(pl_ps_core *core, pl_member *member,
                       const pl_message *message)
{
    if (pl_core_id(core, member) != 0) {
        pl_core_refuse(core, member, "only the chief sends first parameters");
        member->stage = PL_STAGE_NONE;
        return;
    }
    if (core->ready) {
        pl_core_answer(core, member, 0);
        return;
    }
    core->initialized = false;
    core->store->begin_init(core, member, message);
}

static void begin_stop(pl_ps_core *core, pl_member *member,
                       const pl_message *message)
{
    char name[32];
    bool failed = member->request.stop.failed;
    pl_core_answer(core, member, 0);
    bool interrupt =
        !failed && message->frame.payload_bytes == strlen(PL_STOP_INTERRUPT) &&
        memcmp(message->payload, PL_STOP_INTERRUPT,
               strlen(PL_STOP_INTERRUPT)) == 0;
    pl_core_end(core, failed, "%s%s%.*s",
                failed ? pl_core_name(core, member, name) : "",
                failed ? ": " : "", (int)message->frame.payload_bytes,
                (const char *)message->payload);
    if (interrupt)
        pl_core_note_interrupt(core);
}

static void begin_pull(pl_ps_core *core, pl_member *member,
                       const pl_message *message)
{
    if (core->store->begin_pull != NULL &&
        core->store->begin_pull(core, member, message) != PL_OK) {
        pl_core_turn_down(core, member, pl_error_message());
        return;
    }
    member->stage = PL_STAGE_WAITING;
    /* A chief that ends the job after a test pushes no more: requests that wait
     * for the end of its pause would wait forever. */
    if ((member->request.pull.flags & PL_PULL_FINAL) != 0) {
        pl_core_end_pause(core, member);
        pl_ps_core_retry(core, core->now_ns);
    }
    pl_core_release_after(core, member);
}

static void begin_pause(pl_ps_core *core, pl_member *member)
{
    bool thaw = member->request.kind == PL_REQUEST_THAW;
    if (member != core->members) {
        pl_core_refuse(core, member, "only the chief pauses a job");
        member->stage = PL_STAGE_NONE;
        return;
    }
    member->paused = !thaw;
    core->frozen = member->request.kind == PL_REQUEST_FREEZE;
    if (thaw) {
        core->test_step = 0;
        pl_core_save_begun(core);
    }
    if (core->frozen)
        member->stage = PL_STAGE_WAITING;
    else
        pl_core_answer(core, member, 0);
    pl_ps_core_retry(core, core->now_ns);
    pl_core_release(core);
}

/* The chief sends other requests only when all servers have parameters.  Before
 * that no task gets any: a chief that restarts in between sends them again,
 * perhaps different ones. */
static void note_ready(pl_ps_core *core, const pl_member *member,
                       pl_ps_request_kind kind)
{
    if (pl_core_leads(core) && member == core->members && core->initialized &&
        kind != PL_REQUEST_INIT && kind != PL_REQUEST_LOAD)
        core->ready = true;
}

static void begin(pl_ps_core *core, pl_member *member,
                  const pl_ps_request *request, const pl_message *message)
{
    note_ready(core, member, request->kind);
    member->sequence = message->frame.sequence;
    member->request = *request;
    member->stage = PL_STAGE_ARRIVING;
    switch (request->kind) {
    case PL_REQUEST_PUSH:
        begin_push(core, member, message);
        break;
    case PL_REQUEST_INIT:
        begin_init(core, member, message);
        break;
    case PL_REQUEST_PULL:
        begin_pull(core, member, message);
        break;
    case PL_REQUEST_PAUSE:
    case PL_REQUEST_FREEZE:
    case PL_REQUEST_THAW:
        begin_pause(core, member);
        break;
    case PL_REQUEST_LOAD:
        pl_core_begin_load(core, member, message);
        break;
    case PL_REQUEST_SAVE_STATUS:
        member->stage = PL_STAGE_WAITING;
        pl_core_release(core);
        break;
    case PL_REQUEST_SAVE:
        pl_core_begin_save(core, member, message);
        break;
    case PL_REQUEST_SHARE:
        pl_core_begin_share(core, member);
        break;
    case PL_REQUEST_DEAL:
        pl_core_begin_deal(core, member);
        break;
    case PL_REQUEST_STOP:
        begin_stop(core, member, message);
        break;
    case PL_REQUEST_BYE:
        pl_core_on_bye(core, member, message);
        break;
    case PL_REQUEST_NONE:
        break;
    }
}

/* Handle a member's message that is not a request, or an invalid one. */
static void on_malformed(pl_ps_core *core, pl_member *member,
                         const pl_message *message)
{
    char why[64];
    if (message->frame.sequence < member->sequence ||
        message->frame.sequence == 0 ||
        (message->frame.sequence == member->sequence &&
         member->stage != PL_STAGE_NONE))
        return;
    snprintf(why, sizeof why, "not a request: malformed %s",
             pl_frame_kind_text(message->frame.kind));
    member->sequence = message->frame.sequence;
    member->request = (pl_ps_request) { .kind = PL_REQUEST_NONE };
    pl_core_turn_down(core, member, why);
}

/* A message of the current request: one of its pieces, or a probe. */
static void again(pl_ps_core *core, pl_member *member,
                  const pl_ps_request *request, const pl_message *message)
{
    bool has_data = pl_ps_request_has_data(request);
    if (has_data && member->stage != PL_STAGE_ARRIVING) {
        core->counts.duplicates++;
        return;
    }
    switch (member->stage) {
    case PL_STAGE_ARRIVING:
        if (request->kind != member->request.kind)
            break;
        if (has_data)
            core->store->take(core, member, request, message);
        else
            pl_core_ack(core, member, PL_ACKED_NEED);
        break;
    case PL_STAGE_WAITING:
        pl_core_ack(core, member, PL_ACKED_COMPLETE);
        break;
    case PL_STAGE_ANSWERED:
        deliver(core, member);
        break;
    case PL_STAGE_NONE: /* it was refused, and is refused again */
        begin(core, member, request, message);
        break;
    case PL_STAGE_VOID:
        break;
    }
}

static void on_ack(pl_ps_core *core, pl_member *member,
                   const pl_message *message)
{
    pl_ps_ack got;
    if (message->frame.sequence != member->sequence ||
        !pl_ps_ack_decode(&got, message))
        return;
    if (member == core->members && member->request.kind == PL_REQUEST_BYE)
        pl_core_reports_heard(core);
    if (core->store->acked != NULL && member->stage == PL_STAGE_ANSWERED &&
        pl_core_has_params(member))
        core->store->acked(core, member, &got);
}

static bool is_peer(const pl_member *member, pl_peer peer)
{
    return member->peer == peer && member->state != PL_MEMBER_ABSENT;
}

/* Look at the place where it was last found, then at all members. */
static pl_member *find_member(pl_ps_core *core, pl_peer peer)
{
    int32_t *guess = &core->by_peer[(uint32_t)peer & core->guess_mask];
    if (is_peer(&core->members[*guess], peer))
        return &core->members[*guess];
    for (int32_t i = 0; i < core->member_count; i++)
        if (is_peer(&core->members[i], peer)) {
            *guess = i;
            return &core->members[i];
        }
    return NULL;
}

static void from_member(pl_ps_core *core, pl_member *member,
                        const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    if (frame->generation != core->generation ||
        frame->incarnation != member->incarnation)
        return;
    pl_ps_request request;
    member->life.heard_ns = core->now_ns;
    pl_core_is_back(core, member);
    if (frame->kind == PL_FRAME_ACK)
        on_ack(core, member, message);
    else if (frame->kind == PL_FRAME_HAVE)
        pl_core_on_have(core, member, message);
    else if (frame->kind == PL_FRAME_SAVED)
        pl_core_on_saved(core, member, message);
    else if (!pl_ps_request_decode(&request, message))
        on_malformed(core, member, message);
    else if (frame->sequence == member->sequence && frame->sequence > 0)
        again(core, member, &request, message);
    else if (frame->sequence > member->sequence)
        begin(core, member, &request, message);
}

/* The number of a peer was reassigned. */
static void forget_peer(pl_ps_core *core, pl_peer peer)
{
    for (int32_t i = 0; i < core->member_count; i++)
        if (core->members[i].peer == peer)
            core->members[i].peer = PL_PEER_NONE;
}

void pl_ps_core_receive(pl_ps_core *core, const pl_message *message,
                        int64_t now_ns)
{
    core->now_ns = now_ns;
    if (message->first)
        forget_peer(core, message->from);
    if (message->from == PL_PEER_COORDINATOR) {
        pl_core_on_coordinator(core, message);
        return;
    }
    if (message->frame.kind == PL_FRAME_JOIN) {
        pl_core_on_join(core, message);
        return;
    }
    if (message->frame.kind == PL_FRAME_HEARTBEAT) {
        pl_core_on_heartbeat(core, message);
        return;
    }
    pl_member *member = find_member(core, message->from);
    if (member != NULL) {
        from_member(core, member, message);
        return;
    }
    bool unknown = !pl_core_gave(core, message->frame.incarnation) ||
                   message->frame.generation != core->generation;
    pl_core_send_text(
        core, message->from,
        pl_core_stamp(pl_ps_refuse_encode(unknown, message->frame.sequence),
                      message->frame.incarnation),
        "this task is not, or no longer, a member of the job");
}
