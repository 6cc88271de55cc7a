/* messages.h - the messages of a ring, one struct for each kind; those of
 * membership are in job/member/messages.h.
 *
 *   LINK       worker to its next and to the chief: an offer of shared memory
 *   LINKED     ... and the answer
 *   READY      worker to the previous one: a sum has been started here
 *   PIECE      worker to the next: a stripe of a sum after some hops
 *   DONE       worker to the previous one: the sum is complete here
 *   EXCHANGE   worker to the chief: its status
 *   EXCHANGED  chief to worker: the combined status
 *
 * encode gives the frame's header; decode checks all that can be checked
 * without knowing the ring.
 *
 * Threads: any. */
#ifndef PL_SYNC_ALLREDUCE_RING_MESSAGES_H
#define PL_SYNC_ALLREDUCE_RING_MESSAGES_H

#include "net/endpoint.h"
#include "sync/codec.h"

/* The facts of a WELCOME: a worker's place in the ring.  Addresses follow from
 * the cluster, so a rendezvous of N workers takes N small messages. */
typedef struct pl_ring_place {
    int32_t rank, count;
    int32_t prev, next; /* workers */
} pl_ring_place;

#define PL_RING_PLACE_BYTES 16

typedef struct pl_ring_link {
    uint32_t generation;
    int32_t worker;    /* the sender; in LINKED not used */
    bool hub;          /* to the chief, else to the next worker */
    const char *offer; /* or the answer: [PL_OFFER_BYTES], terminated */
} pl_ring_link;

typedef struct pl_ring_piece {
    uint32_t generation;
    uint64_t sum;
    int64_t first;
    uint32_t count;
    int32_t hop;
    pl_encoded data; /* of `count` floats */
} pl_ring_piece;

/* READY and DONE. */
typedef struct pl_ring_mark {
    uint32_t generation;
    uint64_t sum;
} pl_ring_mark;

/* EXCHANGE and EXCHANGED; `number` is that of the exchange. */
typedef struct pl_ring_status {
    uint32_t generation;
    int32_t worker; /* the sender */
    uint64_t number;
    const void *bytes;
    uint32_t size;
} pl_ring_status;

void pl_ring_place_encode(const pl_ring_place *place,
                          uint8_t out[PL_RING_PLACE_BYTES]);
/* false: not a place in a ring of `workers`. */
bool pl_ring_place_decode(pl_ring_place *out, const void *bytes, size_t size,
                          int32_t workers);

pl_frame pl_ring_link_encode(const pl_ring_link *link);
pl_frame pl_ring_linked_encode(const pl_ring_link *link);
bool pl_ring_link_decode(pl_ring_link *out, const pl_message *message);
pl_frame pl_ring_piece_encode(const pl_ring_piece *piece);
bool pl_ring_piece_decode(pl_ring_piece *out, const pl_message *message);
pl_frame pl_ring_mark_encode(pl_frame_kind kind, const pl_ring_mark *mark);
bool pl_ring_mark_decode(pl_ring_mark *out, const pl_message *message);
pl_frame pl_ring_status_encode(pl_frame_kind kind,
                               const pl_ring_status *status);
bool pl_ring_status_decode(pl_ring_status *out, const pl_message *message);

#endif
