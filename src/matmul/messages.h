/* messages.h - the messages between the workers of a matrix product, one
 * struct for each kind; those of membership are in job/member/messages.h.
 *
 *   LINK    to a worker whose blocks are needed: an offer of shared memory
 *   LINKED  ... and the answer
 *   PULL    a request for a piece of a block
 *   PARAMS  ... and the piece
 *
 * Threads: any. */
#ifndef PL_MATMUL_MESSAGES_H
#define PL_MATMUL_MESSAGES_H

#include "net/endpoint.h"

typedef struct pl_block_link {
    int32_t worker;             /* the sender */
    char offer[PL_OFFER_BYTES]; /* or the answer; "": none */
} pl_block_link;

typedef struct pl_block_pull {
    uint64_t sequence;
    int64_t matrix, i, j;
    int64_t first, count; /* floats of the block */
} pl_block_pull;

typedef struct pl_block_piece {
    uint64_t sequence;
    int64_t first;
    uint32_t count;
    const float *floats;
} pl_block_piece;

/* The payload is `offer` with its NUL. */
pl_frame pl_block_link_encode(pl_frame_kind kind, const pl_block_link *link);
bool pl_block_link_decode(pl_block_link *out, const pl_message *message);
pl_frame pl_block_pull_encode(const pl_block_pull *pull);
void pl_block_pull_decode(pl_block_pull *out, const pl_message *message);
pl_frame pl_block_piece_encode(const pl_block_piece *piece);
bool pl_block_piece_decode(pl_block_piece *out, const pl_message *message);

#endif
