/* pieces.h - a range of the parameter block cut into pieces, and which of
 * them have arrived.
 *
 * A request or an answer may carry several planes of one range: the
 * parameters, then each slot of the optimizer.  Pieces are counted plane
 * after plane.
 *
 * Threads: one object, one thread. */
#ifndef PL_SYNC_PS_MESSAGES_PIECES_H
#define PL_SYNC_PS_MESSAGES_PIECES_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stdint.h>

/* 1 MiB: large enough for the network, small enough to overlap. */
#define PL_PIECE_FLOATS ((int64_t)1 << 18)
/* Pieces sent before one of them must be acknowledged: byte credits. */
#define PL_PIECE_WINDOW 8

typedef struct pl_pieces {
    int64_t first, count; /* the range, in floats */
    int64_t size;         /* floats of a piece; the last may be shorter */
    int32_t per_plane;
    int32_t planes; /* in use */
    int32_t room;   /* flags allocated */
    int32_t here;
    bool *flags;
} pl_pieces;

typedef struct pl_piece_range {
    int32_t plane;
    int64_t first; /* in the block */
    uint32_t count;
} pl_piece_range;

/* The partition of a block of `total` floats that server `index` of `servers`
 * holds: whole cache lines, as even as possible. */
void pl_pieces_shard(int64_t total, int32_t servers, int32_t index,
                     int64_t *first, int64_t *count);

/* For up to `planes_max` planes; size 0: PL_PIECE_FLOATS. */
pl_status pl_pieces_init(pl_pieces *pieces, int64_t first, int64_t count,
                         int64_t size, int32_t planes_max) PL_MUST_CHECK;
void pl_pieces_close(pl_pieces *pieces);

/* Forget all pieces; `planes` planes are expected. */
void pl_pieces_reset(pl_pieces *pieces, int32_t planes);
int32_t pl_pieces_total(const pl_pieces *pieces);
bool pl_pieces_complete(const pl_pieces *pieces);
bool pl_pieces_windowed(const pl_pieces *pieces); /* more than a window */
pl_piece_range pl_pieces_range(const pl_pieces *pieces, int32_t index);
/* The index of a piece; -1: not a piece of this range. */
int32_t pl_pieces_find(const pl_pieces *pieces, int64_t plane, int64_t first,
                       int64_t count);
/* Piece `index` has arrived; false when it already had. */
bool pl_pieces_mark(pl_pieces *pieces, int32_t index);
/* Whether all pieces of plane 0 that overlap these floats have arrived. */
bool pl_pieces_have(const pl_pieces *pieces, int64_t first, int64_t count);

/* The sending side: what was sent and what was acknowledged. */
typedef struct pl_stream {
    pl_pieces acked;
    bool backward;      /* from the end of the range: gradients */
    int64_t ready_from; /* backward: floats from here on may be sent */
    int32_t next;       /* pieces handed out since the start or the retry */
    int32_t flying;     /* ... and not acknowledged */
} pl_stream;

pl_status pl_stream_init(pl_stream *stream, int64_t first, int64_t count,
                         int64_t size, int32_t planes_max) PL_MUST_CHECK;
void pl_stream_close(pl_stream *stream);
void pl_stream_start(pl_stream *stream, int32_t planes, bool backward);
/* Resend what is not acknowledged. */
void pl_stream_retry(pl_stream *stream);
/* The next piece to send now, or -1. */
int32_t pl_stream_next(pl_stream *stream);
void pl_stream_ack(pl_stream *stream, int32_t index);
void pl_stream_ack_all(pl_stream *stream);

#endif
