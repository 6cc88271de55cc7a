/* The layout of each membership message in a frame, known to this file only. */
#include "job/member/messages.h"

#define FLAG_READY    1u
#define FLAG_REPORTED 1u
#define FLAG_FAILED   1u
#define FLAG_USAGE    2u

bool pl_member_message(pl_frame_kind kind)
{
    return kind == PL_FRAME_JOIN || kind == PL_FRAME_WELCOME ||
           kind == PL_FRAME_HEARTBEAT || kind == PL_FRAME_HEARTBEAT_ACK ||
           kind == PL_FRAME_REFUSE || kind == PL_FRAME_ROLL ||
           kind == PL_FRAME_OVER || kind == PL_FRAME_STOP ||
           kind == PL_FRAME_BYE;
}

/* Whether a received 64-bit number is a possible member number. */
static bool fits(int64_t member)
{
    return member >= 0 && member <= INT32_MAX;
}

pl_frame pl_join_encode(const pl_join_message *join)
{
    return (pl_frame) {
        .kind = PL_FRAME_JOIN,
        .flags = join->ready ? FLAG_READY : 0,
        .generation = join->generation,
        .incarnation = join->incarnation,
        .value = { join->member, join->attempt },
        .payload_bytes = join->fact_bytes,
    };
}

bool pl_join_decode(pl_join_message *out, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    *out = (pl_join_message) {
        .member = (int32_t)frame->value[0],
        .incarnation = frame->incarnation,
        .generation = frame->generation,
        .attempt = frame->value[1],
        .ready = (frame->flags & FLAG_READY) != 0,
        .facts = message->payload,
        .fact_bytes = frame->payload_bytes,
    };
    return frame->kind == PL_FRAME_JOIN && fits(frame->value[0]) &&
           frame->incarnation != 0 && frame->value[1] > 0;
}

pl_frame pl_welcome_encode(const pl_welcome_message *welcome)
{
    return (pl_frame) {
        .kind = PL_FRAME_WELCOME,
        .generation = welcome->generation,
        .incarnation = welcome->incarnation,
        .value = { 0, welcome->attempt },
        .payload_bytes = welcome->fact_bytes,
    };
}

bool pl_welcome_decode(pl_welcome_message *out, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    *out = (pl_welcome_message) {
        .incarnation = frame->incarnation,
        .generation = frame->generation,
        .attempt = frame->value[1],
        .facts = message->payload,
        .fact_bytes = frame->payload_bytes,
    };
    return frame->kind == PL_FRAME_WELCOME && frame->generation > 0;
}

pl_frame pl_heartbeat_encode(const pl_heartbeat_message *heartbeat)
{
    return (pl_frame) {
        .kind = PL_FRAME_HEARTBEAT,
        .flags = (uint8_t)heartbeat->vital.phase,
        .generation = heartbeat->generation,
        .incarnation = heartbeat->incarnation,
        .sequence = heartbeat->number,
        .step = heartbeat->vital.step,
        .first = heartbeat->transfers,
        .value = { heartbeat->member, heartbeat->vital.progress },
    };
}

bool pl_heartbeat_decode(pl_heartbeat_message *out, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    if (frame->kind != PL_FRAME_HEARTBEAT || !fits(frame->value[0]) ||
        frame->flags >= PL_PHASES)
        return false;
    *out = (pl_heartbeat_message) {
        .member = (int32_t)frame->value[0],
        .incarnation = frame->incarnation,
        .generation = frame->generation,
        .number = frame->sequence,
        .vital = { .step = frame->step,
                   .phase = (pl_phase)frame->flags,
                   .progress = frame->value[1] },
        .transfers = frame->first,
    };
    return true;
}

pl_frame pl_ack_encode(const pl_ack_message *ack)
{
    return (pl_frame) {
        .kind = PL_FRAME_HEARTBEAT_ACK,
        .flags = ack->reported ? FLAG_REPORTED : 0,
        .generation = ack->generation,
        .incarnation = ack->incarnation,
        .sequence = ack->number,
        .value = { ack->clock_ns },
    };
}

bool pl_ack_decode(pl_ack_message *out, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    *out = (pl_ack_message) {
        .incarnation = frame->incarnation,
        .generation = frame->generation,
        .number = frame->sequence,
        .clock_ns = frame->value[0],
        .reported = (frame->flags & FLAG_REPORTED) != 0,
    };
    return frame->kind == PL_FRAME_HEARTBEAT_ACK;
}

pl_frame pl_note_encode(const pl_note_message *note)
{
    return (pl_frame) {
        .kind = note->kind,
        .flags = (uint8_t)((note->failed ? FLAG_FAILED : 0) |
                           (note->usage ? FLAG_USAGE : 0)),
        .generation = note->generation,
        .incarnation = note->incarnation,
        .value = { note->member },
        .payload_bytes = note->text_bytes,
    };
}

bool pl_note_decode(pl_note_message *out, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    *out = (pl_note_message) {
        .kind = frame->kind,
        .member = (int32_t)frame->value[0],
        .incarnation = frame->incarnation,
        .generation = frame->generation,
        .failed = (frame->flags & FLAG_FAILED) != 0,
        .usage = (frame->flags & FLAG_USAGE) != 0,
        .text = message->payload,
        .text_bytes = frame->payload_bytes,
    };
    return fits(frame->value[0]);
}
