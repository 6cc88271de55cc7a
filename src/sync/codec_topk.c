/* Top-k: sends the k numbers of largest magnitude of each piece, with their
 * places; the rest is added to the next gradient (error feedback), so nothing
 * is lost, only delayed.  After Lin et al., Deep Gradient Compression (2018).
 *
 * The choice depends only on the bits: of two numbers of the same magnitude the
 * first is sent.  A NaN is larger than all others and is always sent, so that
 * the job detects it.
 *
 * Bytes: k places (uint32, rising), then k floats; or all floats, if that is
 * not longer. */
#include "sync/codec.h"

#include "base/assert.h"

#include <math.h>
#include <string.h>

#define DIGIT_BITS 11
#define DIGITS     ((uint32_t)1 << DIGIT_BITS)

/* How many of the floats are sent. */
static int64_t kept_of(const pl_codec *codec, int64_t count)
{
    const pl_codec_topk *topk = (const pl_codec_topk *)codec;
    int64_t kept = (int64_t)ceil(topk->share * (double)count);
    return kept < 1 ? 1 : kept;
}

static bool is_whole(int64_t kept, int64_t count)
{
    return 2 * kept >= count;
}

static size_t encoded_most(const pl_codec *codec, int64_t count)
{
    int64_t kept = kept_of(codec, count);
    return (size_t)(is_whole(kept, count) ? count : 2 * kept) * sizeof(float);
}

static inline uint32_t magnitude(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & 0x7fffffff;
}

/* The smallest magnitude that is sent, found digit by digit from the first;
 * *ties: how many floats of this magnitude are sent. */
static uint32_t find_least(const float *floats, int64_t count, int64_t kept,
                           int64_t *ties)
{
    static const int shifts[] = { 20, 9, 0 };
    uint32_t least = 0, known = 0;
    int64_t left = kept;
    for (size_t d = 0; d < sizeof shifts / sizeof *shifts; d++) {
        uint32_t having[DIGITS] = { 0 };
        int shift = shifts[d];
        uint32_t digit = DIGITS - 1;
        for (int64_t i = 0; i < count; i++) {
            uint32_t size = magnitude(floats[i]);
            if ((size & known) == least)
                having[size >> shift & (DIGITS - 1)]++;
        }
        while (having[digit] < left)
            left -= having[digit--];
        least |= digit << shift;
        known |= (DIGITS - 1) << shift;
    }
    *ties = left;
    return least;
}

static pl_encoded encode(const pl_codec *codec, const pl_codec_span *from,
                         void *room)
{
    int64_t count = from->count, kept = kept_of(codec, count), n = 0, ties;
    pl_encoded encoded = { room, encoded_most(codec, count) };
    float *rest = from->next[0];
    for (int64_t i = 0; i < count; i++)
        rest[i] = from->slot[0][i] + from->floats[i];
    if (is_whole(kept, count)) {
        memcpy(room, rest, encoded.size);
        memset(rest, 0, encoded.size);
        return encoded;
    }
    uint32_t *places = room;
    float *values = (float *)room + kept;
    uint32_t least = find_least(rest, count, kept, &ties);
    for (int64_t i = 0; i < count; i++) {
        uint32_t size = magnitude(rest[i]);
        if (size < least || (size == least && ties-- <= 0))
            continue;
        places[n] = (uint32_t)i;
        values[n++] = rest[i];
        rest[i] = 0;
    }
    PL_ASSERT(n == kept);
    return encoded;
}

/* A received piece need not be aligned.  It may lie in its sender's memory,
 * where the sender may still write: every use of a place checks it. */
static uint32_t place_at(pl_encoded piece, int64_t i)
{
    uint32_t place;
    memcpy(&place, (const char *)piece.bytes + i * 4, sizeof place);
    return place;
}

static float value_at(pl_encoded piece, int64_t i)
{
    float value;
    memcpy(&value, (const char *)piece.bytes + i * 4, sizeof value);
    return value;
}

static bool is_piece(const pl_codec *codec, int64_t count, pl_encoded piece)
{
    int64_t kept = kept_of(codec, count), before = -1;
    if (piece.size != encoded_most(codec, count))
        return false;
    for (int64_t i = 0; i < kept && !is_whole(kept, count); i++) {
        int64_t place = place_at(piece, i);
        if (place <= before || place >= count)
            return false;
        before = place;
    }
    return true;
}

static const float *decode(const pl_codec *codec, int64_t count,
                           pl_encoded from, float *room)
{
    int64_t kept = kept_of(codec, count);
    if (!is_piece(codec, count, from))
        return NULL;
    if (is_whole(kept, count)) {
        memcpy(room, from.bytes, from.size);
        return room;
    }
    memset(room, 0, (size_t)count * sizeof *room);
    for (int64_t i = 0; i < kept; i++) {
        uint32_t place = place_at(from, i);
        if (place < count)
            room[place] = value_at(from, kept + i);
    }
    return room;
}

static inline void add_one(float value, bool before, float *own)
{
    *own = before ? value + *own : *own + value;
}

static bool combine(const pl_codec *codec, const pl_kernels *kernels,
                    int64_t count, pl_encoded piece, bool before, float *own)
{
    int64_t kept = kept_of(codec, count);
    (void)kernels;
    if (!is_piece(codec, count, piece))
        return false;
    for (int64_t i = 0; i < count && is_whole(kept, count); i++)
        add_one(value_at(piece, i), before, own + i);
    for (int64_t i = 0; i < kept && !is_whole(kept, count); i++) {
        uint32_t place = place_at(piece, i);
        if (place < count)
            add_one(value_at(piece, kept + i), before, own + place);
    }
    return true;
}

#define TOPK                                                                   \
    {                                                                          \
        .name = "topk", .may_change_bits = true, .slots = 1,                   \
        .encoded_most = encoded_most, .encode = encode, .decode = decode,      \
        .combine = combine,                                                    \
    }

const pl_codec_topk pl_codec_topk_default = { .base = TOPK, .share = 0.01 };

pl_codec_topk pl_codec_topk_of(double share)
{
    PL_ASSERT(share > 0 && share <= 1);
    return (pl_codec_topk) { .base = TOPK, .share = share };
}
