/* Requests of tasks: how they arrive, in pieces and twice, and their answers.
 */
#include "sync/ps/core/core_priv.h"
#include "sync/ps/store/table.h"

#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

static void ack(pl_ps_core *core, const pl_member *member, unsigned flags)
{
    pl_core_send(core, member->peer, pl_core_reply(member, PL_FRAME_ACK, flags),
                 NULL, false);
}

/* Does this answer carry parameters? */
static bool has_params(const pl_member *member)
{
    return member->request.kind == PL_FRAME_PULL ||
           (member->request.kind == PL_FRAME_PUSH &&
            (member->answer & PL_ANSWER_STOP) == 0);
}

static void deliver(pl_ps_core *core, pl_member *member);

/* Send as many pieces of the answer as the window allows.  Parameters that
 * changed under way are sent anew: in sync a worker computes on one step's. */
static void pump(pl_ps_core *core, pl_member *member)
{
    pl_stream *out = &member->out;
    bool changed = core->opts.mode == PL_PS_SYNC &&
                   member->answer_step != core->step &&
                   !pl_pieces_complete(&out->acked);
    if (changed) {
        pl_stream_start(out, 1, false);
        member->answer_step = core->step;
        member->answer |= (uint8_t)pl_core_stop_flag(core);
        if (!has_params(member)) {
            deliver(core, member);
            return;
        }
    }
    bool still = core->opts.mode == PL_PS_SYNC &&
                 core->opts.replicas == core->opts.workers;
    for (int32_t i = pl_stream_next(out); i >= 0; i = pl_stream_next(out)) {
        pl_piece_range piece = pl_pieces_range(&out->acked, i);
        pl_frame frame = pl_core_reply(member, PL_FRAME_PARAMS, member->answer);
        frame.step = core->step;
        frame.first = piece.first;
        frame.count = piece.count;
        frame.value[0] = member->made;
        frame.value[1] = member->own;
        frame.payload_bytes = piece.count * (uint32_t)sizeof(float);
        pl_core_send(core, member->peer, frame,
                     core->opts.params + piece.first - core->opts.first, still);
    }
}

/* Send the answer, or send it again. */
static void deliver(pl_ps_core *core, pl_member *member)
{
    if (core->table != NULL && (member->request.kind == PL_FRAME_PULL ||
                                member->request.kind == PL_FRAME_PUSH)) {
        pl_ps_table_deliver(core, member);
    } else if (has_params(member)) {
        pump(core, member);
    } else if (member->request.kind == PL_FRAME_PUSH) {
        pl_frame frame = pl_core_reply(member, PL_FRAME_PARAMS, member->answer);
        frame.step = core->step;
        frame.value[0] = member->made;
        frame.value[1] = member->own;
        pl_core_send(core, member->peer, frame, NULL, false);
    } else if (member->request.kind == PL_FRAME_BYE &&
               member == core->members) {
        pl_core_send_reports(core, member);
    } else if (member->request.kind == PL_FRAME_PAUSE &&
               (member->request.flags & PL_PAUSE_FREEZE) != 0) {
        pl_core_send_counts(core, member);
    } else if (member->request.kind == PL_FRAME_SAVE &&
               member->request.flags != 0) {
        pl_core_send_saved(core, member);
    } else if (member->request.kind == PL_FRAME_SHARE) {
        pl_core_send_share(core, member);
    } else {
        ack(core, member, PL_ACK_DONE);
    }
}

void pl_core_answer(pl_ps_core *core, pl_member *member, unsigned flags)
{
    member->stage = PL_STAGE_ANSWERED;
    member->answer = (uint8_t)flags;
    member->answer_step = core->step;
    if (has_params(member))
        pl_stream_start(&member->out, 1, false);
    deliver(core, member);
}

void pl_core_refuse(pl_ps_core *core, const pl_member *member, const char *why)
{
    char name[32];
    if (pl_burst_shows(&core->refusals, core->now_ns))
        pl_log(PL_LOG_WARN, "%s (%s): refused: %s",
               pl_core_name(core, member, name), member->where, why);
    pl_core_send_text(core, member->peer,
                      pl_core_reply(member, PL_FRAME_REFUSE, 0), why);
}

/* All of the gradient lies in memory that stays.  Others choose where their
 * pieces lie: none is believed of those that did not come yet. */
static bool stays(const pl_ps_core *core, const pl_message *message,
                  const float *base)
{
    return pl_lease_covers(message->lease, base,
                           (size_t)core->opts.count * sizeof *base);
}

static void point_at(pl_member *member, const float *base, pl_lease *lease)
{
    pl_lease *before = member->lease;
    member->lease = pl_lease_hold(lease);
    member->gradient = base;
    pl_lease_release(before);
}

/* Gradients are read where they arrived if that stays, else copied. */
static void store_gradient(pl_ps_core *core, pl_member *member,
                           const pl_message *message)
{
    int64_t offset = message->frame.first - core->opts.first;
    const float *from = message->payload;
    size_t bytes = message->frame.count * sizeof(float);
    bool whole = message->frame.count == core->opts.count;
    bool at_once = whole && core->opts.mode != PL_PS_SYNC && core->opts.ps == 1;
    const float *base = from - offset;
    if ((at_once || stays(core, message, base)) &&
        (member->gradient == NULL || member->gradient == base)) {
        point_at(member, base, message->lease);
        return;
    }
    if (member->gradient == NULL && member->staging == NULL &&
        PL_NEW_ALIGNED(member->staging, (size_t)core->opts.count) != PL_OK) {
        pl_core_end(core, true, "%s", pl_error_message());
        return;
    }
    if (member->gradient == NULL)
        member->gradient = member->staging;
    pl_core_keep(core, member);
    if (member->staging != NULL)
        memcpy(member->staging + offset, from, bytes);
}

static void store_init(pl_ps_core *core, const pl_message *message)
{
    memcpy(core->opts.params + message->frame.first - core->opts.first,
           message->payload, message->frame.count * sizeof(float));
}

static void complete(pl_ps_core *core, pl_member *member)
{
    if (member->request.kind == PL_FRAME_PUSH) {
        pl_core_gradient(core, member);
        return;
    }
    pl_optim_reset(core->opts.optim);
    for (int32_t w = 0; w < core->opts.workers; w++)
        core->members[w].own = core->members[w].pace = 0;
    core->initialized = true;
    core->step = member->request.step;
    pl_core_show_life(core); /* a job may be over before the next one */
    pl_core_answer(core, member, 0);
    pl_core_release(core);
}

/* One piece of a push or of the first parameters. */
static void take_piece(pl_ps_core *core, pl_member *member,
                       const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    int64_t plane = frame->kind == PL_FRAME_INIT ? frame->value[0] : 0;
    int32_t index =
        pl_pieces_find(&member->in, plane, frame->first, frame->count);
    if (index < 0 || frame->key_count != 0) {
        char why[160];
        int64_t end = core->opts.first + core->opts.count;
        snprintf(why, sizeof why,
                 "%s of %u floats at %lld: not a piece of the parameters "
                 "%lld to %lld here",
                 pl_frame_kind_text(frame->kind), frame->count,
                 (long long)frame->first, (long long)core->opts.first,
                 (long long)end);
        pl_core_refuse(core, member, why);
        return;
    }
    /* A save that was given up may still be reading: it is asked for again. */
    if (frame->kind == PL_FRAME_INIT && !pl_core_may_change(core, NULL))
        return;
    if (!pl_pieces_mark(&member->in, index)) {
        core->counts.duplicates++;
    } else if (frame->kind == PL_FRAME_PUSH) {
        store_gradient(core, member, message);
    } else {
        store_init(core, message);
    }
    if (pl_pieces_windowed(&member->in)) {
        pl_frame got = pl_core_reply(member, PL_FRAME_ACK, 0);
        got.first = frame->first;
        got.value[1] = frame->count;
        pl_core_send(core, member->peer, got, NULL, false);
    }
    if (pl_pieces_complete(&member->in) && !core->failed)
        complete(core, member);
}

static bool has_data(const pl_frame *frame)
{
    return frame->count > 0 ||
           (frame->kind == PL_FRAME_PUSH && (frame->flags & PL_PUSH_DATA) != 0);
}

void pl_core_end_pause(pl_ps_core *core, pl_member *member)
{
    member->paused = false;
    if (member == core->members && core->frozen) {
        core->frozen = false;
        pl_core_release(core);
    }
}

/* A push that needs no data: too late, or already here.  True: handled. */
static bool settle_early(pl_ps_core *core, pl_member *member)
{
    int32_t worker = pl_core_id(core, member);
    int64_t step = member->request.step;
    pl_core_end_pause(core, member);
    if (core->stopping ||
        (core->opts.mode == PL_PS_SYNC && step == core->step &&
         pl_core_stop_flag(core) != 0)) {
        member->settled = member->sequence;
        member->dropped++;
        core->counts.dropped++;
        pl_core_answer(core, member,
                       pl_core_stop_flag(core) | PL_ANSWER_DROPPED);
        return true;
    }
    if (core->opts.mode != PL_PS_SYNC)
        return false;
    if (member->fresh && step == core->step) { /* sent by one that was lost */
        member->stage = PL_STAGE_WAITING;
        ack(core, member, PL_ACK_COMPLETE);
        return true;
    }
    if (step == core->step)
        return false;
    bool counted = step == core->step - 1 && core->chosen[worker] != 0;
    if (!counted) {
        member->dropped++;
        core->counts.dropped++;
    }
    pl_core_answer(core, member,
                   pl_core_stop_flag(core) | (counted ? 0 : PL_ANSWER_DROPPED));
    return true;
}

/* A request that is wrong; its sender ends. */
static void turn_down(pl_ps_core *core, pl_member *member, const char *why)
{
    pl_core_refuse(core, member, why);
    member->stage = PL_STAGE_NONE;
}

/* A push of sparse parameters: all of it is here. */
static void take_keyed(pl_ps_core *core, pl_member *member,
                       const pl_message *message)
{
    pl_status status = pl_ps_table_push(core, member, message);
    if (status == PL_AGAIN) {
        ack(core, member, PL_ACK_NEED);
        return;
    }
    if (status != PL_OK) {
        turn_down(core, member, pl_error_message());
        return;
    }
    if (settle_early(core, member))
        return;
    status = pl_ps_table_gradient(core, member, message);
    if (status != PL_OK)
        pl_core_end(core, true, "%s", pl_error_message());
    else
        pl_core_gradient(core, member);
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
    if (core->opts.mode != PL_PS_SYNC && (member->fresh || member->held)) {
        turn_down(core, member, "pushed before the last gradient was settled");
        return;
    }
    if (core->table != NULL) {
        if (has_data(&message->frame))
            take_keyed(core, member, message);
        else
            ack(core, member, PL_ACK_NEED);
        return;
    }
    if (settle_early(core, member))
        return;
    if (!member->fresh)
        member->gradient = NULL;
    pl_pieces_reset(&member->in, 1);
    if (has_data(&message->frame))
        take_piece(core, member, message);
    else
        ack(core, member, PL_ACK_NEED);
}

/* Sparse parameters are made here, not sent. */
static void fill_table(pl_ps_core *core, pl_member *member,
                       const pl_message *message)
{
    const pl_ps_core_ops *ops = core->opts.ops;
    if (ops->touch != NULL &&
        !ops->touch(core->opts.context, 0, core->opts.count))
        member->stage = PL_STAGE_NONE; /* a save ends first; it comes again */
    else if (pl_ps_table_fill(core, message) != PL_OK)
        turn_down(core, member, pl_error_message());
    else
        complete(core, member);
}

static void begin_init(pl_ps_core *core, pl_member *member,
                       const pl_message *message)
{
    if (pl_core_id(core, member) != 0) {
        pl_core_refuse(core, member, "only the chief sends first parameters");
        member->stage = PL_STAGE_NONE;
        return;
    }
    int64_t step = message->frame.step;
    if (step < 0 || step > PL_COUNT_MOST) {
        pl_core_refuse(core, member,
                       "first parameters of a step that cannot be");
        member->stage = PL_STAGE_NONE;
        return;
    }
    if (core->ready) {
        pl_core_answer(core, member, 0);
        return;
    }
    core->initialized = false;
    if (core->table != NULL) {
        fill_table(core, member, message);
        return;
    }
    pl_pieces_reset(&member->in, 1);
    if (has_data(&message->frame))
        take_piece(core, member, message);
    else
        ack(core, member, PL_ACK_NEED);
}

static void begin_stop(pl_ps_core *core, pl_member *member,
                       const pl_message *message)
{
    char name[32];
    bool failed = (message->frame.flags & PL_STOP_FAILED) != 0;
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
    if (core->table != NULL &&
        pl_ps_table_pull(core, member, message) != PL_OK) {
        turn_down(core, member, pl_error_message());
        return;
    }
    member->stage = PL_STAGE_WAITING;
    /* A chief that ends the job after a test pushes no more: what waits for
     * the end of its pause would wait for good. */
    if ((message->frame.flags & PL_PULL_FINAL) != 0) {
        pl_core_end_pause(core, member);
        pl_ps_core_retry(core, core->now_ns);
    }
    pl_core_release(core);
}

static void begin_pause(pl_ps_core *core, pl_member *member)
{
    unsigned flags = member->request.flags;
    if (member != core->members) {
        pl_core_refuse(core, member, "only the chief pauses a job");
        member->stage = PL_STAGE_NONE;
        return;
    }
    member->paused = (flags & PL_PAUSE_THAW) == 0;
    core->frozen = (flags & PL_PAUSE_FREEZE) != 0;
    if ((flags & PL_PAUSE_THAW) != 0)
        pl_core_save_begun(core);
    if (core->frozen)
        member->stage = PL_STAGE_WAITING;
    else
        pl_core_answer(core, member, 0);
    pl_ps_core_retry(core, core->now_ns);
    pl_core_release(core);
}

/* The chief goes on when all servers have parameters.  Before, nobody gets
 * any: a chief that comes back in between gives them once more, perhaps
 * others. */
static void note_ready(pl_ps_core *core, const pl_member *member,
                       pl_frame_kind kind)
{
    if (pl_core_leads(core) && member == core->members && core->initialized &&
        kind != PL_FRAME_INIT && kind != PL_FRAME_LOAD)
        core->ready = true;
}

static void begin(pl_ps_core *core, pl_member *member,
                  const pl_message *message)
{
    note_ready(core, member, message->frame.kind);
    member->sequence = message->frame.sequence;
    member->request = message->frame;
    member->stage = PL_STAGE_ARRIVING;
    switch (message->frame.kind) {
    case PL_FRAME_PUSH:
        begin_push(core, member, message);
        break;
    case PL_FRAME_INIT:
        begin_init(core, member, message);
        break;
    case PL_FRAME_PULL:
        begin_pull(core, member, message);
        break;
    case PL_FRAME_PAUSE:
        begin_pause(core, member);
        break;
    case PL_FRAME_LOAD:
        pl_core_begin_load(core, member, message);
        break;
    case PL_FRAME_SAVE:
        pl_core_begin_save(core, member, message);
        break;
    case PL_FRAME_SHARE:
        pl_core_begin_share(core, member);
        break;
    case PL_FRAME_STOP:
        begin_stop(core, member, message);
        break;
    case PL_FRAME_BYE:
        pl_core_on_bye(core, member, message);
        break;
    default:
        pl_core_refuse(core, member, "not a request");
        member->stage = PL_STAGE_NONE;
        break;
    }
}

/* The request at hand once more: a piece of it, or a question about it. */
static void again(pl_ps_core *core, pl_member *member,
                  const pl_message *message)
{
    if (has_data(&message->frame) && member->stage != PL_STAGE_ARRIVING) {
        core->counts.duplicates++;
        return;
    }
    switch (member->stage) {
    case PL_STAGE_ARRIVING:
        if (message->frame.kind != member->request.kind)
            break;
        if (has_data(&message->frame) && core->table != NULL)
            take_keyed(core, member, message);
        else if (has_data(&message->frame))
            take_piece(core, member, message);
        else
            ack(core, member, PL_ACK_NEED);
        break;
    case PL_STAGE_WAITING:
        ack(core, member, PL_ACK_COMPLETE);
        break;
    case PL_STAGE_ANSWERED:
        if (has_params(member))
            pl_stream_retry(&member->out);
        deliver(core, member);
        break;
    case PL_STAGE_NONE: /* it was refused: so it is again */
        begin(core, member, message);
        break;
    case PL_STAGE_VOID:
        break;
    }
}

static void on_ack(pl_ps_core *core, pl_member *member, const pl_frame *frame)
{
    if (member == core->members && member->request.kind == PL_FRAME_BYE &&
        frame->sequence == member->sequence)
        pl_core_reports_heard(core);
    if (core->table != NULL || frame->sequence != member->sequence ||
        member->stage != PL_STAGE_ANSWERED || !has_params(member) ||
        (core->opts.mode == PL_PS_SYNC && frame->step != member->answer_step))
        return;
    int32_t index = pl_pieces_find(&member->out.acked, frame->value[0],
                                   frame->first, frame->value[1]);
    if (index < 0)
        return;
    pl_stream_ack(&member->out, index);
    pump(core, member);
}

static pl_member *find_member(pl_ps_core *core, pl_peer peer)
{
    for (int32_t i = 0; i < core->member_count; i++)
        if (core->members[i].peer == peer &&
            core->members[i].state != PL_MEMBER_ABSENT)
            return &core->members[i];
    return NULL;
}

static void from_member(pl_ps_core *core, pl_member *member,
                        const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    if (frame->generation != core->generation ||
        frame->incarnation != member->incarnation)
        return;
    member->life.heard_ns = core->now_ns;
    pl_core_is_back(core, member);
    if (frame->kind == PL_FRAME_ACK)
        on_ack(core, member, frame);
    else if (frame->kind == PL_FRAME_HAVE)
        pl_core_on_have(core, member, frame);
    else if (frame->kind == PL_FRAME_SAVED)
        pl_core_on_saved(core, member, message);
    else if (frame->sequence == member->sequence && frame->sequence > 0)
        again(core, member, message);
    else if (frame->sequence > member->sequence)
        begin(core, member, message);
}

/* The number of a peer is now another's. */
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
    pl_core_send_text(core, message->from,
                      (pl_frame) {
                          .kind = PL_FRAME_REFUSE,
                          .flags = unknown ? PL_REFUSE_UNKNOWN : 0,
                          .incarnation = message->frame.incarnation,
                          .sequence = message->frame.sequence,
                      },
                      "this task is not, or no longer, a member of the job");
}
