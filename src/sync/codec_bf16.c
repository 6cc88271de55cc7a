/* bfloat16: the upper half of a float32, rounded to the nearest, ties to even.
 * It keeps the sign, the whole exponent and 8 of the 24 bits of precision.
 * This rounding has no bias, so the rounding error is not kept: a sender has no
 * state, and what it sends depends only on the gradient. */
#include "sync/codec.h"

#include <string.h>

static size_t encoded_most(const pl_codec *codec, int64_t count)
{
    (void)codec;
    return (size_t)count * sizeof(uint16_t);
}

/* A NaN stays a NaN: rounding could turn it into infinity. */
static inline uint16_t narrow(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t nearest = bits + 0x7fff + (bits >> 16 & 1);
    bool none = (bits & 0x7fffffff) > 0x7f800000;
    return (uint16_t)(none ? bits >> 16 | 0x40 : nearest >> 16);
}

static inline float widen(const uint8_t *half)
{
    uint16_t bits;
    float value;
    memcpy(&bits, half, sizeof bits);
    uint32_t whole = (uint32_t)bits << 16;
    memcpy(&value, &whole, sizeof value);
    return value;
}

static pl_encoded encode(const pl_codec *codec, const pl_codec_span *from,
                         void *room)
{
    uint16_t *to = room;
    for (int64_t i = 0; i < from->count; i++)
        to[i] = narrow(from->floats[i]);
    return (pl_encoded) { room, encoded_most(codec, from->count) };
}

static const float *decode(const pl_codec *codec, int64_t count,
                           pl_encoded from, float *room)
{
    const uint8_t *half = from.bytes;
    if (from.size != encoded_most(codec, count))
        return NULL;
    for (int64_t i = 0; i < count; i++)
        room[i] = widen(half + 2 * i);
    return room;
}

static bool combine(const pl_codec *codec, const pl_kernels *kernels,
                    int64_t count, pl_encoded piece, bool before, float *own)
{
    const uint8_t *half = piece.bytes;
    (void)kernels;
    if (piece.size != encoded_most(codec, count))
        return false;
    for (int64_t i = 0; i < count; i++) {
        float value = widen(half + 2 * i);
        own[i] = before ? value + own[i] : own[i] + value;
    }
    return true;
}

const pl_codec pl_codec_bf16 = {
    .name = "bf16",
    .may_change_bits = true,
    .for_parameters = true,
    .encoded_most = encoded_most,
    .encode = encode,
    .decode = decode,
    .combine = combine,
};
