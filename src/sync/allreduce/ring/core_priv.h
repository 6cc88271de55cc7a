/* core_priv.h - what the parts of the ring's core share.
 *
 *   core.c     creation, the status exchange, dispatch
 *   members.c  places and links
 *   sums.c     pieces
 *
 * Threads: one at a time. */
#ifndef PL_SYNC_ALLREDUCE_RING_CORE_PRIV_H
#define PL_SYNC_ALLREDUCE_RING_CORE_PRIV_H

#include "job/member/member.h"
#include "sync/allreduce/ring/core.h"
#include "sync/allreduce/ring/messages.h"

typedef enum pl_ring_phase {
    PL_RING_APART,   /* in no generation */
    PL_RING_LINKING, /* in a generation; connecting */
    PL_RING_FORMED,
} pl_ring_phase;

/* The chief's state of a worker. */
typedef struct pl_ring_seat {
    int32_t rank;
    bool told; /* its status of this exchange has arrived */
    size_t status_bytes;
    char answer[PL_OFFER_BYTES]; /* to its LINK to the hub */
    bool answered;
} pl_ring_seat;

typedef struct pl_ring_sum {
    pl_sum_range range;
    int32_t left; /* pieces still to arrive */
} pl_ring_sum;

struct pl_ring_core {
    pl_ring_core_opts opts;
    bool chief;
    pl_membership *membership;
    pl_ring_phase phase;
    bool formed_once;
    int64_t now_ns; /* of the call under way */
    int64_t refused;

    pl_ring_place place;
    int32_t *roster;     /* the chief's: workers by rank */
    pl_ring_seat *seats; /* the chief's: [workers] */
    int32_t told_count;  /* seats whose status of this exchange has arrived */
    pl_peer prev;        /* -1: not linked */
    bool linked_next, linked_hub;
    int64_t link_ns, next_link_ns; /* when linking began; when to send again */
    char offer[2][PL_OFFER_BYTES]; /* to the next, to the hub */
    char prev_answer[PL_OFFER_BYTES];
    int64_t progress; /* messages of sums and of the exchange */

    int64_t stripe;   /* floats */
    int64_t pieces;   /* pieces allocated */
    uint8_t *got;     /* pieces: how often each has arrived in its sum */
    int16_t *pending; /* pieces: hop that waits to be sent; -1: none */
    pl_encoded *wire; /* pieces: the encoded piece for that hop */
    pl_coder gradients, exact;
    pl_ring_sum sums[PL_COLLECTIVE_SUMS_MOST];
    int32_t started;
    uint64_t base;       /* number of the first of these sums */
    uint64_t next_ready; /* sums that the next rank has started... */
    uint64_t next_done;  /* ... and has completed */

    /* A small block over TCP, where latency matters more than bytes: pieces are
     * copied and sent immediately; a rank that has not started the sum buffers
     * them. */
    bool early_next, early_prev; /* pieces may be sent early over these links */
    bool direct;                 /* two ranks send each other everything */
    float *early;                /* buffered pieces; NULL: a large block */
    size_t *early_size;          /* pieces: bytes buffered... */
    int16_t *early_hop;          /* ... and its hop; -1: nothing */
    uint64_t *early_sum;         /* ... and its sum */

    uint64_t exchanges; /* done */
    size_t status_bytes;
    pl_combine *combine;
    bool told;         /* this worker's status of the exchange under way */
    uint8_t *statuses; /* the chief's: [2][workers][PL_COLLECTIVE_BYTES_MOST] */
    uint8_t *total;    /* of the last exchange */
    bool exchanged;
};

void pl_ring_send(pl_ring_core *core, int32_t to, const pl_frame *frame,
                  const void *payload);

/* --- members.c --------------------------------------------------------- */

pl_status pl_ring_members_init(pl_ring_core *core) PL_MUST_CHECK;
/* The chief: whether `from` is the connection of this worker, a member of the
 * generation. */
bool pl_ring_is_member(const pl_ring_core *core, pl_peer from, int32_t worker);
/* Whether this is the number of the current generation. */
static inline bool pl_ring_is_current(const pl_ring_core *core,
                                      uint32_t generation)
{
    return core->phase != PL_RING_APART &&
           generation == pl_membership_generation(core->membership);
}

/* Handle messages of one kind; false: invalid, dropped. */
bool pl_ring_take_member(pl_ring_core *core, int32_t from,
                         const pl_message *message);
bool pl_ring_take_piece(pl_ring_core *core, int32_t from,
                        const pl_message *message);

/* Whether pieces can be sent before the receiver is ready, over a link with
 * this answer (empty for TCP). */
bool pl_ring_sends_early(const pl_ring_core *core, const char *answer);

/* Restart the sums for the current ranks. */
void pl_ring_reset_sums(pl_ring_core *core);
/* Restart the status exchange. */
void pl_ring_reset_exchange(pl_ring_core *core);

#endif
