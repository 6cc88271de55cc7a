/* A ring of frames in shared memory, written by one process and read by
 * another: where a frame is placed, when its room is free again, and which
 * counts of the other side are accepted.
 *
 * N1  Room is reused only when the reader has released the frame there and all
 *     frames before it.
 * N2  Each side trusts only what it wrote itself; an impossible count of the
 *     other is an error, never an access.
 * N3  A reader that is about to sleep sees every frame written before, or the
 *     writer sees that it sleeps. */
#include "net/shm/ring.h"

#include <string.h>

_Static_assert(sizeof(pl_ring_slot) == 128, "a slot is two cache lines");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "processes share atomic counts");

/* Reclaim the room that the reader has released. */
static pl_status reclaim(pl_ring_writer *writer)
{
    uint32_t read =
        atomic_load_explicit(&writer->memory->read, memory_order_acquire);
    if (read == writer->read_seen)
        return PL_OK;
    if (read - writer->read_seen > writer->written - writer->read_seen)
        return PL_FAIL(PL_PEER,
                       "shared memory: %u frames read of %u written, %u before",
                       (unsigned)read, (unsigned)writer->written,
                       (unsigned)writer->read_seen);
    writer->begin = writer->ends[(read - 1) % PL_RING_SLOTS];
    writer->read_seen = read;
    /* Empty: start at the front again, which is still in the cache. */
    if (read == writer->written)
        writer->begin = writer->end = 0;
    return PL_OK;
}

/* Find `bytes` of contiguous room; *end is its end. */
static bool find_room(const pl_ring_writer *writer, uint32_t bytes,
                      uint32_t *offset, uint32_t *end)
{
    if (bytes > PL_RING_INLINE)
        return false;
    uint32_t need = (bytes + PL_CACHE_LINE - 1) / PL_CACHE_LINE * PL_CACHE_LINE;
    uint32_t at = writer->end;
    uint32_t left = PL_RING_INLINE - at % PL_RING_INLINE;
    if (need > left)
        at += left;
    *offset = at % PL_RING_INLINE;
    *end = at + need;
    return *end - writer->begin <= PL_RING_INLINE;
}

pl_status pl_ring_put(pl_ring_writer *writer, const pl_frame *frame, int place,
                      const void *payload, uint64_t area_offset, bool *asleep)
{
    pl_ring_memory *memory = writer->memory;
    PL_TRY(reclaim(writer));
    uint32_t offset = 0, end = writer->end;
    if (writer->written - writer->read_seen == PL_RING_SLOTS)
        return PL_AGAIN;
    if (place == PL_PAYLOAD_INLINE &&
        !find_room(writer, frame->payload_bytes, &offset, &end))
        return PL_AGAIN;

    uint32_t at = writer->written % PL_RING_SLOTS;
    pl_ring_slot *slot = &memory->slots[at];
    pl_frame_write(frame, slot->frame);
    slot->place = (uint32_t)place;
    slot->bytes = frame->payload_bytes;
    slot->offset = place == PL_PAYLOAD_AREA ? area_offset : offset;
    if (place == PL_PAYLOAD_INLINE)
        memcpy(memory->room + offset, payload, frame->payload_bytes);
    writer->ends[at] = writer->end = end;
    writer->written++;
    /* Sequential order: either the reader sees the frame before it sleeps, or
     * we see that it sleeps. */
    atomic_store(&memory->written, writer->written);
    *asleep = atomic_load(&memory->sleeping) != 0 &&
              atomic_exchange(&memory->sleeping, 0) != 0;
    return PL_OK;
}

pl_status pl_ring_peek(const pl_ring_reader *reader, pl_ring_slot *out)
{
    uint32_t written =
        atomic_load_explicit(&reader->memory->written, memory_order_acquire);
    if (written == reader->read)
        return PL_AGAIN;
    if (written - reader->read > PL_RING_SLOTS)
        return PL_FAIL(PL_PEER,
                       "shared memory: %u frames written, %u read, at most %d "
                       "between",
                       (unsigned)written, (unsigned)reader->read,
                       PL_RING_SLOTS);
    memcpy(out, &reader->memory->slots[reader->read % PL_RING_SLOTS],
           sizeof *out);
    return PL_OK;
}

void pl_ring_advance(pl_ring_reader *reader)
{
    reader->read++;
    atomic_store_explicit(&reader->memory->read, reader->read,
                          memory_order_release);
}

bool pl_ring_empty(const pl_ring_reader *reader)
{
    return atomic_load(&reader->memory->written) == reader->read;
}

void pl_ring_sleep(pl_ring_reader *reader)
{
    atomic_store(&reader->memory->sleeping, 1);
}

void pl_ring_wake(pl_ring_reader *reader)
{
    atomic_store(&reader->memory->sleeping, 0);
}
