/* The layout of each message of a matrix product in a frame, known to this file
 * only. */
#include "matmul/messages.h"

#include <string.h>

pl_frame pl_block_link_encode(pl_frame_kind kind, const pl_block_link *link)
{
    return (pl_frame) {
        .kind = kind,
        .value = { link->worker },
        .payload_bytes = (uint32_t)strlen(link->offer) + 1,
    };
}

bool pl_block_link_decode(pl_block_link *out, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    if (frame->payload_bytes == 0 || frame->payload_bytes > PL_OFFER_BYTES ||
        frame->value[0] < 0 || frame->value[0] > INT32_MAX)
        return false;
    out->worker = (int32_t)frame->value[0];
    memcpy(out->offer, message->payload, frame->payload_bytes);
    return out->offer[frame->payload_bytes - 1] == '\0';
}

pl_frame pl_block_pull_encode(const pl_block_pull *pull)
{
    return (pl_frame) {
        .kind = PL_FRAME_PULL,
        .sequence = pull->sequence,
        .step = pull->matrix,
        .first = pull->first,
        .value = { pull->i << 32 | pull->j, pull->count },
    };
}

void pl_block_pull_decode(pl_block_pull *out, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    *out = (pl_block_pull) {
        .sequence = frame->sequence,
        .matrix = frame->step,
        .i = frame->value[0] >> 32,
        .j = frame->value[0] & UINT32_MAX,
        .first = frame->first,
        .count = frame->value[1],
    };
}

pl_frame pl_block_piece_encode(const pl_block_piece *piece)
{
    return (pl_frame) {
        .kind = PL_FRAME_PARAMS,
        .sequence = piece->sequence,
        .first = piece->first,
        .count = piece->count,
        .payload_bytes = piece->count * (uint32_t)sizeof(float),
    };
}

bool pl_block_piece_decode(pl_block_piece *out, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    *out = (pl_block_piece) {
        .sequence = frame->sequence,
        .first = frame->first,
        .count = frame->count,
        .floats = message->payload,
    };
    return frame->payload_bytes == (uint64_t)frame->count * sizeof(float);
}
