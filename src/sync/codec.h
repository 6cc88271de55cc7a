/* codec.h - how the floats of a gradient are encoded in a message.
 *
 * Parameter servers (the push of dense gradients, the answers to it) and the
 * ring (sums of gradients) use only this table.  The sender encodes a piece
 * once, keeps the bytes until the piece is no longer needed, and resends the
 * same bytes if a message was lost: a codec may have state.  The receiver
 * decodes the piece or combines it with its own.  Parameters that must be
 * exact, and sums of parameters, travel as floats, whatever the codec.
 *
 * A codec is one file with one `const pl_codec` and a line in the list of
 * codec.c.  A codec with a setting embeds the table as its first member: each
 * function gets the table that it was called through.
 *
 * All tasks of a job use the same codec: its name is one of the settings that
 * are compared when a task joins.
 *
 * Threads: the tables are constant; a coder belongs to one thread. */
#ifndef PL_SYNC_CODEC_H
#define PL_SYNC_CODEC_H

#include "kernels/backend.h"

#include <stddef.h>

#define PL_CODEC_SLOTS_MOST 2

typedef struct pl_codec pl_codec;

/* The input of a codec: `count` floats, and the sender's state for them before
 * the gradient (slot) and, written by the codec, after it if it counts (next).
 * [count] each, for each slot of the codec; zero before the first piece. */
typedef struct pl_codec_span {
    int64_t count;
    const float *floats;
    const float *slot[PL_CODEC_SLOTS_MOST];
    float *next[PL_CODEC_SLOTS_MOST];
} pl_codec_span;

/* An encoded piece. */
typedef struct pl_encoded {
    const void *bytes;
    size_t size;
} pl_encoded;

struct pl_codec {
    const char *name; /* "plain" */
    /* Encoded floats are the floats themselves: encode and decode return the
     * memory they were given and need no room. */
    bool in_place;
    /* What is decoded may differ from what was encoded. */
    bool may_change_bits;
    /* Parameters that a server sends may be encoded, too: each piece is decoded
     * without regard to earlier ones. */
    bool for_parameters;
    /* Floats of state that a sender keeps for each float of the gradient. */
    int32_t slots;

    /* The most bytes that `count` floats are encoded to: never more than the
     * size of the floats. */
    size_t (*encoded_most)(const pl_codec *codec, int64_t count);
    /* Encode into `room`, which has encoded_most bytes, or return the floats
     * themselves. */
    pl_encoded (*encode)(const pl_codec *codec, const pl_codec_span *from,
                         void *room);
    /* The `count` floats, in `room` or in the message itself; NULL: not a piece
     * of `count` floats.  Its content is not trusted, except that it has at
     * most encoded_most bytes. */
    const float *(*decode)(const pl_codec *codec, int64_t count,
                           pl_encoded from, float *room);
    /* Add a piece to `own`: own + piece, or piece + own where `before`.  The
     * order matters for NaNs.  false, with `own` unchanged: not a piece of
     * `count` floats. */
    bool (*combine)(const pl_codec *codec, const pl_kernels *kernels,
                    int64_t count, pl_encoded piece, bool before, float *own);
};

extern const pl_codec pl_codec_plain;
extern const pl_codec pl_codec_bf16;

/* Sends the largest numbers of a piece and their places; the rest is kept for
 * the next gradient. */
typedef struct pl_codec_topk {
    pl_codec base;
    double share; /* of the numbers, in (0, 1] */
} pl_codec_topk;
extern const pl_codec_topk pl_codec_topk_default;
pl_codec_topk pl_codec_topk_of(double share);

/* All codecs, terminated by NULL; the first is the default. */
extern const pl_codec *const pl_codecs[];

/* decode and combine for a received piece: one that is too long is rejected
 * like any malformed one. */
const float *pl_codec_decode(const pl_codec *codec, int64_t count,
                             pl_encoded from, float *room);
bool pl_codec_combine(const pl_codec *codec, const pl_kernels *kernels,
                      int64_t count, pl_encoded piece, bool before, float *own);

/* A codec with its state for a block of floats.  A gradient may turn out not to
 * count after it was encoded, so its new state replaces the old one only when
 * it counts (pl_coder_keep). */
typedef struct pl_coder {
    const pl_codec *codec;
    int64_t floats; /* of the block */
    float *slots;   /* [codec->slots][floats]; NULL: none */
    float *next;    /* the same, after the gradient that is being encoded */
    double seconds; /* spent encoding */
} pl_coder;

/* `codec` NULL: the default. */
pl_status pl_coder_init(pl_coder *coder, const pl_codec *codec,
                        int64_t floats) PL_MUST_CHECK;
void pl_coder_close(pl_coder *coder);
/* The block of state number i; or NULL. */
float *pl_coder_slot(const pl_coder *coder, int i);
/* All floats of a gradient were encoded, and it counts: keep its state. */
void pl_coder_keep(pl_coder *coder);
/* Encode the floats [first, first + count) of the block, which are at `floats`;
 * `room` has at least their size. */
pl_encoded pl_coder_encode(pl_coder *coder, int64_t first, int64_t count,
                           const float *floats, void *room);

#endif
