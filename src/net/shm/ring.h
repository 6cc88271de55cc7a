/* ring.h - one direction of a channel: slots for frames, room for small
 * payloads.
 *
 * One process writes, one reads.  Each keeps its own count and its own record
 * of the room in its own memory; everything the other writes is checked, so the
 * worst a faulty peer can do is to have its channel closed (PL_PEER).
 *
 * Threads: one writer, one reader. */
#ifndef PL_NET_SHM_RING_H
#define PL_NET_SHM_RING_H

#include "base/mem.h"
#include "net/frame.h"

#include <stdatomic.h>
#include <stdbool.h>

#define PL_RING_SLOTS  512 /* powers of 2 */
#define PL_RING_INLINE 65536

/* The place of a payload. */
enum {
    PL_PAYLOAD_NONE,
    PL_PAYLOAD_INLINE,
    PL_PAYLOAD_AREA
};

typedef struct pl_ring_slot {
    uint8_t frame[PL_FRAME_BYTES];
    uint32_t place;
    uint32_t bytes;
    uint64_t offset; /* in the ring's room or the writer's area */
    uint8_t unused[40];
} pl_ring_slot;

/* What both processes map. */
typedef struct pl_ring_memory {
    _Alignas(PL_CACHE_LINE) _Atomic uint32_t written; /* frames so far; wraps */
    _Alignas(PL_CACHE_LINE) _Atomic uint32_t read;
    _Alignas(PL_CACHE_LINE) _Atomic uint32_t sleeping; /* whether the reader
                                                          sleeps */
    _Alignas(PL_CACHE_LINE) pl_ring_slot slots[PL_RING_SLOTS];
    _Alignas(PL_CACHE_LINE) uint8_t room[PL_RING_INLINE];
} pl_ring_memory;

typedef struct pl_ring_writer {
    pl_ring_memory *memory;
    uint32_t written, read_seen;
    uint32_t begin, end;          /* of the room in use; they grow and wrap */
    uint32_t ends[PL_RING_SLOTS]; /* `end` after each slot */
} pl_ring_writer;

typedef struct pl_ring_reader {
    pl_ring_memory *memory;
    uint32_t read;
} pl_ring_reader;

/* Write a frame whose payload lies in the area (PL_PAYLOAD_AREA), is copied
 * into the ring (PL_PAYLOAD_INLINE) or is empty.  *asleep: the reader must be
 * woken.  PL_AGAIN when there is no room, without a text; PL_PEER when the
 * reader's count is impossible. */
pl_status pl_ring_put(pl_ring_writer *writer, const pl_frame *frame, int place,
                      const void *payload, uint64_t area_offset,
                      bool *asleep) PL_MUST_CHECK;

/* Copy the next slot without taking it: PL_AGAIN when there is none, without
 * a text; PL_PEER when the writer's count is impossible. */
pl_status pl_ring_peek(const pl_ring_reader *reader,
                       pl_ring_slot *out) PL_MUST_CHECK;
/* Release the slot last peeked and its room. */
void pl_ring_advance(pl_ring_reader *reader);

bool pl_ring_empty(const pl_ring_reader *reader);
/* Announce that the reader sleeps; check for frames once more before
 * sleeping. */
void pl_ring_sleep(pl_ring_reader *reader);
void pl_ring_wake(pl_ring_reader *reader);

#endif
