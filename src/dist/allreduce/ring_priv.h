/* ring_priv.h - what the parts of the ring's core share.
 *
 *   ring_core.c     the calls, messages, words
 *   ring_members.c  meeting, hearts, losses
 *   ring_sums.c     pieces
 *
 * Threads: one at a time. */
#ifndef PL_DIST_ALLREDUCE_RING_PRIV_H
#define PL_DIST_ALLREDUCE_RING_PRIV_H

#include "dist/allreduce/ring_core.h"

#include <stdatomic.h>

#define PL_RING_WHY 512 /* bytes of a reason */

/* LINK: on which net. */
#define PL_LINK_RING 1u
#define PL_LINK_HUB  2u

typedef enum pl_ring_phase {
    PL_RING_IDLE,
    PL_RING_MEETING, /* waits for all, or for the chief's welcome */
    PL_RING_LINKING, /* has a generation, connects */
    PL_RING_FORMED,
    PL_RING_ENDED, /* `how` says how */
} pl_ring_phase;

/* What the chief knows of a worker. */
typedef struct pl_ring_member {
    pl_peer peer;         /* of its hub connection; -1: none */
    uint32_t incarnation; /* 0: never seen */
    uint32_t before;      /* the process before this one */
    int64_t meeting;      /* number of its last JOIN */
    bool joined;          /* waits to be in the next generation */
    bool member;          /* of this generation */
    bool lost;            /* silent, and not back yet */
    int64_t heard_ns;
    bool waiting;
    int64_t progress;
    int64_t beats;      /* of its working thread */
    int64_t beat_ns;    /* when they were seen to change, or it to wait */
    int64_t longest_ns; /* between two changes */
    bool told;          /* its word of this gather is here */
    size_t word_bytes;
    char answer[PL_OFFER_BYTES]; /* to its LINK to the hub */
    bool answered;
} pl_ring_member;

typedef struct pl_ring_sum {
    int64_t first, count;
    int32_t left; /* pieces that are still to come */
} pl_ring_sum;

struct pl_ring_core {
    pl_ring_core_opts opts;
    bool chief;
    pl_ring_phase phase;
    pl_status how;
    char why[PL_RING_WHY];
    int64_t tick_ns, next_heart_ns, next_link_ns;
    int64_t meet_ns; /* when this meeting began */
    int64_t meeting; /* its number */
    bool formed_once;
    int32_t restarts;
    bool follows; /* another life of the chief was there before */
    int64_t refused;

    uint32_t generation, highest; /* the highest seen anywhere */
    uint32_t chief_incarnation;   /* a follower's: of this generation */
    int64_t heard_ns;             /* of the chief, by a follower */
    bool heard;                   /* ... in this meeting */
    int32_t *roster;              /* workers by rank */
    int32_t rank, count;
    pl_peer prev; /* -1: not linked */
    bool linked_next, linked_hub;
    char offer[2][PL_OFFER_BYTES]; /* to the next, to the hub */
    char prev_answer[PL_OFFER_BYTES];

    pl_ring_member *members; /* [workers] */
    bool waiting;
    _Atomic int64_t beats; /* of the working thread */
    uint64_t hearts;       /* sent */
    int64_t heart_ns;      /* when the last one was */
    pl_skew skew;          /* of the chief's clock */
    int64_t progress;      /* messages of sums and words */
    int64_t changed_ns;    /* the chief's: when someone's was seen to change */
    int64_t progress_seen;

    int64_t stripe;   /* floats */
    uint8_t *got;     /* pieces: how often each came in its sum */
    int16_t *pending; /* pieces: hop that waits to be sent; -1: none */
    pl_ring_sum sums[PL_COLLECTIVE_SUMS_MOST];
    int32_t started;
    uint64_t base;       /* sums before the first of these */
    uint64_t next_ready; /* sums that the next rank has started... */
    uint64_t next_done;  /* ... and has done */

    /* A small block over TCP, where a message takes longer than its bytes:
     * pieces are copied and sent at once, and kept by who has not started. */
    bool early_next, early_prev; /* over these links */
    bool direct;                 /* two ranks send each other all they have */
    float *early;                /* [floats] that came; NULL: a large block */
    int16_t *early_hop;          /* pieces: of what is kept; -1: nothing */
    uint64_t *early_sum;         /* ... and its sum */

    uint64_t gathers; /* done */
    size_t told_bytes;
    bool told;
    uint8_t *words; /* the chief's: [workers][PL_COLLECTIVE_BYTES_MOST] */
    uint8_t *all;   /* what was gathered last */
    bool gathered;
};

void pl_ring_send(pl_ring_core *core, int32_t to, pl_frame frame,
                  const void *payload);
void pl_ring_send_text(pl_ring_core *core, int32_t to, pl_frame frame,
                       const char *text);

/* This generation, or the job, ends here: later calls say so. */
void pl_ring_end(pl_ring_core *core, pl_status how, const char *format, ...)
    PL_PRINTF(3, 4);
/* The chief: ... and tells all others. */
void pl_ring_roll(pl_ring_core *core, const char *format, ...) PL_PRINTF(2, 3);
void pl_ring_over(pl_ring_core *core, pl_status how, const char *format, ...)
    PL_PRINTF(3, 4);

/* Both NULL or -1 for a stranger. */
pl_ring_member *pl_ring_member_of(pl_ring_core *core, pl_peer peer);

/* Messages by what they are about; false: wrong, dropped. */
bool pl_ring_take_member(pl_ring_core *core, int32_t from,
                         const pl_message *message, int64_t now_ns);
bool pl_ring_take_piece(pl_ring_core *core, int32_t from,
                        const pl_message *message);

/* Can pieces be sent before the receiver is ready: over a link that was made
 * with this answer, empty for TCP. */
bool pl_ring_sends_early(const pl_ring_core *core, const char *answer);

/* Sums begin anew, for the ranks there are. */
void pl_ring_reset_sums(pl_ring_core *core);
/* Words begin anew. */
void pl_ring_reset_words(pl_ring_core *core);

#endif
