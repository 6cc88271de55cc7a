/* The layout of each ring message in a frame, known to this file only. */
#include "sync/allreduce/ring/messages.h"

#include "base/bytes.h"

#include <string.h>

#define FLAG_HUB 1u

void pl_ring_place_encode(const pl_ring_place *place,
                          uint8_t out[PL_RING_PLACE_BYTES])
{
    const int32_t values[] = { place->rank, place->count, place->prev,
                               place->next };
    for (int i = 0; i < 4; i++)
        pl_put_u32(out + 4 * i, (uint32_t)values[i]);
}

bool pl_ring_place_decode(pl_ring_place *out, const void *bytes, size_t size,
                          int32_t workers)
{
    const uint8_t *at = bytes;
    uint32_t values[4];
    if (size != PL_RING_PLACE_BYTES)
        return false;
    for (int i = 0; i < 4; i++) {
        values[i] = pl_get_u32(at + 4 * i);
        if (values[i] > (uint32_t)workers)
            return false;
    }
    *out = (pl_ring_place) { (int32_t)values[0], (int32_t)values[1],
                             (int32_t)values[2], (int32_t)values[3] };
    return out->count >= 2 && out->rank > 0 && out->rank < out->count &&
           out->prev < workers && out->next < workers;
}

static pl_frame link_frame(pl_frame_kind kind, const pl_ring_link *link)
{
    return (pl_frame) {
        .kind = kind,
        .flags = link->hub ? FLAG_HUB : 0,
        .generation = link->generation,
        .value = { link->worker },
        .payload_bytes = PL_OFFER_BYTES,
    };
}

pl_frame pl_ring_link_encode(const pl_ring_link *link)
{
    return link_frame(PL_FRAME_LINK, link);
}

pl_frame pl_ring_linked_encode(const pl_ring_link *link)
{
    return link_frame(PL_FRAME_LINKED, link);
}

bool pl_ring_link_decode(pl_ring_link *out, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    *out = (pl_ring_link) {
        .generation = frame->generation,
        .worker = (int32_t)frame->value[0],
        .hub = (frame->flags & FLAG_HUB) != 0,
        .offer = message->payload,
    };
    return frame->payload_bytes == PL_OFFER_BYTES &&
           memchr(message->payload, '\0', PL_OFFER_BYTES) != NULL &&
           frame->value[0] >= 0 && frame->value[0] <= INT32_MAX;
}

pl_frame pl_ring_piece_encode(const pl_ring_piece *piece)
{
    return (pl_frame) {
        .kind = PL_FRAME_PIECE,
        .generation = piece->generation,
        .sequence = piece->sum,
        .first = piece->first,
        .count = piece->count,
        .value = { piece->hop },
        .payload_bytes = (uint32_t)piece->data.size,
    };
}

bool pl_ring_piece_decode(pl_ring_piece *out, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    *out = (pl_ring_piece) {
        .generation = frame->generation,
        .sum = frame->sequence,
        .first = frame->first,
        .count = frame->count,
        .hop = (int32_t)frame->value[0],
        .data = { message->payload, frame->payload_bytes },
    };
    return frame->first >= 0 && frame->value[0] >= 0 &&
           frame->value[0] <= INT32_MAX;
}

pl_frame pl_ring_mark_encode(pl_frame_kind kind, const pl_ring_mark *mark)
{
    return (pl_frame) {
        .kind = kind,
        .generation = mark->generation,
        .sequence = mark->sum,
    };
}

bool pl_ring_mark_decode(pl_ring_mark *out, const pl_message *message)
{
    *out =
        (pl_ring_mark) { message->frame.generation, message->frame.sequence };
    return message->frame.payload_bytes == 0;
}

pl_frame pl_ring_status_encode(pl_frame_kind kind, const pl_ring_status *status)
{
    return (pl_frame) {
        .kind = kind,
        .generation = status->generation,
        .sequence = status->number,
        .value = { status->worker },
        .payload_bytes = status->size,
    };
}

bool pl_ring_status_decode(pl_ring_status *out, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    *out = (pl_ring_status) {
        .generation = frame->generation,
        .worker = (int32_t)frame->value[0],
        .number = frame->sequence,
        .bytes = message->payload,
        .size = frame->payload_bytes,
    };
    return frame->payload_bytes > 0 && frame->value[0] >= 0 &&
           frame->value[0] <= INT32_MAX;
}
