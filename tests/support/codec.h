/* codec.h - a lossy codec for tests: the upper half of each float, and what
 * was cut off is added to the next gradient. */
#ifndef PL_TESTS_CODEC_H
#define PL_TESTS_CODEC_H

#include "sync/codec.h"

#include <string.h>

static inline size_t halves_most(const pl_codec *codec, int64_t count)
{
    (void)codec;
    return (size_t)count * sizeof(uint16_t);
}

static inline float halves_get(pl_encoded from, int64_t i)
{
    uint16_t half;
    float value;
    memcpy(&half, (const char *)from.bytes + (size_t)i * sizeof half,
           sizeof half);
    uint32_t bits = (uint32_t)half << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline pl_encoded halves_encode(const pl_codec *codec,
                                       const pl_codec_span *from, void *room)
{
    pl_encoded out = { room, halves_most(codec, from->count) };
    for (int64_t i = 0; i < from->count; i++) {
        float value = from->floats[i] + from->slot[0][i];
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        uint16_t half = (uint16_t)(bits >> 16);
        memcpy((char *)room + (size_t)i * sizeof half, &half, sizeof half);
        from->next[0][i] = value - halves_get(out, i);
    }
    return out;
}

static inline const float *halves_decode(const pl_codec *codec, int64_t count,
                                         pl_encoded from, float *room)
{
    if (from.size != halves_most(codec, count))
        return NULL;
    for (int64_t i = 0; i < count; i++)
        room[i] = halves_get(from, i);
    return room;
}

static inline bool halves_combine(const pl_codec *codec,
                                  const pl_kernels *kernels, int64_t count,
                                  pl_encoded piece, bool before, float *own)
{
    (void)kernels, (void)before;
    if (piece.size != halves_most(codec, count))
        return false;
    for (int64_t i = 0; i < count; i++)
        own[i] += halves_get(piece, i);
    return true;
}

static const pl_codec halves = {
    .name = "halves",
    .may_change_bits = true,
    .slots = 1,
    .encoded_most = halves_most,
    .encode = halves_encode,
    .decode = halves_decode,
    .combine = halves_combine,
};

#endif
